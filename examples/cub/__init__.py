# SPDX-License-Identifier: BSD-2-Clause
"""Call CUB's block and warp primitives from Numba kernels, for any type, block shape and number of items per thread.

    from cub import BlockLoad, BlockRadixSort, BlockStore

    load, sort, store = BlockLoad(128, 4, "transpose"), BlockRadixSort(128, 4), BlockStore(128, 4, "transpose")

    @cuda.jit
    def sort_tiles(x):
        keys = cuda.local.array(load.items_per_thread, np.float32)
        first = cuda.blockIdx.x * load.tile
        load.load(x, keys, first, x.size - first, np.inf)
        sort.sort(keys)
        store.store(x, keys, first, x.size - first)

Types come from the call: integers, float16, float32 and float64 for all primitives, and complex64 and complex128 for
those that need no order. The primitives manage shared memory: calls need no barriers between them, and a kernel uses as
much as the largest of its block primitives needs, plus the largest of its warp primitives. Operators and comparisons
may be device functions in Python, also with state:

    @cuda.jit(device=True)
    def larger_weight(i, j, weights):
        return i if weights[i] >= weights[j] else j

    best = BlockReduce(128).reduce(index, larger_weight, state=weights)

=====================  =======================================================================
``reduction``          `BlockReduce`, `WarpReduce`
``scan``               `BlockScan`, `WarpScan`
``sort``               `BlockRadixSort`, `BlockMergeSort`, `WarpMergeSort`
``exchange``           `BlockExchange`, `WarpExchange`
``memory``             `BlockLoad`, `BlockStore`
``primitive``          the base class of all primitives: the C function for a call
``arguments``          checks of the types of a call's arguments
``operators``          operators of reductions and scans, comparisons of sorts
``meeting``            exchange of values between threads in the simulator
``combining``          reductions and scans in NumPy, for the simulator
``cxx``                C++ headers: shared memory, operators, items in registers
=====================  =======================================================================
"""

from .exchange import BlockExchange, WarpExchange
from .memory import BlockLoad, BlockStore
from .reduction import BlockReduce, WarpReduce
from .scan import BlockScan, WarpScan
from .sort import BlockMergeSort, BlockRadixSort, WarpMergeSort

__all__ = [
    "BlockExchange",
    "BlockLoad",
    "BlockMergeSort",
    "BlockRadixSort",
    "BlockReduce",
    "BlockScan",
    "BlockStore",
    "WarpExchange",
    "WarpMergeSort",
    "WarpReduce",
    "WarpScan",
]
