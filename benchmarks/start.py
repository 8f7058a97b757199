# SPDX-License-Identifier: BSD-2-Clause
"""Measure how long a fresh process takes to its first checked result: a finished kernel that uses CUB, and beside it
CuPy's RawModule with a warm cache, and numba-cuda.

Run it with ``python benchmarks/start.py`` on a machine with a GPU. Each figure is the median over processes, which take
turns. The last lines are the table.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KERNEL = '''
import numpy as np
from numba import cuda
from numba.cuda import autolink

class BlockSum(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("block_sum", returns=x)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource("""
            #include <cub/block/block_reduce.cuh>
            extern "C" __device__ float block_sum(float x) {
                using Reduce = cub::BlockReduce<float, 128>;
                __shared__ typename Reduce::TempStorage storage;
                return Reduce(storage).Sum(x); }""")

block_sum = BlockSum()

def kernel(out, x):
    total = block_sum(x[cuda.grid(1)])
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = total

def plain(out, x):
    i = cuda.grid(1)
    cuda.atomic.add(out, cuda.blockIdx.x, x[i])
'''
BUILD = """
import sum_kernel
from numba.cuda import autolink
built = autolink.build(sum_kernel.kernel, "void(float32[::1], float32[::1])", entry_name="block_sum_kernel")
built.save("sum.kernels")
"""
FINISHED = """
import ctypes, struct
import numba_cuda_autolink
from cuda.bindings import driver
kernel = numba_cuda_autolink.load("sum.kernels").block_sum_kernel
driver.cuInit(0)
driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(driver.cuDeviceGet(0)[1])[1])
class Floats:
    def __init__(self, count):
        self.pointer = int(driver.cuMemAlloc(4 * count)[1])
        data = self.pointer, False
        self.__cuda_array_interface__ = {"data": data, "shape": (count,), "typestr": "<f4", "version": 3}
out, x = Floats(4), Floats(512)
driver.cuMemsetD32(x.pointer, 0x3F800000, 512)
kernel[4, 128](out, x)
host = (ctypes.c_float * 4)()
driver.cuMemcpyDtoH(ctypes.addressof(host), out.pointer, 16)
assert list(host) == [128.0] * 4, list(host)
"""
CUPY = """
import os, cupy as cp
source = r'''
#include <cub/block/block_reduce.cuh>
extern "C" __global__ void kernel(float* out, const float* x) {
    using Reduce = cub::BlockReduce<float, 128>;
    __shared__ typename Reduce::TempStorage storage;
    float total = Reduce(storage).Sum(x[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = total; }'''
headers = [f"-I{path}" for path in os.environ["HEADERS"].split(os.pathsep)]
module = cp.RawModule(code=source, options=("-std=c++17", *headers))
out, x = cp.zeros(4, cp.float32), cp.ones(512, cp.float32)
module.get_function("kernel")((4,), (128,), (out, x))
assert out.get().tolist() == [128.0] * 4
"""
JIT = """
import numpy as np
import sum_kernel
from numba import cuda
kernel = cuda.jit(cache=True)(sum_kernel.{kernel})
out = cuda.to_device(np.zeros(4, np.float32))
kernel[4, 128](out, cuda.to_device(np.ones(512, np.float32)))
assert out.copy_to_host().tolist() == [128.0] * 4
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    from cuda import pathfinder

    folder = Path(tempfile.mkdtemp())
    headers = [pathfinder.locate_nvidia_header_directory(name) for name in ("cccl", "cudart")]
    paths = [str(each.abs_path) for each in headers if each is not None and each.abs_path]
    environment = {**os.environ, "HEADERS": os.pathsep.join(paths), "PYTHONPATH": str(folder)}
    (folder / "sum_kernel.py").write_text(KERNEL)
    programs = {
        "Python alone": "",
        "import cuda.bindings.driver, and a context": FINISHED.partition("kernel = ")[0]
        + ("driver.cuInit(0); driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(driver.cuDeviceGet(0)[1])[1])"),
        "ours, a finished kernel with CUB": FINISHED,
        "CuPy RawModule with CUB, cached": CUPY,
        "ours, cache=True with CUB": JIT.format(kernel="kernel"),
        "numba-cuda, cache=True, without CUB": JIT.format(kernel="plain"),
    }
    plain = {**environment, "NUMBA_CUDA_AUTOLINK": "0"}
    environments = {name: plain if name.startswith("numba-cuda") else environment for name in programs}
    files = {}
    for number, (name, text) in enumerate(programs.items()):
        files[name] = folder / f"program{number}.py"
        files[name].write_text(text)
    subprocess.run([sys.executable, "-c", BUILD], cwd=folder, env=environment, check=True)
    # numba-cuda alone imports the module with the kernels, which needs the base class.
    (folder / "plain").mkdir()
    (folder / "plain" / "sum_kernel.py").write_text("from numba import cuda\n" + KERNEL[KERNEL.index("def plain") :])
    plain["PYTHONPATH"] = str(folder / "plain")
    times: dict[str, list[float]] = {name: [] for name in programs}
    for turn in range(options.rounds + 2):
        for name, file in files.items():
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, str(file)], cwd=folder, env=environments[name], capture_output=True, text=True
            )
            if done.returncode:
                raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
            if turn >= 2:  # the first two fill the caches
                times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(each) for name, each in times.items()}
    for name, seconds in medians.items():
        print(f"{name:46s} {seconds:6.3f} s")
    finished, cupy = medians["ours, a finished kernel with CUB"], medians["CuPy RawModule with CUB, cached"]
    jit, numba_cuda = medians["ours, cache=True with CUB"], medians["numba-cuda, cache=True, without CUB"]
    print("\nmeasure                                            ratio  to reach")
    print(f"{'a finished kernel with CUB : CuPy RawModule':50s} {finished / cupy:5.2f}  <= 0.85")
    print(f"{'cache=True with CUB : numba-cuda, plain':50s} {jit / numba_cuda:5.2f}  <= 0.85")


if __name__ == "__main__":
    main()
