# SPDX-License-Identifier: BSD-2-Clause
"""Estimate the volume of a ball in five dimensions with cuRAND's pseudorandom and quasirandom numbers.

Philox's points are random: the error falls as one over the square root of their number. Sobol's points fill the cube
evenly: the error falls nearly as one over their number.

    pip install nvidia-curand         (nvidia-curand-cu12 for CUDA 12)
    python examples/curand_monte_carlo.py
"""

from __future__ import annotations

import math

import numpy as np
from _frontend import cuda
from _run import run, simulated
from curand import Philox, Sobol, direction_vectors
from curand.generator import need_headers
from numba.cuda import autolink

DIMENSIONS = 5
EXACT = math.pi**2.5 / math.gamma(3.5) / 2**DIMENSIONS  # the fraction of the cube inside the ball

philox, sobol = Philox(), Sobol()


@cuda.jit
def hits_of_philox(counts, points, seed):
    """Count how many of each thread's points are in the ball. Each thread has its own subsequence."""
    thread = cuda.grid(1)
    state = cuda.local.array(1, philox.state_type)
    philox.init(state, seed, thread)
    hits = 0
    for _ in range(points):
        square = np.float32(0)
        for _ in range(DIMENSIONS):
            x = philox.uniform(state)
            square += x * x
        hits += square < 1
    counts[thread] = hits


@cuda.jit
def hits_of_sobol(counts, points, directions):
    """Count the same with Sobol's sequence. Each thread takes a segment of it, with one state per dimension."""
    thread = cuda.grid(1)
    states = cuda.local.array(DIMENSIONS, sobol.state_type)
    for d in range(DIMENSIONS):
        sobol.init(states[d : d + 1], directions[d], thread * points)
    hits = 0
    for _ in range(points):
        square = np.float32(0)
        for d in range(DIMENSIONS):
            x = sobol.uniform(states[d : d + 1])
            square += x * x
        hits += square < 1
    counts[thread] = hits


def fraction(kernel, points, source, blocks, threads):
    counts = np.zeros(blocks * threads, np.int32)
    kernel[blocks, threads](counts, points, source)
    return counts.sum(dtype=np.int64) / (counts.size * points)


def launch():
    blocks, threads = (1, 4) if simulated() else (64, 128)
    most = 8 if simulated() else 4096
    directions = direction_vectors(DIMENSIONS)
    right = True
    print(f"  {'points':>10}   {'pseudorandom error':>20}   {'quasirandom error':>20}")
    for points in (most // 8, most):
        pseudo = abs(fraction(hits_of_philox, points, np.uint64(7), blocks, threads) - EXACT)
        quasi = abs(fraction(hits_of_sobol, points, directions, blocks, threads) - EXACT)
        count = points * blocks * threads
        print(f"  {count:>10}   {pseudo:>20.1e}   {quasi:>20.1e}")
        deviation = math.sqrt(EXACT * (1 - EXACT) / count)
        right = right and pseudo <= 5 * deviation and quasi <= (5 if simulated() else 0.5) * deviation
    bounds = "five standard deviations" if simulated() else "five standard deviations, and Sobol's within half of one"
    print("  All within" if right else "  WRONG: not all within", bounds)
    return right


def link():
    yield "pseudorandom", autolink.build(hits_of_philox, "void(int32[::1], int64, uint64)", cc=(9, 0))
    yield "quasirandom", autolink.build(hits_of_sobol, "void(int32[::1], int64, uint32[:, ::1])", cc=(9, 0))


if __name__ == "__main__":
    need_headers()
    print(f"The exact fraction is {EXACT:.6f}.")
    run(launch, link)
