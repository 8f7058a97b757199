# SPDX-License-Identifier: BSD-2-Clause
"""Call CUB and cooperative groups from a Numba kernel, by their C++ names and without a binding.

`cub_block_sum.py` does the same with a class for each primitive. Here a lambda of C++ names the instantiation, and the
compiler tells the type of the result for the types of each call.

    python examples/cub_by_name.py
"""

from __future__ import annotations

import numpy as np
from _frontend import cuda
from _run import compare, run
from numba.cuda import autolink

THREADS = 128
lib = autolink.cxx("#include <cub/block/block_reduce.cuh>\n#include <cooperative_groups.h>")
block_max = lib.expr(f"""[](auto x) {{
    using Reduce = cub::BlockReduce<decltype(x), {THREADS}>;
    __shared__ typename Reduce::TempStorage storage;
    __syncthreads();  // an earlier call may still be reading the storage
    return Reduce(storage).Reduce(x, [](auto a, auto b) {{ return a < b ? b : a; }});
}}""")
neighbour = lib.expr(
    "[](auto x) { auto warp = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());"
    " return warp.shfl_xor(x, 1); }"
)


@block_max.python
def _(x):
    return values_of_the_block(x).max()


@neighbour.python
def _(x):
    return values_of_the_block(x)[cuda.threadIdx.x ^ 1]


values = [None] * THREADS


def values_of_the_block(x):
    """Return the values of all threads of a block, in the simulator."""
    cuda.syncthreads()
    values[cuda.threadIdx.x] = x
    cuda.syncthreads()
    found = np.array(values)
    cuda.syncthreads()
    return found


@cuda.jit
def kernel(x, largest, swapped):
    i = cuda.grid(1)
    swapped[i] = neighbour(x[i])
    result = block_max(x[i])
    if cuda.threadIdx.x == 0:
        largest[cuda.blockIdx.x] = result


def check(dtype, blocks=3):
    x = np.random.default_rng(1).integers(0, 10_000, (blocks, THREADS)).astype(dtype)
    largest, swapped = np.zeros(blocks, dtype), np.zeros(x.size, dtype)
    kernel[blocks, THREADS](x.ravel(), largest, swapped)
    pairs = x.reshape(-1, 2)[:, ::-1].ravel()
    return all(
        [compare(f"block maxima, {dtype}", largest, x.max(axis=1), 0), compare(f"swaps, {dtype}", swapped, pairs, 0)]
    )


def launch():
    return all([check(dtype) for dtype in ("int32", "float64")])


def link():
    for dtype in ("int32", "float64"):
        yield dtype, autolink.build(kernel, f"void({dtype}[::1], {dtype}[::1], {dtype}[::1])", cc=(9, 0))


if __name__ == "__main__":
    run(launch, link)
