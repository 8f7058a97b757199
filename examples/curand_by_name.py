# SPDX-License-Identifier: BSD-2-Clause
"""Draw random numbers with cuRAND's device functions, by their names. The states stay in global memory.

pip install nvidia-curand         (nvidia-curand-cu12 for CUDA 12)
python examples/curand_by_name.py
"""

from __future__ import annotations

import math

import numpy as np
from _frontend import cuda
from _run import run
from curand.generator import headers, need_headers
from numba import from_dtype
from numba.cuda import autolink, types

need_headers()
lib = autolink.cxx("#include <curand_kernel.h>", include_paths=[headers()])
State = lib.type("curandStatePhilox4_32_10_t")
init, uniform, normal2, poisson = lib.curand_init, lib.curand_uniform, lib.curand_normal2, lib.curand_poisson
MOMENTS = ((0.5, 1 / 12), (0, 1), (0, 1), (3, 3))  # mean and variance


@cuda.jit
def start(states, seed):
    i = cuda.grid(1)
    if i < states.size:
        state = cuda.local.array(1, State.dtype, alignment=State.alignment)
        init(seed, i, 0, state)
        states[i] = state[0]


@cuda.jit
def draw(states, x):
    i = cuda.grid(1)
    if i < states.size:
        state = cuda.local.array(1, State.dtype, alignment=State.alignment)
        state[0] = states[i]
        for j in range(x.shape[1]):
            x[i, j, 0] = uniform(state)
            x[i, j, 1], x[i, j, 2] = normal2(state)
            x[i, j, 3] = poisson(state, 3.0)
        states[i] = state[0]


def launch():
    threads, x = 10_000, np.zeros((2, 10_000, 100, len(MOMENTS)))
    states = cuda.to_device(np.zeros(threads, State.dtype))
    start[-(-threads // 128), 128](states, np.uint64(42))
    for part in x:  # the second launch goes on where the first one ended
        draw[-(-threads // 128), 128](states, part)
    right = len(np.unique(x[..., 0])) > 0.9 * x[..., 0].size  # 0.96: so many of them are equal as float32
    for number, (name, (mean, variance)) in enumerate(
        zip(("uniform", "normal", "normal", "Poisson"), MOMENTS, strict=True)
    ):
        values = x[..., number].ravel()
        bound = 5 * math.sqrt(variance / values.size)
        print(f"  {name:<10} mean {values.mean():8.5f}, expected {mean} ± {bound:.5f}; variance {values.var():.3f}")
        right = right and abs(values.mean() - mean) < bound and abs(values.var() / variance - 1) < 25 * bound
    print("  All within five standard deviations" if right else "  WRONG: not all within five standard deviations")
    return right


def link():
    states = from_dtype(State.dtype)[::1]
    yield "start", autolink.build(start, types.void(states, types.uint64), cc=(9, 0))
    yield "draw", autolink.build(draw, types.void(states, types.float64[:, :, ::1]), cc=(9, 0))


if __name__ == "__main__":
    run(launch, link)
