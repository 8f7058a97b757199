# SPDX-License-Identifier: BSD-2-Clause
"""The command line, as a user would type it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from autolink_support import compiled, symbols
from numba.cuda.autolink.commands import doctor_command
from numba.cuda.autolink.commands.main_command import main
from numba.cuda.cudadrv.external_code.cache.store import reset_store
from numba.cuda.cudadrv.external_code.link import trial

import numba_cuda_autolink

KERNELS = """
import types
from numba import cuda
from numba.cuda import autolink
from beside import AMOUNT


class Add(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("add", returns=x)

    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(f'extern "C" __device__ int add(int x) {{ return x + {AMOUNT}; }}', name="add.cu")


add = Add()


@cuda.jit
def kernel(x):
    x[0] = add(x[0])


def function(x):
    x[0] = 1


space = types.SimpleNamespace(kernel=kernel)


@cuda.jit
def wrong(x):
    x[0] = undeclared(x[0])
"""
SIGNATURE = "void(int32[::1])"


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    (tmp_path / "commanded.py").write_text(KERNELS)
    (tmp_path / "beside.py").write_text("AMOUNT = 3\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield str(tmp_path / "commanded.py")
    for name in ("commanded", "beside"):
        sys.modules.pop(name, None)


def failing(capsys, *arguments):
    """Return the exit code and the error output of a command that fails."""
    try:
        code = main(arguments)
    except SystemExit as error:
        code = error.code
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err.split("cannot be run")[0]
    return code, printed.err


def test_explain_prints_the_report(kernels, capsys):
    assert main(["explain", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0"]) == 0
    text = capsys.readouterr().out
    line = KERNELS.splitlines().index("    x[0] = add(x[0])") + 1
    assert f"commanded.py:{line}" in text
    assert "add.cu" in text
    assert "registers" in text


@pytest.mark.parametrize(("form", "start"), [("--json", "{"), ("--html", "<"), ("--dot", "digraph")])
def test_explain_prints_other_forms(kernels, capsys, form, start):
    assert main(["explain", f"{kernels}:space.kernel", "--sig", SIGNATURE, "--cc", "9.0", form]) == 0
    text = capsys.readouterr().out
    assert text.lstrip().startswith(start)
    assert "add.cu" in text
    if form == "--json":
        json.loads(text)


@pytest.mark.parametrize(("output", "start"), [("cubin", b"\x7fELF"), ("ptx", b"//"), ("ltoir", b"\xed\x43\x4e\x7f")])
def test_build_writes_code_and_a_manifest(kernels, tmp_path, capsys, output, start):
    out = tmp_path / f"built.{output}"
    assert main(["build", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0", "-o", str(out)]) == 0
    code = out.read_bytes()
    assert code.startswith(start)
    manifest = json.loads((tmp_path / f"built.{output}.json").read_text())
    (kernel,) = manifest["kernels"]
    assert manifest["output"] == output
    assert (kernel["architecture"], kernel["bytes"]) == ("sm_90", len(code))
    assert [planned["name"] for planned in kernel["inputs"]] == ["add.cu"]
    assert manifest["versions"]["numba-cuda"]
    assert kernel["entry_name"] == "kernel"
    if output == "cubin":
        assert "kernel" in symbols(code)
    assert str(out) in capsys.readouterr().out


def test_build_makes_one_fatbin_for_several_architectures(kernels, tmp_path):
    nvfatbin = pytest.importorskip("cuda.bindings.nvfatbin")
    try:
        nvfatbin.version()
    except Exception as error:
        pytest.skip(f"needs nvFatbin of this CUDA version: {error}")
    out = tmp_path / "built.fatbin"
    assert main(["build", f"{kernels}:function", "--sig", SIGNATURE, "--cc", "8.0,9.0a", "-o", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x50\xed\x55\xba")
    manifest = json.loads((tmp_path / "built.fatbin.json").read_text())
    assert [kernel["architecture"] for kernel in manifest["kernels"]] == ["sm_80", "sm_90a"]
    assert {kernel["entry_name"] for kernel in manifest["kernels"]} == {"function"}
    assert out.read_bytes().count(b"\x7fELF") == 2 or len(out.read_bytes()) > 1000  # compressed or not


def test_build_writes_a_header_alone_or_with_the_code(kernels, tmp_path, capsys):
    out, head = tmp_path / "built.cubin", tmp_path / "built.h"
    command = ["build", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0", "--name", "plus", "--header", str(head)]
    assert main(command) == 0
    assert f"{head}: " in capsys.readouterr().out
    assert "static inline CUresult plus_launch(plus_kernel *kernel" in head.read_text()
    assert main([*command, "-o", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x7fELF")


def test_build_writes_finished_kernels(kernels, tmp_path, capsys):
    out = tmp_path / "built.kernels"
    assert main(["build", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "8.0,9.0a", "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: {out.stat().st_size} bytes, kernel for sm_80, sm_90a\n"
    library = numba_cuda_autolink.load(out)
    assert list(library) == ["kernel"] and len(library.kernel.signatures) == 1
    assert [path.name for path in tmp_path.glob("built*")] == ["built.kernels"]


ERRORS = {
    "no kernel named": (2, ["explain", "FILE"], "write FILE.py:KERNEL"),
    "no such file": (1, ["explain", "missing.py:kernel"], "missing.py: no such file"),
    "no such kernel": (1, ["explain", "FILE:kernal"], "has no 'kernal'; did you mean kernel?"),
    "not a kernel": (1, ["explain", "FILE:add", "--sig", SIGNATURE, "--cc", "9.0"], "expects a Python function"),
    "no compute capability": (
        2,
        ["explain", "FILE:kernel", "--cc", "ninety"],
        "'ninety' is not a compute capability: expected",
    ),
    "unknown compute capability": (1, ["explain", "FILE:kernel", "--sig", SIGNATURE, "--cc", "1.0"], "is not known"),
    "bad signature": (1, ["explain", "FILE:kernel", "--sig", "void(", "--cc", "9.0"], "SyntaxError"),
    "typing error": (1, ["explain", "FILE:wrong", "--sig", SIGNATURE, "--cc", "9.0"], "undeclared"),
    "several cubins": (
        2,
        ["build", "FILE:kernel", "--sig", SIGNATURE, "--cc", "8.0,9.0", "-o", "out.cubin"],
        "a cubin is for one compute capability",
    ),
    "nothing to write": (2, ["build", "FILE:kernel", "--sig", SIGNATURE, "--cc", "9.0"], "pass -o OUT, --header"),
    "a header of PTX": (
        2,
        ["build", "FILE:kernel", "--sig", SIGNATURE, "--cc", "9.0", "--header", "out.h", "--output", "ptx"],
        "a header contains cubins",
    ),
    "a header with a name that is not one in C": (
        1,
        ["build", "FILE:kernel", "--sig", SIGNATURE, "--cc", "9.0", "--header", "out.h", "--name", "short"],
        "'short' is not a name in C",
    ),
    "no signature": (2, ["build", "FILE:kernel", "--cc", "9.0", "-o", "out"], "--sig"),
    "no such directory": (
        1,
        ["build", "FILE:kernel", "--sig", SIGNATURE, "--cc", "9.0", "-o", "missing/out.cubin"],
        "No such file or directory",
    ),
    "no size": (2, ["cache", "prune", "much"], "'much' is not a size"),
    "no command": (2, [], "COMMAND"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_reported_without_a_traceback(kernels, capsys, monkeypatch, tmp_path, name):
    code, arguments, message = ERRORS[name]
    monkeypatch.chdir(tmp_path)
    found, printed = failing(capsys, *(argument.replace("FILE", kernels) for argument in arguments))
    assert message in printed
    assert found == code


DAMAGED = """
from numba import cuda
from numba.cuda import autolink

class Damaged(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("f", returns=x)
    def __numba_cuda_link__(self, x):
        return "CUBIN"
damaged = Damaged()
def kernel(x):
    x[0] = damaged(x[0])
"""


def test_explain_reports_code_that_crashes_the_linker(tmp_path, capsys, monkeypatch):
    """The linker is made to crash in the child process, as on damage that differs between its versions."""
    child, cubin = tmp_path / "child.py", tmp_path / "damaged.cubin"
    text = Path(trial.trial_child.__file__).read_text()
    call = "            nvjitlink.add_data("
    assert call in text
    child.write_text(text.replace(call, "            __import__('os').abort()\n" + call))
    cubin.write_bytes(compiled('extern "C" __device__ int f(int x) { return x + 1; }', "cubin"))
    (tmp_path / "damaging.py").write_text(DAMAGED.replace("CUBIN", str(cubin)))
    monkeypatch.setattr(sys, "path", [*sys.path])
    command = ("explain", f"{tmp_path / 'damaging.py'}:kernel", "--sig", SIGNATURE, "--cc", "9.0")
    trial._helper.close()  # the next one runs the changed script
    with monkeypatch.context() as patched:
        patched.setattr(trial.trial_child, "__file__", str(child))
        code, printed = failing(capsys, *command)
    assert code == 1
    assert "does not survive it (SIGABRT)" in printed
    assert str(cubin) in printed
    assert "damaging.py:" in printed
    assert main(command) == 0


def test_a_file_that_cannot_be_run_shows_where(tmp_path, capsys):
    (tmp_path / "broken.py").write_text("x = 1\nraise RuntimeError('not today')\n")
    code, printed = failing(capsys, "explain", f"{tmp_path / 'broken.py'}:kernel")
    assert code == 1
    assert "cannot be run" in printed
    assert "line 2" in printed
    assert "RuntimeError: not today" in printed


def test_the_cache_can_be_shown_and_cleared(kernels, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE", "1")

    def run(*arguments, code=0):
        reset_store()  # as in a process of its own
        assert main(arguments) == code
        return capsys.readouterr().out

    out = str(tmp_path / "out.cubin")
    run("build", f"{kernels}:kernel", "--sig", SIGNATURE, "--cc", "9.0", "-o", out)
    assert "program: 1 entries" in run("cache", "info")
    assert "program 'add.cu'" in run("cache", "why", "add.cu", "--kind", "program")
    assert "nothing is cached" in run("cache", "why", "subtract.cu", code=1)
    assert run("cache", "prune", "1G") == "0 entries removed\n"
    assert int(run("cache", "prune", "0").split()[0]) >= 3
    assert run("cache", "clear") == "0 entries removed\n"
    reset_store()


def test_closing_the_output_early_is_not_an_error():
    command = [sys.executable, "-m", "numba.cuda.autolink", "doctor"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 1
    assert "Broken pipe" not in errors


def test_help_has_examples(capsys):
    for command in ("explain", "build"):
        with pytest.raises(SystemExit) as end:
            main([command, "--help"])
        assert end.value.code == 0
        assert f"numba-cuda-autolink {command} mykernels.py:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("out", "header"),
    [("x.h", "x.h"), ("x.cubin", "x.cubin.json"), ("x.kernels", "./x.kernels"), ("x", "y/../x")],
)
def test_a_header_replaces_no_other_output(capsys, tmp_path, monkeypatch, out, header):
    monkeypatch.chdir(tmp_path)
    code = main(["build", "f.py:k", "--sig", "void(int32)", "--cc", "9.0", "-o", out, "--header", header])
    assert code == 2 and "would be written twice" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_second_signature_is_an_error(capsys):
    with pytest.raises(SystemExit) as end:
        main(["build", "f.py:k", "--sig", "void(int32)", "--sig", "void(int64)", "--cc", "9.0", "-o", "x.kernels"])
    assert end.value.code == 2
    assert "argument --sig: given twice" in capsys.readouterr().err


# The doctor

GOOD = {"numba-cuda": "0.30.4", "numba": "0.68.0", "numpy": "2.4.6", "cuda-bindings": "13.0.0"}


def test_the_doctor_finds_nothing_wrong_here(capsys):
    code = doctor_command.run()
    text = capsys.readouterr().out
    assert "numba-cuda-autolink" in text
    assert "libnvrtc" in text or "nvrtc64" in text
    assert "active" in text
    assert (code, "no known conflicts" in text) in ((0, True), (1, False))


@pytest.mark.parametrize(
    ("installed", "what", "fix"),
    [
        ({"numpy": "2.5.0"}, "NumPy 2.5.0 with numba-cuda 0.30.4", "numpy<2.5"),
        ({"numba-cuda": "0.30.2"}, "Numba 0.68.0 with numba-cuda 0.30.2", "numba<0.66"),
        ({"numba-cuda": "0.29.0", "numba": "0.63.0"}, "older than 0.30.2", "pip install -U numba-cuda"),
        ({"numba-cuda": "not installed"}, "numba-cuda is not installed", "pip install"),
    ],
)
def test_the_doctor_knows_conflicts(installed, what, fix):
    found = [conflict for conflict in doctor_command.conflicts({**GOOD, **installed}) if what in conflict.what]
    assert len(found) == 1
    assert fix in found[0].fix


def test_the_doctor_knows_variables_and_versions(monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK", "0")
    monkeypatch.setattr(doctor_command, "_version", lambda module, function: (13, 2) if module == "nvrtc" else (13, 0))
    monkeypatch.setattr(doctor_command, "_driver_version", lambda: (12, 4))
    found = [str(conflict) for conflict in doctor_command.conflicts(GOOD)]
    assert any("NUMBA_CUDA_AUTOLINK=0" in conflict for conflict in found)
    assert any("NVRTC 13.2 is newer than nvJitLink 13.0" in conflict for conflict in found)
    assert any("the driver is for CUDA 12.4, the libraries are for CUDA 13.2" in conflict for conflict in found)


def test_the_doctor_works_where_numba_cuda_cannot_be_imported(tmp_path):
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise AttributeError('row_stack is gone')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    script = "import sys; from numba_cuda_autolink.command_entry import main; sys.argv[1:] = [{!r}]; sys.exit(main())"

    def run(command):
        return subprocess.run(
            [sys.executable, "-c", script.format(command)], env=environment, capture_output=True, text=True
        )

    done = run("doctor")
    assert done.returncode == 1
    assert "numba.cuda cannot be imported: AttributeError: row_stack is gone" in done.stdout
    done = run("cache")
    assert done.returncode == 1
    assert "what to do: numba-cuda-autolink doctor" in done.stderr
