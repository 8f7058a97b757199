# SPDX-License-Identifier: BSD-2-Clause
"""What several jobs need is assigned to one of them, and no two jobs wait for each other."""

from __future__ import annotations

import random

from numba.cuda.autolink.many_kernels.assignment import Assignment

A, B, C = b"a", b"b", b"c"


def test_jobs_are_ready_in_order():
    assignment = Assignment(2)
    assert [assignment.next(), assignment.next(), assignment.next()] == [0, 1, None]


def test_the_first_job_that_stops_at_something_builds_it_and_others_wait():
    assignment = Assignment(2)
    assignment.next(), assignment.next()
    assignment.stopped(0, [A], True)
    assignment.stopped(1, [A], True)
    assert (assignment.next(), assignment.next()) == (0, None)
    assert assignment.assigned(0) == {A} and assignment.assigned(1) == frozenset()
    assignment.finished(0)
    assert assignment.next() == 1


def test_a_job_is_ready_again_when_all_that_it_waits_for_is_built():
    assignment = Assignment(3)
    assert [assignment.next() for _ in range(3)] == [0, 1, 2]
    assignment.stopped(0, [A], True)
    assignment.stopped(1, [B], True)
    assignment.stopped(2, [A, B], True)
    assert (assignment.next(), assignment.next(), assignment.next()) == (1, 0, None)
    assignment.finished(0)
    assert assignment.next() is None
    assignment.stopped(1, [C], True)  # B, which was assigned to it, is built
    assert {assignment.next(), assignment.next()} == {1, 2}


def test_a_job_builds_its_own_part_before_it_waits_for_the_rest():
    assignment = Assignment(2)
    assignment.next(), assignment.next()
    assignment.stopped(0, [A], True)
    assignment.stopped(1, [A, B], True)
    assert assignment.next() == 1 and assignment.assigned(1) == {B}
    assignment.stopped(1, [A], True)
    assert assignment.next() == 0 and assignment.next() is None


def test_without_a_common_cache_what_is_built_is_fetched_once():
    assignment = Assignment(2)
    assignment.next(), assignment.next()
    assignment.stopped(0, [A], False)
    assignment.next()
    assignment.finished(0)
    assignment.stopped(1, [A], False)
    assert assignment.next() == 1 and assignment.to_fetch(1) == {A} and assignment.assigned(1) == frozenset()
    assignment.stopped(1, [A], False)  # there is no entry: it cannot be cached
    assert assignment.next() == 1 and assignment.assigned(1) == {A}


def test_jobs_that_wait_for_each_other_are_released():
    assignment = Assignment(2)
    assignment.next(), assignment.next()
    assignment.stopped(0, [A], False)
    assignment.stopped(1, [B], False)
    assignment.next(), assignment.next()
    assignment.stopped(0, [B, A][:1], False)
    assignment.stopped(1, [A], False)
    while assignment.next() is None:
        assert assignment.stop_waiting()
    assert not assignment.stop_waiting() or assignment.next() is not None


def test_any_jobs_end_and_each_thing_is_built_once():
    """Jobs that need random things in random order, attempted by workers in random order with one common cache."""
    draw = random.Random(1)
    for _ in range(200):
        things = [bytes([each]) for each in range(draw.randint(1, 6))]
        needs = [draw.sample(things, draw.randint(0, len(things))) for _ in range(draw.randint(1, 12))]
        assignment, running, cache, builds, finished = Assignment(len(needs)), [], set(), [], set()
        while len(finished) < len(needs):
            while len(running) < 3 and (job := assignment.next()) is not None:
                running.append((job, assignment.assigned(job)))
            assert running, "all jobs wait for each other"
            job, assigned = running.pop(draw.randrange(len(running)))
            built = [each for each in needs[job] if each in assigned and each not in cache]
            builds += built
            cache.update(built)
            left = [each for each in needs[job] if each not in cache]
            if left:
                assignment.stopped(job, left, True)
            else:
                assignment.finished(job)
                finished.add(job)
        assert sorted(builds) == sorted({each for need in needs for each in need})
