# SPDX-License-Identifier: BSD-2-Clause
"""The script that ``scale.py`` runs in fresh processes: build one kernel for a GPU that need not be there, and print
the seconds. Its arguments are what is built, how, and of how many objects."""

import sys
import time
import types as pytypes

from numba import cuda
from numba.cuda import codegen, dispatcher, types

CC = (9, 0)
SMALL = 'extern "C" __device__ int f%d(%sint x) { %s }'
CUB = (
    '#include <cub/block/block_reduce.cuh>\nextern "C" __device__ int f%d(int x) {'
    " using R = cub::BlockReduce<int, %d>; __shared__ R::TempStorage s; return R(s).Sum(x); }"
)


def objects(number, unit):
    """Return callable objects: with sources of one *unit*, or without one each with a program that uses CUB."""
    from numba.cuda import autolink

    class Function(autolink.DeviceCallable):
        def __init__(self, index):
            self.index = index

        def __numba_cuda_call__(self, x):
            return autolink.Extern(f"f{self.index}", returns=x)

        def __numba_cuda_link__(self, x):
            name = f"f{self.index}.cu"
            if unit is None:
                return autolink.CUDASource(CUB % (self.index, 32 * (1 + self.index)), name=name)
            return autolink.CUDASource(SMALL % (self.index, "", f"return x * {self.index};"), name=name, unit=unit)

    return [Function(index) for index in range(number)]


def declared(number):
    """Return the same functions for numba-cuda alone."""
    codes = [SMALL % (index, "int *out, ", f"*out = x * {index}; return 0;") for index in range(number)]
    return [
        cuda.declare_device(f"f{index}", "int32(int32)", link=cuda.CUSource(code, name=f"f{index}.cu"))
        for index, code in enumerate(codes)
    ]


def kernel_of(functions):
    """Return a kernel that calls each of *functions* once."""
    names = {f"f{number}": function for number, function in enumerate(functions)}
    body = "".join(f"    y = f{number}(y)\n" for number in range(len(functions)))
    exec(f"def kernel(x):\n    y = x[0]\n{body}    x[0] = y\n", names)
    return names["kernel"]


def build(kernel):
    from numba.cuda import autolink

    autolink.build(kernel, "void(int32[::1])", cc=CC)


def build_alone(kernel):
    """Build *kernel* as a launch does with numba-cuda alone."""
    dispatcher.get_current_device = lambda: pytypes.SimpleNamespace(compute_capability=CC)
    codegen.CUDACodeLibrary._ensure_cc = lambda library, cc: cc or (*CC, "")
    options = {**cuda.jit(kernel).targetoptions, "link": []}
    dispatcher._Kernel(kernel, (types.int32[::1],), **options)._codelibrary.get_cubin()


def main(what, how, number):
    if how == "alone":
        kernel, run = kernel_of(declared(number)), build_alone
    else:
        functions = objects(number, None if what == "programs" else "unit")
        kernel, run = kernel_of(functions), build
        build(kernel_of(objects(1, "first")))  # what a process does once
    start = time.perf_counter()
    run(kernel)
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
