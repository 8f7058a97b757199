# SPDX-License-Identifier: BSD-2-Clause
"""No build waits for a shared cache longer than its budget, if what it waits for does not come."""

from __future__ import annotations

import http.server
import random
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import wait

import pytest
from cache_support import cache_warnings, make_key
from numba.cuda.cudadrv.external_code.cache.patience import PER_BUILD, Patience
from numba.cuda.cudadrv.external_code.cache.remote import RemoteEntries
from numba.cuda.cudadrv.external_code.cache.remote_settings import RemoteSettings
from numba.cuda.cudadrv.external_code.timeline import Timeline, recording

NEVER = float("inf")
SETTINGS = RemoteSettings("memory://cache", key=b"the key of this site, 32 bytes..")


class Store:
    """A store whose answers take some time, on a clock of its own."""

    def __init__(self, patience=None):
        self.patience = patience or Patience()
        self.now = 0.0

    def ask(self, latency, *, has_entry=True):
        """Ask one question. Returns the seconds that were waited in vain, and whether there was an entry in time."""
        allowed = self.patience.wait(self.now)
        if not allowed.seconds and not self.patience.is_too_slow:
            return 0.0, False
        waited, in_time = min(allowed.seconds, latency), latency <= allowed.seconds
        self.now += waited
        if not in_time:
            self.patience.note_no_answer(allowed.seconds)
        if latency != NEVER:
            self.patience.note_answer(latency)
        allowed.end(self.now, found=in_time and has_entry)
        return (0.0, True) if in_time and has_entry else (waited, False)

    def build(self, latencies, **how):
        """Build a kernel. Returns the seconds that were waited in vain, and how many entries came in time."""
        with recording(Timeline()):
            answers = [self.ask(latency, **how) for latency in latencies]
        return sum(wasted for wasted, _ in answers), sum(found for _, found in answers)


def test_a_build_waits_once_for_a_store_that_never_answers_and_later_builds_do_not():
    store = Store()
    assert store.build([NEVER] * 8) == (PER_BUILD, 0)
    assert store.build([NEVER] * 8) == (0.0, 0)


@pytest.mark.parametrize("latency", [0.001, 0.01, 0.04])
def test_a_store_that_answers_in_time_is_asked_each_time(latency):
    """Waiting that ends with an entry costs nothing, however often."""
    store = Store()
    assert [store.build([latency] * 20) for _ in range(10)] == [(0.0, 20)] * 10


def test_what_is_not_there_is_paid_and_what_is_there_is_not():
    store = Store()
    assert store.build([0.02], has_entry=False) == (0.02, 0)
    with recording(Timeline()):
        assert [store.ask(0.02, has_entry=False)[0] for _ in range(5)] == pytest.approx([0.02, 0.02, 0, 0, 0])
    assert store.build([0.02] * 5) == (0.0, 5), "the next build has a budget of its own"


def test_a_store_that_is_slower_than_a_build_may_wait_is_waited_for_when_it_has_become_faster():
    store = Store()
    assert store.build([0.2] * 4) == (PER_BUILD, 0)
    assert store.build([0.2] * 40) == (0.0, 0)
    wasted, found = store.build([0.01] * 20)
    assert wasted == 0.0 and found > 10


def test_a_longer_wait_can_be_set():
    assert Store(Patience(1.0)).build([0.2] * 40) == (0.0, 40)


def test_a_question_outside_of_any_build_has_a_budget_of_its_own():
    store = Store()
    assert store.ask(0.03, has_entry=False) == (0.03, False)
    assert store.ask(0.03, has_entry=False) == (pytest.approx(0.03), False)


def test_what_a_hook_builds_draws_on_the_budget_of_the_build_that_asks_it():
    store = Store()
    with recording(Timeline()):
        with recording(Timeline()):
            store.ask(0.04, has_entry=False)
        assert store.ask(0.04, has_entry=False) == (0.0, False)


def test_threads_of_a_build_may_wait_at_the_same_time():
    patience = Patience()
    with recording(Timeline()):
        first, second = patience.wait(0.0), patience.wait(0.03)
        assert (first.seconds, second.seconds) == (PER_BUILD, pytest.approx(0.02))
        first.end(0.04, found=False)
        assert patience.wait(0.04).seconds == pytest.approx(0.01)
        second.end(0.05, found=False)
        assert patience.wait(0.05).seconds == 0


def test_whatever_a_store_does_no_build_waits_longer_in_vain_than_its_budget():
    draw = random.Random(2)
    store = Store()
    for _ in range(2000):
        latencies = draw.choices([0.001, 0.02, 0.045, 0.06, 0.4, 100.0, NEVER], k=draw.randint(1, 8))
        wasted, _ = store.build(latencies, has_entry=draw.random() < 0.5)
        assert wasted <= PER_BUILD + 1e-9


class StalledServer:
    """An HTTP server on this machine that answers no question until it is released, and has no entries."""

    def __init__(self):
        self.released = threading.Event()
        released = self.released

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                released.wait(60)
                self.send_error(404)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def read(self, name):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.server.server_port}/{name}") as answer:
                return answer.read()
        except urllib.error.HTTPError:
            return None

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


class CountingClock:
    """A clock that stands still but for waiting that ends with nothing, which takes exactly as long as it may."""

    def __init__(self):
        self.time, self.waits = 0.0, []

    def now(self):
        return self.time

    def wait(self, future, seconds):
        if not wait([future], min(seconds, 0.001)).done:
            self.time += seconds
            self.waits.append(seconds)


@pytest.fixture
def stalled():
    server = StalledServer()
    yield server
    server.close()


def test_each_build_waits_for_a_server_that_stalls_no_longer_than_its_budget(stalled):
    clock = CountingClock()
    entries = RemoteEntries(SETTINGS, lambda *entry: None, lambda: stalled, clock)
    with cache_warnings() as warned:
        waited = []
        for number in range(20):
            before = clock.time
            with recording(Timeline()):
                for question in range(5):
                    assert entries.read(make_key(f"{number}-{question}.cu").digest) is None
            waited.append(clock.time - before)
        stalled.released.set()
        while entries._coming:
            time.sleep(0.001)
    assert waited[0] == pytest.approx(PER_BUILD) and max(waited) <= PER_BUILD + 1e-9
    assert sum(waited[1:]) == 0, "it is not waited for again before it has answered"
    assert warned == []
