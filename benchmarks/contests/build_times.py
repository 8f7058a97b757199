# SPDX-License-Identifier: BSD-2-Clause
"""Measure how long a kernel with a library object takes to build: the first kernel, and a later one.

Both are built in a new process with empty caches, and again in one with full caches. nvmath-python's own binding of the
same library is measured in the same way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent.parent

PROGRAM = """
import json, sys, time
sys.path[:0] = {paths!r}
import numpy as np
from numba import cuda

{setup}


def seconds(number):
    kernel, launch, args = make(number)
    start = time.perf_counter()
    kernel[launch](*args)
    cuda.synchronize()
    return time.perf_counter() - start


cuda.current_context()
print(json.dumps([seconds(0), seconds(1)]))
"""

FFT = """
if {ours}:
    from nvmath_fft import CuFFTDx, make_kernel
    make_fft = lambda **knobs: CuFFTDx(sm=cuda.get_current_device().compute_capability, **knobs)
else:
    from contests.ffts import nvmath_kernel as make_kernel
    from nvmath.device import FFT
    make_fft = lambda **knobs: FFT(fft_type="c2c", execution="Block", **knobs)
fft = make_fft(size=128, precision=np.float32, direction="forward", elements_per_thread=8, ffts_per_block=8)

def make(number):
    x = cuda.to_device(np.zeros((8, 128), np.complex64))
    return make_kernel(fft), (1, tuple(fft.block_dim), 0, fft.shared_memory_size), (x,)
"""

GEMM = """
import nvmath_gemm
size, dtypes, _ = nvmath_gemm.CASES[1]
if {ours}:
    tile = nvmath_gemm.Tile(size, dtypes, cuda.get_current_device().compute_capability, **nvmath_gemm.KNOBS)
else:
    from nvmath.device import Matmul
    tile = Matmul(size, dtypes, "real", **nvmath_gemm.KNOBS)

def make(number):
    matrices = [cuda.to_device(np.zeros((64, 64), dtype)) for dtype in dtypes]
    return nvmath_gemm.make_kernel(tile, dtypes), (1, tile.block_size), matrices
"""

CUB = """
from contests.block_sums import make_block_sums
def make(number):
    return make_block_sums(256, 16), (1, 256), [cuda.to_device(np.zeros(n, np.float32)) for n in (4096, 1)]
"""

BLOCK_FFT = """
import fft as block_fft
fft = block_fft.FFT(128)
def make(number):
    x = cuda.to_device(np.zeros((64, 128), np.complex64))
    return block_fft.make_kernel(fft), (4, fft.block_dim, 0, fft.shared_memory_size), (x,)
"""


def run():
    print(f"\n{'seconds to build a kernel':36}{'empty caches:':>16}{'':>10}{'full caches:':>16}{'':>10}")
    print(f"{'':36}{'first':>16}{'later':>10}{'first':>16}{'later':>10}")
    for title, setup in (
        ("examples/fft.py", BLOCK_FFT),
        ("examples/cub, load and reduce", CUB),
        ("cuFFTDx, with us", FFT.format(ours=True)),
        ("cuFFTDx, nvmath-python alone", FFT.format(ours=False)),
        ("cuBLASDx, with us", GEMM.format(ours=True)),
        ("cuBLASDx, nvmath-python alone", GEMM.format(ours=False)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            empty, full = (measure(setup, folder) for _ in range(2))
        print(f"{title:36}{empty[0]:16.3f}{empty[1]:10.3f}{full[0]:16.3f}{full[1]:10.3f}", flush=True)


def measure(setup, cache):
    """Return the seconds of a first and of a later build, in a new process, with *cache* as the cache directory."""
    paths = [str(BENCHMARKS), str(BENCHMARKS.parent / "examples")]
    environment = {**os.environ, "NUMBA_CUDA_AUTOLINK_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}
    program = PROGRAM.format(paths=paths, setup=setup)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)
