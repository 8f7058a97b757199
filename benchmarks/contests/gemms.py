# SPDX-License-Identifier: BSD-2-Clause
"""Multiply matrices by tiles: the kernel of examples/nvmath_gemm.py with our `Tile` and nvmath-python's `Matmul`."""

from __future__ import annotations

import functools

import numpy as np
import nvmath_gemm
from numba import cuda
from nvmath.device import Matmul

from contests.timing import in_turn, line

SIZE = 4096


def run():
    sm = cuda.get_current_device().compute_capability
    for size, dtypes, _ in nvmath_gemm.CASES:
        rng = np.random.default_rng(0)
        a, b = (cuda.to_device(rng.standard_normal((SIZE, SIZE)).astype(dtype)) for dtype in dtypes[:2])
        tiles = {
            "ours": nvmath_gemm.Tile(size, dtypes, sm, **nvmath_gemm.KNOBS),
            "nvmath": Matmul(size, dtypes, "real", **nvmath_gemm.KNOBS),
        }
        results, launches = {}, {}
        for name, tile in tiles.items():
            results[name] = cuda.device_array((SIZE, SIZE), dtypes[2])
            launch = nvmath_gemm.make_kernel(tile, dtypes)[(SIZE // size[1], SIZE // size[0]), tile.block_size]
            launches[name] = functools.partial(launch, a, b, results[name])
        seconds = in_turn(launches, repeat=1)
        rows = slice(0, 64)
        exact = a[rows].copy_to_host().astype(np.longdouble) @ b.copy_to_host().astype(np.longdouble)
        errors = {name: error_of(result[rows].copy_to_host(), exact) for name, result in results.items()}
        title = f"GEMM, tiles of {'x'.join(map(str, size))}, {np.dtype(dtypes[0])}"
        rates = {name: 2 * SIZE**3 / each / 1e9 for name, each in seconds.items()}
        what = "nvmath-python's own method"
        line(title, "GF/s", rates["ours"], rates["nvmath"], errors["ours"], errors["nvmath"], what)


def error_of(result, exact):
    """Return the relative error of *result* in the Frobenius norm."""
    return float(np.linalg.norm((result - exact).astype(float)) / np.linalg.norm(exact.astype(float)))
