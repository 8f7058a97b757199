# SPDX-License-Identifier: BSD-2-Clause
"""Spread and interpolate nonuniform points with a window in Python (examples/nufft_window.py), and with CUDA C++.

Both use the template examples/nufft_window/window_sums.cuh. The kernels of native/nufft_window.cu have the windows in
C++: one by a formula with a parameter, and one by a table. Points are sorted by the tile of the grid that they are in.
"""

from __future__ import annotations

import functools

import numpy as np
from cuda.core import Device, LaunchConfig, launch
from nufft_window import FOLDER, THREADS, WindowSums, make_kernels, window_case
from numba import cuda

from contests.native import compiled_native
from contests.timing import in_turn, line

SIZES = (1024, 1024)
POINTS = 1 << 21
TILE = 32


def native_kernels(sizes, width, arch="sm_90"):
    """Return the code of the kernels ``spread_formula``, ``interpolate_formula``, ``spread_table`` and
    ``interpolate_table`` in CUDA C++, and the name of its compiler.

    Their parameters are device pointers in the order of `make_kernels`, the number of elements after the table, and
    the number of points at the end.
    """
    defines = {"WIDTH": width, "SIZE_0": sizes[0], "SIZE_1": sizes[1]}
    return compiled_native("nufft_window.cu", defines, arch, [FOLDER])


def run():
    device = Device()
    device.set_current()
    rng = np.random.default_rng(0)
    x, y = sorted_points(rng)
    values = random_complex(rng, POINTS)
    grid = random_complex(rng, SIZES)
    for width in 4, 7:
        code, compiler = native_kernels(SIZES, width, f"sm_{device.arch}")
        for window in "formula", "table":
            function, state = window_case(window, width, np.float32)
            spread, interpolate = make_kernels(WindowSums(SIZES, width, function))
            weights = reference_weights(x, y, width, function, state)
            for kernel, source, reference in (
                (spread, values, reference_spread),
                (interpolate, grid, reference_interpolate),
            ):
                name = f"{kernel.py_func.__name__}_{window}"
                kernels, arguments = (kernel, code.get_kernel(name)), (x, y, source, state)
                ours, native, error, own_error = measure(device, kernels, arguments, reference(source, weights))
                title = f"{name.replace('_', ', window by ')}, width {width}"
                line(title, "Mp/s", ours, native, error, own_error, f"CUDA C++ by {compiler}")


def measure(device, kernels, arguments, expected):
    """Return the rates of both kernels in millions of points per second, and their errors, of one launch."""
    x, y, source, state = arguments
    has_table = isinstance(state, np.ndarray)
    inputs = [cuda.to_device(each) for each in (x, y, source)]
    state = cuda.to_device(state) if has_table else state
    results = {which: cuda.to_device(np.zeros(expected.shape, np.complex64)) for which in ("ours", "native")}
    blocks = -(-POINTS // THREADS)
    pointers = [each.device_ctypes_pointer.value for each in inputs]
    passed = [state.device_ctypes_pointer.value, np.int32(state.size)] if has_table else [np.float32(state)]
    last = [results["native"].device_ctypes_pointer.value, np.int32(POINTS)]
    config = LaunchConfig(grid=blocks, block=THREADS)
    ours, native = kernels
    launches = {
        "ours": functools.partial(ours[blocks, THREADS], *inputs, state, results["ours"]),
        "native": functools.partial(launch, device.default_stream, config, native, *pointers, *passed, *last),
    }
    errors = {}
    for which, start in launches.items():
        start()
        errors[which] = np.linalg.norm(results[which].copy_to_host() - expected) / np.linalg.norm(expected)
    rates = {which: POINTS / seconds / 1e6 for which, seconds in in_turn(launches, rounds=30).items()}
    return *rates.values(), *errors.values()


def sorted_points(rng):
    """Return points on the grid, sorted by tiles of the grid."""
    x, y = (rng.random(POINTS) * size for size in SIZES)
    order = np.lexsort((y // TILE, x // TILE))
    return x[order].astype(np.float32), y[order].astype(np.float32)


def random_complex(rng, shape):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def reference_weights(x, y, width, window, state):
    """Return, for each dimension, the grid points around each point and their weights, each of shape (width, points).

    The weights are interpolated in 2**16 values of the window, to about 1e-6.
    """
    t = np.linspace(0, 1, (1 << 16) + 1)
    values = np.array([window(np.float64(each), state) for each in t])
    result = []
    for places, size in zip((x, y), SIZES, strict=True):
        at = np.ceil(places.astype(np.float64) - width / 2) + np.arange(width)[:, None]
        weights = np.interp(np.abs(at - places) * 2 / width, t, values)
        result.append((at.astype(np.int64) % size, weights))
    return result


def reference_spread(values, weights):
    (rows, across), (columns, along) = weights
    grid = np.zeros(SIZES[0] * SIZES[1], np.complex128)
    for i in range(len(rows)):
        for j in range(len(columns)):
            at, weighted = rows[i] * SIZES[1] + columns[j], values * across[i] * along[j]
            grid += np.bincount(at, weighted.real, grid.size) + 1j * np.bincount(at, weighted.imag, grid.size)
    return grid.reshape(SIZES)


def reference_interpolate(grid, weights):
    (rows, across), (columns, along) = weights
    return sum(
        grid[i, j] * a * b for i, a in zip(rows, across, strict=True) for j, b in zip(columns, along, strict=True)
    )
