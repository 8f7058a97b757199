# SPDX-License-Identifier: BSD-2-Clause
"""Fold rows and find roots with C++ templates that call lambdas: lambdas of Python, by name, and of C++.

`make_folds` and `make_roots` return the Numba kernels, `native_lambdas` those of native/lambdas.cu. Both instantiate
the templates of native/lambdas.cuh.
"""

from __future__ import annotations

import functools

import numpy as np
from cuda.core import Device, LaunchConfig, launch
from numba import cuda
from numba.cuda import autolink

from contests.native import NATIVE, compiled_native
from contests.timing import in_turn, line

SIGNATURE = "void(float32[::1], float32[::1])"
COUNT, SIZE, THREADS = 16, 1 << 24, 256
library = autolink.cxx((NATIVE / "lambdas.cuh").read_text())


def make_folds(count=COUNT):
    """Return a kernel that finds the number of largest magnitude in each row of *count*: ``folds(x, r)``."""
    fold = library.fold

    @cuda.jit
    def folds(x, r):
        i = cuda.grid(1)
        if i < r.size:
            r[i] = fold(x, i * count, count, lambda a, b: a if abs(a) >= abs(b) else b)

    return folds


def make_roots():
    """Return a kernel that finds cube roots: ``roots(x, r)``."""
    newton = library.newton

    @cuda.jit
    def roots(x, r):
        i = cuda.grid(1)
        if i < r.size:
            r[i] = newton(lambda v, a: v * v * v - a, x[i], x[i])

    return roots


def native_lambdas(arch="sm_90"):
    """Return the code of the kernels ``folds`` and ``roots`` in CUDA C++, which take two device pointers and the number
    of results, and the name of its compiler."""
    return compiled_native("lambdas.cu", {"COUNT": COUNT}, arch, [NATIVE])


def run():
    device = Device()
    device.set_current()
    code, compiler = native_lambdas(f"sm_{device.arch}")
    host = np.random.default_rng(0).random(COUNT * SIZE, dtype=np.float32) + 0.5
    signs = np.where(np.arange(host.size) % 3, np.float32(1), np.float32(-1))
    rows = (host * signs).reshape(SIZE, COUNT)
    largest = rows[np.arange(SIZE), np.abs(rows).argmax(axis=1)]
    _measure(device, "fold with a lambda", make_folds(), code.get_kernel("folds"), rows.ravel(), largest, compiler)
    cubes = host[:SIZE]
    expected = np.cbrt(cubes.astype(np.longdouble))
    _measure(device, "Newton's method with a lambda", make_roots(), code.get_kernel("roots"), cubes, expected, compiler)


def _measure(device, title, kernel, native, host, expected, compiler):
    """Measure a kernel, with a lambda of Python and of C++, and print their line."""
    x = cuda.to_device(host)
    results = {name: cuda.device_array(SIZE, np.float32) for name in ("ours", "native")}
    pointers = [each.device_ctypes_pointer.value for each in (x, results["native"])]
    config = LaunchConfig(grid=SIZE // THREADS, block=THREADS)
    launches = {
        "ours": functools.partial(kernel[SIZE // THREADS, THREADS], x, results["ours"]),
        "native": functools.partial(launch, device.default_stream, config, native, *pointers, SIZE),
    }
    rates = {name: SIZE / seconds / 1e9 for name, seconds in in_turn(launches, rounds=30).items()}
    error, own = (float(np.abs(each.copy_to_host() / expected - 1).max()) for each in results.values())
    line(title, "G/s", rates["ours"], rates["native"], error, own, f"lambda of C++ by {compiler}")
