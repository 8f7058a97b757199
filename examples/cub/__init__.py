# SPDX-License-Identifier: BSD-2-Clause
"""CUB's block and warp primitives in Numba kernels: one object for each, for any type, block and items per thread.

    from cub import BlockLoad, BlockRadixSort, BlockStore

    load, sort, store = BlockLoad(128, 4, "transpose"), BlockRadixSort(128, 4), BlockStore(128, 4, "transpose")

    @cuda.jit
    def sort_tiles(x):
        keys = cuda.local.array(load.items_per_thread, np.float32)
        first = cuda.blockIdx.x * load.tile
        load.load(x, keys, first, x.size - first, np.inf)
        sort.sort(keys)
        store.store(x, keys, first, x.size - first)

Types come from the call: integers, float16, float32 and float64 for all primitives, complex64 and complex128 where
they have no order. Shared memory is taken care of: calls may follow each other without barriers between them, and a
kernel takes as much as the largest of its block primitives needs, and the largest of its warp primitives.

=====================  =======================================================================
``reduction``          `BlockReduce`, `WarpReduce`
``scan``               `BlockScan`, `WarpScan`
``sort``               `BlockRadixSort`, `WarpMergeSort`
``exchange``           `BlockExchange`, `WarpExchange`
``memory``             `BlockLoad`, `BlockStore`
``primitive``          what they have in common: the C function that a call stands for
``arguments``          checks the types of a call's arguments
``operators``          operators of reductions and scans
``meeting``            where threads meet in the simulator; ``combining``: what NumPy does there
``cxx``                C++ headers: shared memory, operators, items in registers
=====================  =======================================================================
"""

from .exchange import BlockExchange, WarpExchange
from .memory import BlockLoad, BlockStore
from .reduction import BlockReduce, WarpReduce
from .scan import BlockScan, WarpScan
from .sort import BlockRadixSort, WarpMergeSort

__all__ = [
    "BlockExchange",
    "BlockLoad",
    "BlockRadixSort",
    "BlockReduce",
    "BlockScan",
    "BlockStore",
    "WarpExchange",
    "WarpMergeSort",
    "WarpReduce",
    "WarpScan",
]
