# SPDX-License-Identifier: BSD-2-Clause
"""Workers get chunks of jobs where the parent could not start a task for each, and nothing else changes."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest
from many_kernels_support import SIGNATURE, Scale, jobs, pickled, scaling
from numba.cuda import autolink
from numba.cuda.autolink.many_kernels.building import run_all
from numba.cuda.autolink.many_kernels.chunks import ChunkSizes
from numba.cuda.autolink.many_kernels.workers import Workers
from numba.cuda.cudadrv.external_code.cache.store import reset_store


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "cache"))
    before = reset_store()
    yield
    reset_store(before)


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("builds", [False, True])
def test_a_few_workers_get_one_job_at_a_time(workers, builds):
    sizes = ChunkSizes()
    assert sizes.next(10_000, workers, builds=builds) == 1
    sizes.note(0.05, builds=builds)
    assert sizes.next(10_000, workers, builds=builds) == 1


def test_so_do_workers_whose_number_is_not_known():
    sizes = ChunkSizes()
    sizes.note(0.001, builds=False)
    assert sizes.next(10_000, None, builds=False) == sizes.next(10_000, 0, builds=False) == 1


def test_before_any_attempt_has_ended_all_workers_get_some():
    assert ChunkSizes().next(10_000, 1000, builds=False) == 10
    assert ChunkSizes().next(500, 1000, builds=False) == 1


def test_fewer_jobs_or_longer_attempts_make_smaller_chunks():
    sizes = ChunkSizes()
    sizes.note(0.05, builds=False)
    by_ready = [sizes.next(ready, 1000, builds=False) for ready in (0, 1, 100, 1000, 10_000, 100_000)]
    assert by_ready == sorted(by_ready) and by_ready[:3] == [1, 1, 1] and by_ready[-1] > 20
    before = sizes.next(10_000, 1000, builds=False)
    for _ in range(20):
        sizes.note(1.0, builds=False)
    assert sizes.next(10_000, 1000, builds=False) < before


def test_what_builds_programs_is_measured_apart():
    sizes = ChunkSizes()
    for _ in range(20):
        sizes.note(0.01, builds=False)
        sizes.note(2.0, builds=True)
    assert sizes.next(1000, 1000, builds=True) == 1 < sizes.next(1000, 1000, builds=False)


class Recording(ThreadPoolExecutor):
    """An executor that notes how many jobs each task has."""

    def __init__(self):
        super().__init__(1)
        self.sizes = []

    def submit(self, fn, task):
        self.sizes.append(len(task.jobs))
        return super().submit(fn, task)


@pytest.fixture
def recording(monkeypatch):
    """An executor that gets even a few jobs in chunks, as it would thousands."""
    monkeypatch.setattr(ChunkSizes, "next", lambda *_, **__: 4)
    with Recording() as executor:
        yield executor


@pytest.mark.counted
def test_chunks_are_built_in_order_each_program_once(recording, tmp_path):
    log = tmp_path / "generated"
    results, built = run_all(pickled(jobs(8, 2, log)), recording)
    assert max(recording.sizes) == 4 and (built["program"], built["link"]) == (2, 8)
    assert sorted(log.read_text().split()) == ["2", "3"]
    expected = [autolink.build(job.kernel, job.signature, cc=job.cc).code for job in jobs(8, 2, log)]
    assert [each.code for each in results] == expected


def test_an_error_in_a_chunk_is_that_of_one_job(recording, tmp_path):
    class Refusing(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            raise ValueError("only whole numbers")

    class Leaving(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            raise SystemExit("goodbye")

    good = Scale(2, tmp_path / "generated")
    objects = [good, good, Refusing(), good, Leaving(), good]
    many = [(scaling(each, number), SIGNATURE, (9, 0)) for number, each in enumerate(objects)]
    results = autolink.build_many(many, executor=recording, on_error="return", progress=False)
    assert [isinstance(each, autolink.LinkedKernel) for each in results] == [each is good for each in objects]
    assert "only whole numbers" in str(results[2]) and "goodbye" in str(results[4])
    assert max(recording.sizes) == 4


class Losing(Executor):
    """An executor whose workers are killed by each task that has one of the jobs *fatal*."""

    def __init__(self, fatal):
        self.fatal, self.lost = fatal, []

    def submit(self, fn, task):
        future = Future()
        if any(job.job in self.fatal for job in task.jobs):
            self.lost.append(len(task.jobs))
            future.set_exception(RuntimeError("the worker died"))
        else:
            future.set_result(fn(task))
        return future


def test_a_job_that_ends_its_worker_fails_alone_and_the_rest_of_its_chunk_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr(ChunkSizes, "next", lambda *_, **__: 4)
    many = pickled(jobs(8, 2, tmp_path / "generated"))
    executor = Losing({many[5]})
    results, _ = run_all(many, executor)
    assert [str(each) for each in results if isinstance(each, BaseException)] == ["the worker died"]
    assert isinstance(results[5], RuntimeError) and executor.lost[-1] == 1
    assert "The executor did not return this job" in str(autolink.BuildManyError(["f"] * 8, results))


def test_an_executor_that_is_shut_down_fails_all_jobs(tmp_path):
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(autolink.BuildManyError, match=r"^3 of 3 kernels could not be built(.|\n)*after shutdown"):
        autolink.build_many([(scaling, SIGNATURE, (9, 0))] * 3, executor=executor)


def test_ten_thousand_jobs_are_a_few_hundred_tasks_for_a_thousand_workers():
    """Here each attempt takes no time, and says that it took 75 ms."""
    from numba.cuda.autolink.many_kernels.attempts import Attempt

    sizes = []

    class Instant(Executor):
        num_workers = 1000

        def submit(self, fn, task):
            sizes.append(len(task.jobs))
            future = Future()
            future.set_result([Attempt(job.job, (), {}, (), True, 0.075) for job in task.jobs])
            return future

    import cloudpickle

    results, _ = run_all([cloudpickle.dumps(number) for number in range(10_000)], Instant())
    assert results == list(range(10_000)) and len(sizes) < 2000


class TestCounting:
    def test_workers_are_counted_where_an_executor_tells(self):
        class Client:
            def nthreads(self):
                return {"tcp://one": 4, "tcp://two": 8}

        class OfClient(Executor):
            _client = Client()

        assert Workers(OfClient(), 5).count() == 12

        class OfMpi(Executor):
            num_workers = 1000

        assert Workers(OfMpi(), 5).count() == 1000
        assert Workers(ThreadPoolExecutor(3), 5).count() == 3
        assert Workers(Executor(), 5).count() is None

    def test_a_cluster_whose_connection_is_lost_has_an_unknown_number(self):
        class Client:
            def nthreads(self):
                raise OSError("connection closed")

        class OfClient(Executor):
            _client = Client()

        assert Workers(OfClient(), 5).count() is None and Workers(OfClient(), 5).most_tasks() is None

    def test_a_cluster_that_grows_has_a_queue_that_shows_it(self):
        assert Workers(ThreadPoolExecutor(1), 500).most_tasks() >= 50
