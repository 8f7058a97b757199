# SPDX-License-Identifier: BSD-2-Clause
"""Waiting in vain for a shared cache takes at most 50 ms of each kernel's build on average."""

from __future__ import annotations

import random

import pytest
from numba.cuda.cudadrv.external_code.cache.patience import MOST, PER_BUILD, Patience


def ask(patience, latency, *, has_entry=True):
    """Ask a store that answers after *latency* seconds. Returns the seconds waited, and whether they gave an entry."""
    taken = patience.longest_wait()
    if not taken:
        return 0.0, False
    waited = min(taken, latency)
    is_found = has_entry and latency <= taken
    if latency <= taken:
        patience.note_answer(latency)
    else:
        patience.note_no_answer(taken)
    patience.waited(taken, waited, found=is_found)
    if latency > taken and latency != float("inf"):
        patience.note_answer(latency)  # it comes late
    return waited, is_found


def built(patience, kernels, latency, questions=4, **how):
    """The seconds waited in vain, and how many questions were answered in time, while *kernels* are built."""
    wasted, used = 0.0, 0
    for _ in range(kernels):
        for _ in range(questions):
            waited, is_found = ask(patience, latency, **how)
            wasted += 0.0 if is_found else waited
            used += is_found
        patience.note_build()
    return wasted, used


def test_a_store_that_never_answers_costs_its_share_and_no_more():
    patience = Patience()
    assert ask(patience, float("inf")) == (PER_BUILD, False)
    assert ask(patience, float("inf")) == (0.0, False), "the account is empty"
    wasted, _ = built(Patience(), 100, float("inf"))
    assert wasted <= 101 * PER_BUILD


@pytest.mark.parametrize("latency", [0.001, 0.01, 0.04])
def test_a_store_that_answers_quickly_is_asked_each_time(latency):
    assert built(Patience(), 50, latency) == (0.0, 200)


@pytest.mark.parametrize("latency", [0.06, 0.12, 0.3])
def test_a_store_that_answers_slowly_is_used_once_a_few_builds_have_paid_for_the_wait(latency):
    patience = Patience()
    wasted, used = built(patience, 3, latency)
    assert wasted <= 3 * PER_BUILD and used > 0
    assert built(patience, 50, latency) == (0.0, 200)


def test_a_store_that_answers_and_has_nothing_costs_its_share():
    wasted, used = built(Patience(), 100, 0.03, has_entry=False)
    assert wasted <= 101 * PER_BUILD and used == 0


def test_whatever_a_store_does_the_share_is_kept():
    draw = random.Random(2)
    for _ in range(300):
        patience, wasted, kernels = Patience(), 0.0, 60
        for _ in range(kernels):
            latency = draw.choice([0.001, 0.02, 0.06, 0.15, 0.4, 2.0, float("inf")])
            wasted += built(patience, 1, latency, draw.randint(1, 8), has_entry=draw.random() < 0.5)[0]
        assert wasted <= (kernels + 1) * PER_BUILD + MOST + 1e-9


def test_no_single_wait_is_longer_than_the_most():
    patience = Patience()
    for _ in range(100):
        patience.note_build()
    assert patience.longest_wait() == MOST
    patience = Patience()
    patience.note_answer(10.0)
    assert patience.longest_wait() == MOST


def test_a_store_that_stops_to_answer_costs_half_a_second_once():
    patience = Patience()
    assert built(patience, 20, 0.3)[1] > 0
    wasted, _ = built(patience, 1, float("inf"))
    assert wasted <= 2 * MOST
    wasted, _ = built(patience, 100, float("inf"))
    assert wasted <= 101 * PER_BUILD


def test_threads_share_the_account():
    patience = Patience()
    ask(patience, 0.001)
    taken = [patience.longest_wait() for _ in range(5)]
    assert taken[0] > 0 and sum(taken) <= PER_BUILD + MOST
