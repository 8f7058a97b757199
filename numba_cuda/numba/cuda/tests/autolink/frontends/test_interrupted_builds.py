# SPDX-License-Identifier: BSD-2-Clause
"""Builds that are interrupted at random moments, as by Ctrl-C or a time limit: the exception arrives as it was raised,
and the same process builds on."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import random, signal, sys, time

from numba import cuda
from numba.cuda import autolink


class TimeIsUp(Exception):
    pass


class TooLate(TimeoutError):
    pass


def interrupt(number, frame):
    raise kind("interrupted")


class Adds(autolink.DeviceCallable):
    def __init__(self, amount):
        self.amount = amount

    def __numba_cuda_call__(self, x):
        return autolink.Extern(f"adds{self.amount}", returns=x)

    def __numba_cuda_link__(self, x):
        code = f'extern "C" __device__ int adds{self.amount}(int x) {{ return x + {self.amount}; }}'
        return autolink.CUDASource(code)


def build(amount, lto):
    adds = Adds(amount)

    @cuda.jit(lto=lto)
    def kernel(x):
        x[0] = adds(x[0])

    start = time.perf_counter()
    assert len(autolink.build(kernel, "void(int32[::1])", cc=(9, 0)).inputs) == 1
    return time.perf_counter() - start


rounds, chosen = int(sys.argv[1]), random.Random(int(sys.argv[2]))
signal.signal(signal.SIGALRM, interrupt)
longest, amount, interrupted = 1.0, 0, 0  # the first build of a process loads all registrations
for _ in range(rounds):
    kind, amount = chosen.choice([KeyboardInterrupt, TimeIsUp, TooLate, RuntimeError, ValueError]), amount + 2
    signal.setitimer(signal.ITIMER_REAL, 1e-4 + longest * chosen.random())
    try:
        try:
            build(amount, chosen.random() < 0.7)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:
        # What interrupts typing or lowering, numba-cuda may raise as an error of its own.
        assert not isinstance(error, (autolink.LinkError, autolink.HookError)), repr(error)
        interrupted += 1
    longest = build(amount + 1, True)
print(rounds, "rounds", "interrupted" if 5 * interrupted > rounds else interrupted)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timer signals")
def test_each_interrupt_is_followed_by_a_build_that_succeeds(thorough):
    rounds = 100 if thorough else 12
    command = [sys.executable, "-c", PROGRAM, str(rounds), "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout == f"{rounds} rounds interrupted\n", done.stdout + done.stderr
