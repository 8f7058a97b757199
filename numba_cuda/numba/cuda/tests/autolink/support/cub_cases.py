# SPDX-License-Identifier: BSD-2-Clause
"""Kernels that call every CUB primitive of examples/cub, compared with NumPy.

    python cub_cases.py int32:8x4:4:0 ...

runs cases in the simulator and prints what is wrong.
"""

from __future__ import annotations

import operator
import sys
from dataclasses import dataclass

import numpy as np
from numba import cuda
from repository import EXAMPLES, module

cub = module(EXAMPLES, "cub")

BLOCKS = 3
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
REALS = (*INTEGERS, "float16", "float32", "float64")
NUMBERS = (*REALS, "complex64", "complex128")
BLOCK_SHAPES = (32, 96, 128, 256, (16, 6))
ITEMS = (1, 4, 7)
LOADS = ("direct", "striped", "vectorize", "transpose", "warp_transpose", "warp_transpose_timesliced")


@dataclass(frozen=True)
class Case:
    """One type, shape of a block and number of items; ``number`` chooses algorithms."""

    dtype: str
    block: int | tuple
    items: int
    number: int = 0

    def __str__(self):
        shape = self.block if isinstance(self.block, tuple) else (self.block,)
        return f"{self.dtype}:{'x'.join(map(str, shape))}:{self.items}:{self.number}"

    @classmethod
    def parse(cls, text):
        dtype, block, items, number = text.split(":")
        shape = tuple(map(int, block.split("x")))
        return cls(dtype, shape if len(shape) > 1 else shape[0], int(items), int(number))

    @property
    def threads(self):
        return int(np.prod(self.block))

    @property
    def tile(self):
        return self.threads * self.items

    @property
    def lto(self):
        return self.number % 4 != 3

    @property
    def warp(self):
        return (32, 16, 8, 4, 2)[self.number % 5] if self.threads % 32 == 0 else 4

    @property
    def load(self):
        return LOADS[self.number % len(LOADS)]

    @property
    def store(self):
        return LOADS[(self.number + 3) % len(LOADS)]

    @property
    def lead(self):
        """Elements before the first tile, so that tiles are not aligned."""
        return 0 if "vectorize" in (self.load, self.store) else 3


def matrix():
    """Return two cases of every type, which combine every shape of a block with every number of items."""
    return [
        Case(dtype, BLOCK_SHAPES[number % len(BLOCK_SHAPES)], ITEMS[number % len(ITEMS)], number)
        for number, dtype in enumerate(dtype for dtype in NUMBERS for _ in range(2))
    ]


def values_for(case, size):
    """Return numbers from the whole range of the type, some repeated; floats have well-conditioned sums."""
    rng = np.random.default_rng(case.number)
    dtype = np.dtype(case.dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        pool = rng.integers(info.min, info.max, 50, dtype, endpoint=True)
        pool[:3] = info.min, info.max, 0
    elif dtype == np.float16:
        pool = np.arange(-2, 3)  # sums are exact
    else:
        pool = rng.standard_normal(50)
        if dtype.kind == "c":
            pool = pool + 1j * rng.standard_normal(50)
    return rng.choice(pool, size).astype(dtype)


def jit(case):
    """Return ``cuda.jit`` with the options of a case; the simulator has none of them."""
    return cuda.jit if cuda.config.ENABLE_CUDASIM else cuda.jit(lto=case.lto)


@cuda.jit(device=True)
def copy_to(row, items):
    """Copy a thread's items, for example into its row of the results."""
    for i in range(items.size):
        row[i] = items[i]


def arranging(case):
    """Return a device function with the primitives that need no order: ``out[k]`` has the k-th call's results."""
    block, n, warp, dtype = case.block, case.items, case.warp, np.dtype(case.dtype)
    load = cub.BlockLoad(block, n, case.load)
    store = cub.BlockStore(block, n, case.store)
    reduce_items = cub.BlockReduce(block, n)
    reduce_one = cub.BlockReduce(block, 1, ("raking", "warp_reductions")[case.number % 2], broadcast=True)
    scan_items = cub.BlockScan(block, n, ("raking", "warp_scans", "raking_memoize")[case.number % 3])
    scan_one = cub.BlockScan(block)
    exchange = cub.BlockExchange(block, n, case.number % 2 == 1)
    warp_reduce = cub.WarpReduce(block, warp, n)
    warp_scan = cub.WarpScan(block, warp)
    warp_exchange = cub.WarpExchange(block, warp, n)
    tile, lead, last = load.tile, case.lead, n - 1

    @cuda.jit(device=True)
    def arrange(x, fill, ranks, warp_ranks, out, stored):
        b = cuda.blockIdx.x
        t = cuda.threadIdx.x + cuda.blockDim.x * cuda.threadIdx.y
        items = cuda.local.array(n, dtype)
        other = cuda.local.array(n, dtype)
        places = cuda.local.array(n, np.int32)
        first = lead + b * tile
        load.load(x, items, first, x.size - first, fill[0])
        copy_to(out[0, b, t], items)
        out[1, b, t, 0] = reduce_items.sum(items)
        out[2, b, t, 0] = reduce_one.sum(items[last])
        out[3, b, t, 0] = scan_items.inclusive_sum(items, other)
        copy_to(out[4, b, t], other)
        copy_to(other, items)
        scan_items.exclusive_sum(other)
        copy_to(out[5, b, t], other)
        out[6, b, t, 0] = scan_one.exclusive_scan(items[0], operator.add, fill[0])
        exchange.striped_to_blocked(items, other)
        copy_to(out[7, b, t], other)
        exchange.blocked_to_striped(other)
        copy_to(out[8, b, t], other)
        exchange.blocked_to_warp_striped(items, other)
        copy_to(out[9, b, t], other)
        exchange.warp_striped_to_blocked(other)
        copy_to(out[10, b, t], other)
        copy_to(places, ranks[t])
        exchange.scatter_to_blocked(items, places, other)
        copy_to(out[11, b, t], other)
        exchange.scatter_to_striped(items, places, out=other)
        copy_to(out[12, b, t], other)
        out[13, b, t, 0] = warp_reduce.sum(items)
        out[14, b, t, 0] = warp_scan.exclusive_sum(items[0])
        warp_exchange.striped_to_blocked(items, other)
        copy_to(out[15, b, t], other)
        warp_exchange.blocked_to_striped(other)
        copy_to(out[16, b, t], other)
        copy_to(places, warp_ranks[t])
        warp_exchange.scatter_to_striped(items, places, other)
        copy_to(out[17, b, t], other)
        store.store(stored, items, first, x.size - first)

    return arrange


def ordering(case):
    """Return the same for the primitives that compare: minima, maxima and sorting."""
    block, n, warp, dtype = case.block, case.items, case.warp, np.dtype(case.dtype)
    load = cub.BlockLoad(block, n)
    least = cub.BlockReduce(block, n, ("warp_reductions", "raking_commutative_only")[case.number % 2])
    largest = cub.BlockReduce(block, broadcast=True)
    running = cub.BlockScan(block, n)
    sort = cub.BlockRadixSort(block, n, (4, 5)[case.number % 2])
    of_warp = cub.WarpReduce(block, warp, broadcast=True)
    warp_running = cub.WarpScan(block, warp)
    warp_sort = cub.WarpMergeSort(block, warp, n)
    tile = load.tile

    @cuda.jit(device=True)
    def order(x, out, tags_out):
        b = cuda.blockIdx.x
        t = cuda.threadIdx.x + cuda.blockDim.x * cuda.threadIdx.y
        items = cuda.local.array(n, dtype)
        keys = cuda.local.array(n, dtype)
        tags = cuda.local.array(n, np.int32)
        load.load(x, items, b * tile)
        out[0, b, t, 0] = least.min(items)
        out[1, b, t, 0] = largest.max(items[0])
        copy_to(keys, items)
        out[2, b, t, 0] = running.inclusive_scan(keys, max)
        copy_to(out[3, b, t], keys)
        copy_to(keys, items)
        sort.sort(keys)
        copy_to(out[4, b, t], keys)
        for i in range(n):
            tags[i] = t * n + i
        copy_to(keys, items)
        sort.sort_descending_blocked_to_striped(keys, tags)
        copy_to(out[5, b, t], keys)
        copy_to(tags_out[0, b, t], tags)
        out[6, b, t, 0] = of_warp.min(items[0])
        out[7, b, t, 0] = warp_running.inclusive_scan(items[0], min)
        for i in range(n):
            tags[i] = t * n + i
        copy_to(keys, items)
        warp_sort.sort(keys, tags)
        copy_to(out[8, b, t], keys)
        copy_to(tags_out[1, b, t], tags)
        copy_to(keys, items)
        warp_sort.sort_descending(keys)
        copy_to(out[9, b, t], keys)

    return order


def kernel_of(case):
    """Return a kernel with all primitives, so that CUB's headers are read once."""
    arrange = arranging(case)
    if case.dtype not in REALS:

        @jit(case)
        def kernel(x, fill, ranks, warp_ranks, out, stored):
            arrange(x, fill, ranks, warp_ranks, out, stored)

        return kernel
    order = ordering(case)

    @jit(case)
    def both(x, fill, ranks, warp_ranks, out, stored, y, ordered, tags):
        arrange(x, fill, ranks, warp_ranks, out, stored)
        order(y, ordered, tags)

    return both


def striped(blocked):
    """Rearrange the last two axes, threads and items, from blocked to striped."""
    *others, threads, n = blocked.shape
    return np.swapaxes(blocked.reshape(*others, n, threads), -1, -2)


def to_blocked(given):
    """Rearrange from striped to blocked."""
    return np.swapaxes(given, -1, -2).reshape(given.shape)


def scattered(given, ranks):
    """Return the blocked arrangement in which item [thread, i] is at ranks[thread, i]."""
    flat = np.empty((*given.shape[:-2], ranks.size), given.dtype)
    flat[..., ranks.ravel()] = given.reshape(*given.shape[:-2], -1)
    return flat.reshape(given.shape)


class Wrong(list):
    """The differences from NumPy's results, in words."""

    def __init__(self, case, items):
        self.case = case
        exact = items.dtype.kind in "iu" or items.dtype == np.float16
        # Any order of additions is within this.
        self.tolerance = 0 if exact else 4 * np.finfo(items.dtype).eps * abs(items).sum(axis=(1, 2)).max()

    def check(self, what, result, expected, summed=False):
        tolerance = self.tolerance if summed else 0
        if not (abs(result - expected) <= tolerance if tolerance else result == expected).all():
            self.append(f"{self.case}: {what}\n  got {result.ravel()[:8]}\n  expected {expected.ravel()[:8]}")


def check(case):
    """Run the kernel of *case* and return what it gets wrong."""
    n, threads, tile, warp = case.items, case.threads, case.tile, case.warp
    x = values_for(case, case.lead + BLOCKS * tile - 5)
    fill = values_for(case, 10)[-1:]
    rng = np.random.default_rng(1)
    ranks = rng.permutation(tile).astype(np.int32).reshape(threads, n)
    warp_ranks = np.array([rng.permutation(warp * n) for _ in range(threads // warp)], np.int32).reshape(threads, n)
    out = np.zeros((18, BLOCKS, threads, n), case.dtype)
    stored = np.full(x.size + tile, fill[0])
    y = values_for(case, BLOCKS * tile)
    ordered = np.zeros((10, BLOCKS, threads, n), case.dtype)
    tags = np.zeros((2, BLOCKS, threads, n), np.int32)
    more = (y, ordered, tags) if case.dtype in REALS else ()
    kernel_of(case)[BLOCKS, case.block](x, fill, ranks, warp_ranks, out, stored, *more)
    wrong = check_arranging(case, x, fill, ranks, warp_ranks, out, stored)
    return wrong + check_ordering(case, *more) if more else wrong


def check_arranging(case, x, fill, ranks, warp_ranks, out, stored):
    """Return what `arranging` gets wrong."""
    n, threads, warp, lead = case.items, case.threads, case.warp, case.lead
    with np.errstate(over="ignore"):
        whole = np.concatenate([x[lead:], np.repeat(fill, 5)]).reshape(BLOCKS, threads, n)
        items = striped(whole) if case.load == "striped" else whole
        flat = items.reshape(BLOCKS, -1)
        wrong = Wrong(case, items)
        wrong.check(f"load {case.load}", out[0], items)
        wrong.check("sum of items", out[1, :, 0, 0], flat.sum(axis=1, dtype=x.dtype), summed=True)
        each = np.repeat(items[:, :, -1].sum(axis=1, dtype=x.dtype), threads).reshape(BLOCKS, threads)
        wrong.check("sum, broadcast", out[2, :, :, 0], each, summed=True)
        inclusive = flat.cumsum(axis=1, dtype=x.dtype)
        wrong.check("total of a scan", out[3, :, :, 0], np.repeat(inclusive[:, -1:], threads, axis=1), summed=True)
        wrong.check("inclusive sum", out[4], inclusive.reshape(items.shape), summed=True)
        exclusive = np.concatenate([np.zeros((BLOCKS, 1), x.dtype), inclusive[:, :-1]], axis=1)
        wrong.check("exclusive sum", out[5], exclusive.reshape(items.shape), summed=True)
        first = items[:, :, 0]
        before = np.concatenate([np.zeros((BLOCKS, 1), x.dtype), first.cumsum(axis=1, dtype=x.dtype)[:, :-1]], axis=1)
        wrong.check("exclusive scan with an initial value", out[6, :, :, 0], before + fill[0], summed=True)
        wrong.check("striped to blocked", out[7], to_blocked(items))
        wrong.check("blocked to striped", out[8], items)
        of_warps = [striped(items[:, w : w + 32]) for w in range(0, threads, 32)]
        wrong.check("blocked to warp-striped", out[9], np.concatenate(of_warps, axis=1))
        wrong.check("warp-striped to blocked", out[10], items)
        wrong.check("scatter to blocked", out[11], scattered(items, ranks))
        wrong.check("scatter to striped", out[12], striped(scattered(items, ranks)))
        warps = items.reshape(BLOCKS, threads // warp, warp, n)
        sums = warps.sum(axis=(2, 3), dtype=x.dtype)
        wrong.check("sum of a warp", out[13, :, ::warp, 0], sums, summed=True)
        running = warps[..., 0].cumsum(axis=2, dtype=x.dtype)
        running = np.concatenate([np.zeros_like(running[..., :1]), running[..., :-1]], axis=2)
        wrong.check("exclusive sum of a warp", out[14, :, :, 0].reshape(running.shape), running, summed=True)
        wrong.check("striped to blocked in a warp", out[15].reshape(warps.shape), to_blocked(warps))
        wrong.check("blocked to striped in a warp", out[16], items)
        parts = [striped(scattered(warps[:, w], warp_ranks[w * warp : (w + 1) * warp])) for w in range(threads // warp)]
        wrong.check("scatter to striped in a warp", out[17], np.concatenate(parts, axis=1))
        written = np.full(stored.size, fill[0])
        placed = to_blocked(items) if case.store == "striped" else items
        written[lead : x.size] = placed.ravel()[: x.size - lead]
        wrong.check(f"store {case.store}", stored, written)
    return wrong


def check_ordering(case, x, out, tags):
    """Return what `ordering` gets wrong."""
    n, threads, warp = case.items, case.threads, case.warp
    items = x.reshape(BLOCKS, threads, n)
    flat = items.reshape(BLOCKS, -1)
    warps = items.reshape(BLOCKS, threads // warp, warp, n)
    wrong = Wrong(case, items)
    wrong.check("min of items", out[0, :, 0, 0], flat.min(axis=1))
    largest = items[:, :, 0].max(axis=1)
    wrong.check("max, broadcast", out[1, :, :, 0], np.repeat(largest, threads).reshape(BLOCKS, threads))
    running = np.maximum.accumulate(flat, axis=1)
    wrong.check("total of a scan", out[2, :, :, 0], np.repeat(running[:, -1:], threads, axis=1))
    wrong.check("running maximum", out[3], running.reshape(items.shape))
    wrong.check("sort", out[4], np.sort(flat, axis=1).reshape(items.shape))
    # Stable: equal keys in the order in which they were.
    order = flat.shape[1] - 1 - np.argsort(flat[:, ::-1], axis=1, kind="stable")[:, ::-1]
    descending = np.take_along_axis(flat, order, axis=1)
    wrong.check("sort descending, keys", out[5], striped(descending.reshape(items.shape)))
    wrong.check("sort descending, values", tags[0], striped(order.reshape(items.shape)))
    of_warp = np.repeat(warps[..., 0].min(axis=2), warp, axis=1)
    wrong.check("min of a warp, broadcast", out[6, :, :, 0], of_warp)
    minima = np.minimum.accumulate(warps[..., 0], axis=2)
    wrong.check("running minimum of a warp", out[7, :, :, 0], minima.reshape(BLOCKS, threads))
    own = warps.reshape(BLOCKS, threads // warp, -1)
    order = np.argsort(own, axis=2, kind="stable")
    wrong.check("sort of a warp, keys", out[8], np.sort(own, axis=2).reshape(items.shape))
    first = np.arange(threads // warp)[:, None] * warp * n
    wrong.check("sort of a warp, values", tags[1], (order + first).reshape(items.shape))
    wrong.check("sort of a warp, descending", out[9], np.sort(own, axis=2)[..., ::-1].reshape(items.shape))
    return wrong


@cuda.jit(device=True)
def affine(f, g, modulus):
    """Compose two functions x -> a * x + b, of 16 bits each: associative and not commutative."""
    a, b = f >> 16, f & 0xFFFF
    c, d = g >> 16, g & 0xFFFF
    m = modulus[modulus.shape[0] - 1]
    return a * c % m << 16 | (b * c + d) % m


@cuda.jit(device=True)
def plus_one(a, b):
    return a + b + 1


@cuda.jit(device=True)
def nearer(a, b, point):
    return abs(a - point[0]) < abs(b - point[0])


def composed(functions):
    """Return the composition of each function with all those before it."""
    results = [int(functions[0])]
    for g in functions[1:]:
        f = results[-1]
        a, b, c, d = f >> 16, f & 0xFFFF, int(g) >> 16, int(g) & 0xFFFF
        results.append(a * c % MODULUS << 16 | (b * c + d) % MODULUS)
    return results


MODULUS = 251
MORE = {"block": (8, 2, 4), "n": 2, "valid": 37, "initial": 3 << 16 | 5}
MORE_SIGNATURE = "void(int32[::1], int32[:, ::1], int32[:, ::1], int32[:, :, ::1])"


def more_kernel(block, n, valid, initial):
    """Return a kernel of what `Case` leaves out, for a block of three dimensions: parts of blocks and warps, and
    operators in Python, with state and without it."""
    first = cub.BlockReduce(block)
    both = cub.BlockReduce(block, n, "raking")
    scan = cub.BlockScan(block, n)
    scan_one = cub.BlockScan(block)
    sort = cub.BlockRadixSort(block, n)
    merge_sort = cub.BlockMergeSort(block, n)
    warp_first = cub.WarpReduce(block, 16)
    warp_pair = cub.WarpReduce(block, 32, n)
    warp_scan = cub.WarpScan(block)
    warp_sort = cub.WarpMergeSort(block, 32, n)
    warp_exchange = cub.WarpExchange(block, 8, n)
    load = cub.BlockLoad(block, n)
    zero = cub.BlockLoad(block, 1)

    @cuda.jit
    def kernel(x, moduli, out, items_out):
        modulus = moduli[:, 0]  # not contiguous
        t = cuda.threadIdx.x + 8 * (cuda.threadIdx.y + 2 * cuda.threadIdx.z)
        items = cuda.local.array(n, np.int32)
        keys = cuda.local.array(n, np.int32)
        one = cuda.local.array(1, np.int32)
        load.load(x, items)
        x0 = items[0]
        out[0, t] = first.sum(x0, valid)
        out[1, t] = first.max(x0, valid=t * 0 + 1)
        out[2, t] = first.reduce(x0, plus_one)
        out[3, t] = both.reduce(items, affine, state=modulus)
        out[4, t] = both.reduce((items[0], items[1]), operator.xor)
        out[5, t] = scan_one.inclusive_scan(x0, affine, state=modulus)
        out[6, t] = scan.exclusive_scan(items, affine, initial, items_out[0, t], state=modulus)
        copy_to(keys, items)
        sort.sort(keys, begin_bit=1, end_bit=3)
        copy_to(items_out[1, t], keys)
        out[7, t] = warp_first.sum(x0, 5)
        out[8, t] = warp_pair.reduce(items, affine, state=modulus)
        one[0] = -1
        zero.load(x, one, valid=valid, default=7)
        out[9, t] = one[0]
        out[10, t] = warp_scan.inclusive_scan(x0, affine, state=modulus)
        copy_to(keys, items)
        merge_sort.sort(keys, before=nearer, state=(x[0], 1))
        copy_to(items_out[3, t], keys)
        warp_sort.sort(keys, before=nearer, state=(x[1], 1))
        copy_to(items_out[4, t], keys)
        copy_to(keys, items)
        if t >= 32:  # one warp alone, and of the other some logical warps
            warp_sort.sort_descending(keys)
        elif t // 8 % 2 == 1:
            warp_exchange.blocked_to_striped(keys)
        copy_to(items_out[2, t], keys)

    return kernel


def check_more():
    """Run `more_kernel` and return what it gets wrong."""
    n, valid, initial = MORE["n"], MORE["valid"], MORE["initial"]
    x = np.random.default_rng(3).integers(0, MODULUS, 128).astype(np.int32) + (1 << 16)
    moduli = np.array([[7, 0], [MODULUS, 0]], np.int32)
    out, items_out = np.zeros((11, 64), np.int32), np.zeros((5, 64, n), np.int32)
    more_kernel(**MORE)[1, MORE["block"]](x, moduli, out, items_out)
    wrong = Wrong("more", x.reshape(1, 64, n))
    x0, warps = x[::2], x.reshape(2, 64)
    wrong.check("sum of valid", out[0, 0], x0[:valid].sum())
    wrong.check("max of one", out[1, 0], x0[0])
    wrong.check("device function", out[2, 0], x0.sum() + 63)
    wrong.check("device function, of items", out[3, 0], np.array(composed(x)[-1]))
    wrong.check("xor of a tuple", out[4, 0], np.bitwise_xor.reduce(x))
    wrong.check("scan with a device function", out[5], np.array(composed(x0)))
    wrong.check("its total", out[6], np.full(64, composed(x)[-1]))
    wrong.check("its exclusive scan", items_out[0].ravel(), np.array(composed([initial, *x])[:-1]))
    order = np.argsort(x >> 1 & 3, kind="stable")
    wrong.check("sort by two bits", items_out[1].ravel(), x[order])
    wrong.check("sum of valid of a warp", out[7, ::16], x0.reshape(4, 16)[:, :5].sum(axis=1))
    of_warps = np.array([composed(warp)[-1] for warp in warps])
    wrong.check("device function, of a warp", out[8, ::32], of_warps)
    wrong.check("valid, default", out[9], np.where(np.arange(64) < valid, x[:64], 7))
    wrong.check("scan of a warp", out[10], np.concatenate([composed(x0[:32]), composed(x0[32:])]))
    sorted_ = x[np.argsort(abs(x - x[0]), kind="stable")]
    wrong.check("sort by distance", items_out[3].ravel(), sorted_)
    parts = [part[np.argsort(abs(part - x[1]), kind="stable")] for part in sorted_.reshape(2, 64)]
    wrong.check("sort of a warp by distance", items_out[4].ravel(), np.concatenate(parts))
    wrong.check("warp 1", items_out[2, 32:].ravel(), np.sort(warps[1])[::-1])
    parts = warps[0].reshape(4, 8, n).copy()
    parts[1::2] = striped(parts[1::2])
    wrong.check("some of warp 0", items_out[2, :32], parts.reshape(32, n))
    return wrong


if __name__ == "__main__":
    wrong = check_more()
    for text in sys.argv[1:]:
        wrong += check(Case.parse(text))
    print("\n".join(wrong) or f"{len(sys.argv)} cases are right")
    sys.exit(bool(wrong))
