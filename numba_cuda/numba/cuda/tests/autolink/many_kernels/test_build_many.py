# SPDX-License-Identifier: BSD-2-Clause
"""Many kernels are built by processes: what they share once, all as `build` builds them, whatever becomes of one."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import replace

import cloudpickle
import pytest
from cache_support import SharedFiles, cache_warnings, machines
from numba.core.errors import NumbaError
from numba.cuda import autolink
from numba.cuda.autolink.builds.ahead_of_time import prepare
from numba.cuda.autolink.builds.result import RanLink
from numba.cuda.autolink.many_kernels import pickling
from numba.cuda.autolink.many_kernels.jobs import Job
from numba.cuda.autolink.many_kernels.stages import run_all
from numba.cuda.cudadrv.external_code.cache.settings import CacheSettings
from numba.cuda.cudadrv.external_code.cache.store import CacheStore, reset_store
from numba.cuda.cudadrv.external_code.diagnostics import progress

KERNELS, PROGRAMS = 9, 3
SIGNATURE = "void(float32[::1])"


class Scale(autolink.DeviceCallable):
    """Multiplies by a number, in CUDA C++ that it generates, of which it leaves a line in the file *log*."""

    def __init__(self, factor, log, header=""):
        # As bytes: the content of a file whose path it holds as text would be part of what its answer depends on.
        self.factor, self.log, self.header = factor, os.fsencode(log), header

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"scale_{self.factor}", returns=x)

    def __numba_cuda_link_key__(self, x):
        return self.factor, self.header

    def __numba_cuda_link__(self, x):
        with open(self.log, "a") as log:
            print(self.factor, file=log)
        name = f"scale_{self.factor}"
        code = f'extern "C" __device__ float {name}(float x) {{ return {self.factor} * x; }}'
        return autolink.CUDASource(self.header + code, name=f"{name}.cu")


def scaling(scale, number):
    """A kernel, a closure, which calls *scale*; kernels of other numbers are other code."""

    def kernel(x):
        x[0] = scale(x[0]) + number

    return kernel


def jobs(kernels, programs, log, header=""):
    """So many jobs, which have so many programs in common."""
    scales = [Scale(factor, log, header) for factor in range(2, programs + 2)]
    return [Job(scaling(scales[number % programs], number), SIGNATURE, (9, 0)) for number in range(kernels)]


def pickled(jobs):
    """*jobs* as workers get them, by value: this module is not installed where they run."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        return [pickling.pickle_value(job) for job in jobs]
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """Each test has a cache directory of its own, which is empty."""
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "cache"))
    before = reset_store()
    yield
    reset_store(before)


def lines_of(path):
    return path.read_text().split() if path.exists() else []


def codes(results):
    assert [each for each in results if isinstance(each, BaseException)] == []
    return [each.code for each in results]


class Losing(Executor):
    """An executor whose workers are killed by each task that has one of the jobs *fatal*; then it may be broken."""

    def __init__(self, fatal, breaks=False):
        self.fatal, self.breaks, self.lost = fatal, breaks, []

    def submit(self, fn, *arguments):
        if self.breaks and self.lost:
            raise BrokenExecutor("it is broken")
        future = Future()
        if (job := arguments[2]) in self.fatal:
            self.lost.append(job)
            future.set_exception(BrokenExecutor("it broke") if self.breaks else RuntimeError("the worker died"))
        else:
            future.set_result(fn(*arguments))
        return future


@pytest.mark.counted
class TestSharedWork:
    def test_processes_build_each_program_and_link_once_also_without_a_disk(self, tmp_path, thread):
        log = tmp_path / "generated"
        many = pickled(jobs(KERNELS, PROGRAMS, log))
        results, built, _ = run_all(many)
        assert (built["program"], built["link"]) == (PROGRAMS, KERNELS)
        again, built, _ = run_all(many, thread)
        assert codes(again) == codes(results)
        assert set(built) <= {"answer"}, "a second run finds all that the first one built"
        reset_store(CacheStore(CacheSettings(str(tmp_path / "serial"))))
        serial = [autolink.build(job.kernel, job.signature, cc=job.cc) for job in jobs(KERNELS, PROGRAMS, log)]
        assert codes(results) == codes(serial)
        reset_store(CacheStore(CacheSettings("", on_disk=False)))
        results, built, _ = run_all(pickled(jobs(KERNELS, PROGRAMS, log)), thread)
        assert codes(results) == codes(serial) and built["program"] == PROGRAMS

    def test_the_answer_of_a_class_whose_module_no_worker_has_is_not_stored(self, tmp_path, another_machine):
        """Nothing there tells one version of the class from another."""
        _, built, _ = run_all(pickled(jobs(2, 1, tmp_path / "generated")), another_machine)
        assert "answer" not in built and lines_of(tmp_path / "generated") == ["2"] * 2

    def test_workers_of_another_machine_build_each_program_once(self, tmp_path, another_machine):
        # A header that only another machine's cache knows, for this test.
        many = pickled(jobs(KERNELS, PROGRAMS, tmp_path / "generated", f"// {tmp_path}\n"))
        results, built, _ = run_all(many, another_machine)
        assert len(codes(results)) == KERNELS and built["program"] == PROGRAMS

    def test_links_that_a_launch_looks_for_are_in_the_parents_cache(self, tmp_path, another_machine, thread):
        launched = [replace(job, for_launch=True) for job in jobs(2, 1, tmp_path / "generated", f"// {tmp_path}\n")]
        _, built, _ = run_all(pickled(launched), another_machine)
        assert built["link"] == 2
        _, built, _ = run_all(pickled(launched), thread)
        assert "link" not in built

    def test_functions_of_cxx_are_resolved_and_compiled_once(self, tmp_path, thread):
        library = autolink.cxx(f"namespace own {{ __device__ int half(int x) {{ return x / 2; }} }} // {tmp_path}")
        half = library["own::half"]

        def halving(number):
            def kernel(x):
                x[0] = half(x[0]) + number

            return kernel

        many = pickled([Job(halving(number), "void(int32[::1])", (9, 0)) for number in range(3)])
        results, built, _ = run_all(many, thread)
        assert len(set(codes(results))) == 3
        assert (built["program"], built["names"]) == (1, 1)

    def test_calls_of_different_functions_of_a_source_are_checked_in_one_compile(self, tmp_path, thread):
        text = f"// {tmp_path}\n" + "".join(
            f'extern "C" __device__ float f{number}(float x) {{ return x + {number}; }}\n' for number in range(3)
        )

        class Function(autolink.DeviceCallable):
            def __init__(self, number):
                self.number = number

            def __numba_cuda_call__(self, x):
                return autolink.Extern(f"f{self.number}", returns=x)

            def __numba_cuda_link__(self, x):
                return autolink.CUDASource(text, name="functions.cu")

        many = [Job(scaling(Function(number), 1), SIGNATURE, (9, 0)) for number in range(3)]
        results, built, _ = run_all(pickled(many), thread)
        assert len(codes(results)) == 3 and (built["program"], built["prototype"]) == (1, 3)

    def test_a_worker_finds_the_modules_that_the_parent_finds(self, tmp_path, monkeypatch, another_machine):
        (tmp_path / "found_by_the_parent.py").write_text("def kernel(x):\n    x[0] = 1\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        from found_by_the_parent import kernel

        (built,) = autolink.build_many([(kernel, SIGNATURE, (9, 0))], executor=another_machine)
        assert "found_by_the_parent" in built.entry_name


class TestFailures:
    def test_an_error_comes_back_with_the_line_of_the_call_and_all_others_are_built(self, tmp_path, thread):
        class Refusing(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                raise ValueError("only whole numbers")

        good, bad = Scale(2, tmp_path / "generated"), Refusing()
        broken = Scale(3, tmp_path / "generated", "#error stop here\n")
        many = [(scaling(each, 1), SIGNATURE, (9, 0)) for each in (good, bad, good, broken)]
        results = autolink.build_many(many, executor=thread, on_error="return")
        assert isinstance(results[1], NumbaError) and results[0].code == results[2].code
        assert "only whole numbers" in str(results[1]) and "x[0] = scale(x[0]) + number" in str(results[1])
        assert type(results[3]).__name__ == "LinkError" and "stop here" in str(results[3])
        with pytest.raises(autolink.BuildManyError, match=r"^2 of 4 kernels could not be built\n  job 1, ") as caught:
            autolink.build_many(many, executor=thread)
        assert list(caught.value.errors) == [1, 3] and caught.value.results[0].code == results[0].code
        assert SIGNATURE in str(caught.value) and "only whole numbers" in str(caught.value)
        error = autolink.BuildManyError(["f"], [ValueError("no")])
        assert str(pickle.loads(pickle.dumps(error))) == str(error)

    def test_what_is_printed_has_the_diagnosis_of_each_failed_job(self, capsys):
        place = "at: file.py:3\n      f(x)\n      ^^^^"
        text = f"wrong\n  {place}\n  object: f\n  in C++: f.cu\n  what to do: fix it\n  log: l"
        error = autolink.BuildManyError(list("abcde"), [ValueError(text) for _ in range(5)])
        sys.excepthook(type(error), error, None)
        printed = capsys.readouterr().err
        assert printed.count("ValueError: wrong") == 5 and printed.count("what to do: fix it") == 3
        assert printed.count("          ^^^^\n") == 3 and "in C++" not in printed and "more lines" not in printed
        assert str(error).count("in C++: f.cu") == 5

    @pytest.mark.thorough
    def test_a_job_that_ends_its_process_fails_alone(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_JOBS", "2")  # one would be this process

        class Fatal(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                os.kill(os.getpid(), signal.SIGKILL)

        many = jobs(4, 2, tmp_path / "generated")
        many[1:1] = [autolink.Job(scaling(Fatal(), 1), SIGNATURE, (9, 0))]
        results, _, _ = run_all(pickled(many))
        assert [type(each).__name__ for each in results].count("LinkedKernel") == 4
        assert type(results[1]).__name__ == "BrokenProcessPool"

    @pytest.mark.thorough
    def test_a_job_that_takes_too_long_fails_alone(self, tmp_path):
        class Endless(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                while True:
                    time.sleep(1)

        many = [(scaling(Endless(), 1), SIGNATURE, (9, 0)), (scaling(Scale(2, tmp_path / "log"), 1), SIGNATURE, (9, 0))]
        results = autolink.build_many(many, on_error="return", time_limit=20)
        assert type(results[0]) is TimeoutError and "it took longer than 20 s" in str(results[0])
        assert results[1].code

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"time_limit": 0}, "expected a number of seconds above 0"),
            ({"time_limit": 1, "executor": ThreadPoolExecutor(1)}, "an executor has its own limits"),
            *(({"time_limit": given}, "expected a number of seconds above 0$") for given in ("3", float("inf"))),
            *(({"attempts": given}, "expected a number from 1 on") for given in (0, 1.5, "2")),
            ({"on_error": "ignore"}, 'on_error must be "raise" or "return"'),
            *(({"executor": given}, r"a concurrent.futures.Executor, (.|\n)*get_executor") for given in (3, "dask")),
            *(
                ({"jobs": [given]}, "a job is ")
                for given in (3, (scaling,), (scaling, SIGNATURE, (9, 0), "cubin"), "k")
            ),
            ({"jobs": [(scaling, SIGNATURE, [(8, 0), (9, 0)])]}, "make one job for each"),
            (
                {"jobs": [(scaling, SIGNATURE, cc) for cc in ((9, 0), (1, 2))]},
                r"^job 1, scaling with .*: compute capability 1.2 is not known",
            ),
        ],
    )
    def test_what_means_nothing_is_refused(self, wrong, message):
        with pytest.raises((ValueError, TypeError), match=message):
            autolink.build_many(**{"jobs": [], **wrong})

    @pytest.mark.parametrize("attempts", [1, 2])
    def test_a_job_that_ends_its_worker_is_tried_again_alone_and_all_others_are_built(self, tmp_path, attempts):
        many = pickled(jobs(4, 2, tmp_path / "generated"))
        executor = Losing({many[2]})
        results, _, _ = run_all(many, executor, attempts=attempts)
        assert [str(each) for each in results if isinstance(each, BaseException)] == ["the worker died"]
        assert isinstance(results[2], RuntimeError) and executor.lost == [many[2]] * (1 + attempts)
        assert "The executor did not return this job" in str(autolink.BuildManyError(["f"] * 4, results))

    def test_an_executor_that_broke_is_made_again_if_it_can_be_or_the_error_says_what_to_do(self, tmp_path):
        many, made = pickled(jobs(4, 2, tmp_path / "generated")), []

        def make():
            made.append(Losing({many[0]}, breaks=True))
            return made[-1]

        results, _, _ = run_all(many, make)
        assert [isinstance(each, BaseException) for each in results] == [True, False, False, False]
        assert len(made) == 3
        results, _, _ = run_all(many, Losing({many[0]}, breaks=True))
        assert all(isinstance(each, BrokenExecutor) for each in results)
        assert "pass a function that makes it" in str(autolink.BuildManyError(["f"] * 4, results))

    def test_an_executor_that_is_shut_down_fails_all_jobs(self):
        executor = ThreadPoolExecutor(1)
        executor.shutdown()
        with pytest.raises(autolink.BuildManyError, match=r"^3 of 3 kernels could not be built(.|\n)*after shutdown"):
            autolink.build_many([(scaling, SIGNATURE, (9, 0))] * 3, executor=executor)

    def test_a_job_that_cannot_be_pickled_is_named(self, tmp_path, thread):
        scale = Scale(2, tmp_path)
        scale.lock = threading.Lock()
        many = [Scale(3, tmp_path), scale]
        with pytest.raises(TypeError, match=r"job 1 cannot be pickled: .*lock"):
            autolink.build_many([(scaling(each, 1), SIGNATURE, (9, 0)) for each in many], executor=thread)


def test_jobs_may_come_from_a_generator_and_be_there_twice(tmp_path, thread):
    kernel = scaling(Scale(2, tmp_path / "generated"), 1)
    first, second = autolink.build_many(((kernel, SIGNATURE, (9, 0)) for _ in range(2)), executor=thread)
    assert first.code == second.code


def test_jobs_of_a_generator_are_built_as_they_were_when_they_were_drawn(tmp_path, thread):
    scale = Scale(1, tmp_path / "drawn")

    def jobs():
        for scale.factor in (2, 3):
            yield scaling(scale, 1), SIGNATURE, (9, 0)

    first, second = autolink.build_many(jobs(), executor=thread)
    assert first.code != second.code


def test_a_hook_may_build_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_JOBS", "1")

    class Building(Scale):
        def __numba_cuda_link__(self, x):
            autolink.build_many([(scaling(Scale(3, tmp_path / "generated"), 1), SIGNATURE, (9, 0))])
            return super().__numba_cuda_link__(x)

    (built,) = autolink.build_many([(scaling(Building(2, tmp_path / "generated"), 1), SIGNATURE, (9, 0))])
    assert built.inputs
    assert lines_of(tmp_path / "generated") == ["3", "2"]


def test_options_and_outputs_are_those_of_build(thread):
    def kernel(x):
        x[0] = x[0] * 2 + x[1]

    job = autolink.Job(kernel, SIGNATURE, (9, 0), "ptx", "twice", {"fastmath": True})
    (built,) = autolink.build_many([job], executor=thread)
    expected = autolink.build(kernel, SIGNATURE, cc=(9, 0), output="ptx", entry_name="twice", fastmath=True)
    assert (built.code, built.output, built.entry_name) == (expected.code, "ptx", "twice")


def test_cc_is_that_of_the_jobs_that_have_none(thread):
    def kernel(x):
        x[0] = 1

    many = [(kernel, SIGNATURE), (kernel, SIGNATURE, (8, 0)), autolink.Job(kernel, SIGNATURE)]
    assert [str(each.cc) for each in autolink.build_many(many, cc=(9, 0), executor=thread)] == ["9.0", "8.0", "9.0"]
    with pytest.raises(TypeError, match="make one job for each"):
        autolink.build_many(many, cc=[(8, 0), (9, 0)], executor=thread)


def test_progress_is_shown_in_a_terminal_alone_or_given_to_a_function(thread, capsys, monkeypatch):
    def kernel(x):
        x[0] = 1

    many, steps = [(kernel, SIGNATURE, (9, 0))] * 2, []
    assert autolink.build_many([]) == autolink.build_many(iter(())) == []
    with cache_warnings():
        autolink.build_many(many, executor=thread)
        autolink.build_many(many, executor=thread, progress=lambda *step: steps.append(step))
    assert steps == [("compiling kernels", 1, 2), ("compiling kernels", 2, 2)]
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("COLUMNS", "120")
    autolink.build_many(many, executor=thread, progress=True)
    assert "building kernels" in (shown := capsys.readouterr().err) and "2/2" in shown


def test_workers_show_no_steps_of_their_own(thread, tmp_path, monkeypatch):
    """One bar shows the whole."""
    shown = tmp_path / "shown"

    class Showing(Scale):
        def __numba_cuda_call__(self, x):
            with open(shown, "a") as file:
                print(progress.enabled(), file=file)
            return super().__numba_cuda_call__(x)

    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    kernel = scaling(Showing(2, tmp_path / "log"), 1)
    autolink.build_many([(kernel, SIGNATURE, (9, 0))], executor=thread, progress=False)
    assert set(lines_of(shown)) == {"False"} and progress.enabled()


def test_entries_that_workers_could_not_share_are_counted(tmp_path, thread):
    files = SharedFiles()
    store = machines(tmp_path, files)()
    reset_store(store)

    def full():
        raise OSError(28, "No space left on device")

    files.fault_of_writes = full
    with cache_warnings() as warned:
        autolink.build_many([(scaling(Scale(2, tmp_path / "log"), 1), SIGNATURE, (9, 0))], executor=thread)
    unstored = store.remote.flush(0)
    assert unstored and any(f"could not write {unstored} entries to the shared cache" in text for text in warned)


@pytest.mark.parametrize("output", ["cubin", "ptx"])
def test_a_plan_and_the_code_of_a_kernel_can_be_pickled(tmp_path, output):
    kernel = scaling(Scale(2, tmp_path / "log"), 1)
    prepared = prepare(kernel, SIGNATURE, (9, 0), output, None, {})
    copied = pickle.loads(pickle.dumps(prepared.request))
    assert copied == prepared.request
    expected = autolink.build(kernel, SIGNATURE, cc=(9, 0), output=output).code
    assert RanLink.of(copied).code == prepared.link().code == expected
