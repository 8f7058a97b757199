# SPDX-License-Identifier: BSD-2-Clause
"""The kernels of an application are listed, and built from the list."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from cache_support import cache_warnings
from numba.cuda import autolink, types
from numba.cuda.autolink.many_kernels import job_list
from numba.cuda.autolink.many_kernels.job_list import JobList, JobListError, describe_job
from numba.cuda.autolink.many_kernels.jobs import Job
from numba.cuda.core import sigutils
from numba.cuda.cudadrv.external_code.cache.store import current_store, reset_store

import numba_cuda_autolink
from numba_cuda_autolink.commands.main_command import main

LIBRARY = """
from numba import cuda
from numba.cuda import autolink

class Scale(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("scale", returns=x)

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource('extern "C" __device__ float scale(float x) { return 2 * x; }')

scale = Scale()

@cuda.jit
def named(x):
    x[0] = scale(x[0])

@cuda.jit
def wrong(x):
    x[0] = scale(x[0], 1)
"""
APPLICATION = """
import subprocess, sys
from numba.cuda import autolink
import captured_library

def scaling(number):
    def kernel(x):
        x[0] = captured_library.scale(x[0]) + number
    return kernel

if len(sys.argv) == 1:
    for cc in (8, 0), (9, 0), (9, 0):
        autolink.build(captured_library.named, "void(float32[::1])", cc=cc)
    autolink.build(scaling(1), "void(float32[::1])", cc=(9, 0), entry_name="plus_one")
    subprocess.run([sys.executable, __file__, "child"], check=True)
    sys.exit(3)
autolink.build(scaling(2), "void(float32[::1])", cc=(9, 0), fastmath=True)
"""


@pytest.fixture
def application(tmp_path, monkeypatch):
    (tmp_path / "captured_library.py").write_text(LIBRARY)
    (tmp_path / "application.py").write_text(APPLICATION)
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_JOBS", "1")
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = reset_store()
    yield tmp_path
    reset_store(before)
    sys.modules.pop("captured_library", None)


def test_an_application_and_its_children_are_captured_and_prebuilt(application, capsys):
    jobs, kernels = application / "jobs.json", application / "app.kernels"
    command = [sys.executable, str(application / "application.py")]
    assert main(["capture", "-o", str(jobs), "--", *command]) == 3, "the exit code is the application's"
    listed = json.loads(jobs.read_text())
    assert listed["path"] == [str(application)]
    found = [(job["kernel"].rpartition(".")[2], job["cc"], "pickle" in job) for job in listed["jobs"]]
    assert sorted(found) == [
        ("captured_library:named", "8.0", False),
        ("captured_library:named", "9.0", False),
        ("kernel", "9.0", True),
        ("kernel", "9.0", True),
    ]
    assert main(["prebuild", str(jobs), "--save", str(kernels)]) == 0
    assert "4 of 4 kernels" in capsys.readouterr().out
    assert {"named", "kernel", "plus_one"} <= set(dir(numba_cuda_autolink.load(kernels)))
    assert main(["prebuild", str(jobs), "--cc", "9.0,10.0"]) == 0
    assert "6 of 6 kernels" in capsys.readouterr().out, "each kernel once for each architecture"


@pytest.mark.parametrize(
    ("key", "said"),
    [("the key of this site", "entries could not be written"), ("/a/path", "what was built could not be")],
)
def test_where_a_store_was_to_be_written_to_and_got_less_the_exit_code_says_so(
    application, capsys, monkeypatch, key, said
):
    pytest.importorskip("fsspec")
    jobs, store = application / "jobs.json", application / "store"
    listed = [{"kernel": "captured_library:named", "signature": "void(float32[::1])", "cc": "9.0"}]
    jobs.write_text(json.dumps({"format": 1, "path": [str(application)], "jobs": listed}))
    store.write_text("not a folder")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE", f"file://{store}")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY", key)
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_MODE", "rw")
    with cache_warnings():
        assert main(["prebuild", str(jobs)]) == 4
        shown = capsys.readouterr()
        assert main(["prebuild", str(jobs)]) == 4, "what is in this machine's cache is not in the store"
    assert "1 of 1 kernels" in shown.out and said in shown.err and "to the shared cache\n  what to do" in shown.err


def test_a_prebuild_is_repeated_until_the_store_has_all(application, capsys, monkeypatch, tmp_path):
    pytest.importorskip("fsspec")
    jobs, store = application / "jobs.json", application / "store"
    listed = [{"kernel": "captured_library:named", "signature": "void(float32[::1])", "cc": "9.0"}]
    jobs.write_text(json.dumps({"format": 1, "path": [str(application)], "jobs": listed}))
    assert main(["prebuild", str(jobs)]) == 0
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE", f"file://{store}")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY", "the key of this site")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_MODE", "rw")
    reset_store()
    assert main(["prebuild", str(jobs)]) == 0
    damaged = max(store.iterdir(), key=lambda path: path.stat().st_size)
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1])
    written = {path: path.stat().st_mtime_ns for path in store.iterdir()}
    reset_store()
    assert main(["prebuild", str(jobs)]) == 0
    assert [path for path, time in written.items() if path.stat().st_mtime_ns != time] == [damaged]
    assert len(damaged.read_bytes()) == len(whole)
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "of another machine"))
    reset_store()
    capsys.readouterr()
    assert main(["prebuild", str(jobs)]) == 0
    assert "1 of 1 kernels were in the cache, looked up in " in capsys.readouterr().out


def test_a_kernel_that_cannot_be_built_is_reported_and_all_others_are_built(application, capsys):
    jobs = application / "jobs.json"
    each = {"signature": "void(float32[::1])", "cc": "9.0"}
    names = "captured_library:wrong", "captured_library:named", "moved:kernel"
    listed = [{"kernel": name, **each} for name in names]
    jobs.write_text(json.dumps({"format": 1, "path": [str(application)], "jobs": listed}))
    assert main(["prebuild", str(jobs)]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("1 of 3 kernels")
    assert "kernel moved:kernel cannot be loaded: ModuleNotFoundError" in shown.err and "PYTHONPATH" in shown.err
    assert "wrong with void(float32[::1]) for 9.0 could not be built" in shown.err and "scale(x[0], 1)" in shown.err


FAULTY = """
from numba import cuda
from numba.cuda import autolink

library = autolink.cxx("__device__ float f(float x) { return y; }")


@cuda.jit
def first(x):
    x[0] = library.f(x[0])


@cuda.jit
def second(x):
    x[1] = library.f(x[1]) + 1
"""


def test_a_fault_of_several_kernels_is_printed_once(application, capsys):
    jobs = application / "jobs.json"
    (application / "captured_library.py").write_text(FAULTY)
    (application / "broken.py").write_text("x = 1\ndef f(x:\n")
    typed = {"signature": "void(float32[::1])"}
    names = [("captured_library:first", "9.0"), ("captured_library:first", "10.0"), ("captured_library:second", "9.0")]
    names += [("broken:f", "9.0"), ("broken:g", "9.0")]
    listed = [{"kernel": name, "cc": cc, **typed} for name, cc in names]
    jobs.write_text(json.dumps({"format": 1, "path": [str(application)], "jobs": listed}))
    assert main(["prebuild", str(jobs)]) == 1
    shown = capsys.readouterr().err
    assert shown.count('identifier "y" is undefined') == 1
    assert (
        "    it also stops 2 kernels:\n      first with void(float32[::1]) for 10.0\n"
        "      second with void(float32[::1]) for 9.0\n"
    ) in shown
    place = f"kernel broken:f cannot be loaded: {application / 'broken.py'}:2: SyntaxError: "
    assert shown.count("SyntaxError") == shown.count(place) == 1
    assert "    def f(x:\n" in shown and "    it also stops 1 kernel:\n      kernel broken:g\n" in shown


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not JSON: Expecting value: line 1 column 1"),
        ("[]", "is JSON, but not a list of jobs\n  what to do: numba-cuda-autolink capture"),
        ('{"other": 1}', "is JSON, but not a list of jobs\n  what to do: numba-cuda-autolink capture"),
        (
            '{"format": 1, "jobs": "other"}',
            "is JSON, but not a list of jobs\n  what to do: numba-cuda-autolink capture",
        ),
        ("[" * 100_000, "is not JSON: maximum recursion depth exceeded"),
        ('{"format": 9, "jobs": []}', "has format 9, and this version reads 1"),
        ('{"format": 1, "jobs": [{"kernel": "no_such_module:f"}]}', "kernel no_such_module:f cannot be loaded: Module"),
        ('{"format": 1, "jobs": [{"kernel": "captured_library:f"}]}', "has no attribute 'f'"),
        (
            '{"format": 1, "jobs": [{"kernel": "captured_library:named"}]}',
            "required positional argument: 'signature'",
        ),
        (
            '{"format": 1, "jobs": [{"kernel": "captured_library:named", "signature": "", "outputt": ""}]}',
            "TypeError: Job() has no parameter 'outputt'; did you mean output?",
        ),
    ],
)
def test_a_file_that_is_not_a_list_of_jobs_is_an_error(application, monkeypatch, content, message):
    monkeypatch.syspath_prepend(str(application))
    path = application / "jobs.json"
    path.write_text(content)
    with pytest.raises(JobListError) as caught:
        (loaded,) = JobList.read(path).loaded()
        raise loaded
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["processes:0", "processes:many", "dask", "slurm", "mpi:4"])
def test_an_unknown_executor_is_an_error(application, capsys, text):
    jobs = application / "jobs.json"
    listed = [{"kernel": "captured_library:named", "signature": "void(float32[::1])", "cc": "9.0"}]
    jobs.write_text(json.dumps({"format": 1, "path": [str(application)], "jobs": listed}))
    assert main(["prebuild", str(jobs), "--executor", text]) == 2
    assert f"--executor {text}: expected processes[:N]" in capsys.readouterr().err


def test_a_program_that_is_not_there_is_an_error(application, capsys):
    assert main(["capture", "-o", str(application / "jobs.json"), "--", "no-such-program"]) == 1
    assert "no-such-program: there is no such program" in capsys.readouterr().err


@pytest.mark.parametrize(
    "signature",
    [
        "void(float32[::1])",
        (types.float32[:, ::1], types.int64),
        types.void(types.complex64[::1, :], types.float64[:, :, :]),
        (types.boolean, types.uint8[:]),
        (types.UniTuple(types.int32, 2),),
        (types.Record.make_c_struct([("x", types.int32)])[::1],),
        (types.none,),
    ],
    ids=str,
)
def test_a_signature_in_a_list_means_the_same_types(signature):
    def kernel(*args):
        pass

    (job,) = JobList((describe_job(Job(kernel, signature, (9, 0))),)).loaded()
    assert sigutils.normalize_signature(job.signature)[0] == sigutils.normalize_signature(signature)[0]
    assert job.cc == "9.0"


def test_the_signature_of_a_closure_can_be_edited():
    """Its pickle has one too."""

    def kernel(x):
        pass

    listed = describe_job(Job(kernel, "void(float32[::1])", (9, 0)))
    (job,) = JobList(({**listed, "signature": "void(float64[::1])"},)).loaded()
    assert sigutils.normalize_signature(job.signature)[0] == (types.float64[::1],)


@pytest.mark.gpu
def test_what_is_captured_of_a_launch_is_what_the_next_launch_links(application, monkeypatch):
    folder = application / "captured"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(application))
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CAPTURE", str(folder))
    job_list.start_capture()
    import captured_library

    captured_library.named[1, 1](np.ones(4, np.float32))
    monkeypatch.delenv("NUMBA_CUDA_AUTOLINK_CAPTURE")
    (job,) = job_list.read_captured(folder).loaded()
    assert job.for_launch
    links = {entry.digest for entry in current_store().disk.entries() if entry.kind == "link"}
    autolink.build_many([job])
    assert {entry.digest for entry in current_store().disk.entries() if entry.kind == "link"} == links


def test_a_prebuild_says_that_the_emulator_launches_other_builds(application, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(application))
    import captured_library

    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_EMULATE", "1")
    for for_launch in False, True:
        job = Job(captured_library.named, "void(float32[::1])", (9, 0), for_launch=for_launch)
        JobList.of([describe_job(job)], [str(application)]).write(application / "jobs.json")
        assert main(["prebuild", str(application / "jobs.json")]) == 0
        assert ("the emulator launches other builds than these" in capsys.readouterr().err) == for_launch


def test_kernels_that_are_compiled_as_their_module_is_imported(application, capsys, monkeypatch):
    name = f"eager_{application.name}".replace("-", "_")
    (application / f"{name}.py").write_text("""
from numba import cuda


@cuda.jit("void(float32[::1])")
def named(x):
    x[0] = 1


@cuda.jit
def other(x):
    x[0] = 2
""")
    jobs = application / "jobs.json"
    listed = [
        {"kernel": f"{name}:{kernel}", "signature": "void(float32[::1])", "cc": "9.0"} for kernel in ("other", "named")
    ]
    jobs.write_text(json.dumps({"format": 1, "path": [str(application)], "jobs": listed}))
    monkeypatch.setattr("numba_cuda_autolink.commands.kernel_loading.cuda.is_available", lambda: False)
    assert main(["prebuild", str(jobs)]) == 0
    assert "2 of 2 kernels" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--save", "x.cubin"], "--save x.cubin: it takes kernels"),
        (["--executor", "processes:0"], "--executor processes:0: expected"),
        (["--cc", "1.0"], "--cc 1.0: this CUDA toolkit does not know"),
    ],
)
def test_wrong_arguments_are_found_before_the_modules_are_imported(application, capsys, options, message):
    jobs = application / "jobs.json"
    (application / "imported_too_early.py").write_text("raise SystemExit('imported')")
    listed = [{"kernel": "imported_too_early:kernel", "signature": "void(float32[::1])", "cc": "9.0"}]
    jobs.write_text(json.dumps({"format": 1, "path": [str(application)], "jobs": listed}))
    assert main(["prebuild", str(jobs), *options]) == 2
    assert message in capsys.readouterr().err
