# SPDX-License-Identifier: BSD-2-Clause
"""Locate nonuniform points on the fine grid, sort them into bins, and divide the bins into equal pieces of work.

A point at ``u``, in units of the fine grid's spacing, spreads to `width` grid points. The first of them,
``ceil(u - width / 2)``, is its start. A bin holds the points whose starts are in one segment or rectangle of the grid,
so they all spread to a tile that is larger by `width` - 1. Sizes of grids and bins are powers of two.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from _frontend import cuda

THREADS = 128

# 1 / (2 pi) in two parts, so that multiplication loses no precision.
TURNS = 0.15915494309189535
TURNS_REST = -9.839338337591243e-18


class Sorted(NamedTuple):
    """Points in the order of their bins, on the device."""

    order: Any  # uint32: the index of the point in the caller's arrays
    start: Any  # uint32: index of the first grid point that it spreads to, in the flattened fine grid
    offset: Any  # real, one row for each dimension: z of `Window.polynomials`, from -1 to 1
    work: Any  # int32, rows of (bin, begin, end): the points of a bin, or some of them


@cache
def make_kernels(sizes: tuple[int, ...], bins: tuple[int, ...], width: int) -> tuple[Any, Any]:
    """Return the kernels that count points by bin and that sort them, for a fine grid of `sizes` and bins of `bins`."""
    half = width / 2
    two = len(sizes) == 2
    size_0, bin_0, size_1, bin_1 = sizes[0], bins[0], sizes[-1], bins[-1]
    bins_1 = size_1 // bin_1

    @cuda.jit(device=True)
    def locate(x, size):
        """Return the start, folded into the grid, and the offset of a point at `x` radians (any number of turns)."""
        x = np.float64(x)
        turns = x * TURNS
        rest = cuda.fma(x, TURNS, -turns) + x * TURNS_REST
        place = turns * size
        start = math.ceil(place - half)
        offset = (start - place) - rest * size + half
        return np.int32(np.int64(start) & (size - 1)), 2.0 * offset - 1.0

    @cuda.jit(device=True)
    def bin_of(start_0, start_1):
        if two:
            return start_0 // bin_0 * bins_1 + start_1 // bin_1
        return start_0 // bin_0

    @cuda.jit
    def count(x, y, counts, rank):
        i = cuda.grid(1)
        if i < x.size:
            start_0 = locate(x[i], size_0)[0]
            start_1 = locate(y[i], size_1)[0] if two else 0
            rank[i] = cuda.atomic.add(counts, bin_of(start_0, start_1), 1)

    @cuda.jit
    def sort(x, y, first, rank, order, start, offset):
        i = cuda.grid(1)
        if i < x.size:
            start_0, offset_0 = locate(x[i], size_0)
            start_1, offset_1 = 0, 0.0
            if two:
                start_1, offset_1 = locate(y[i], size_1)
            to = first[bin_of(start_0, start_1)] + rank[i]
            order[to] = i
            offset[0, to] = offset_0
            if two:
                start[to] = start_0 * size_1 + start_1
                offset[1, to] = offset_1
            else:
                start[to] = start_0

    return count, sort


def sort_points(coordinates, sizes, bins, width, real, most) -> Sorted:
    """Sort points on the device. Each piece of work has at most `most` points."""
    count, sort = make_kernels(sizes, bins, width)
    x, y = coordinates[0], coordinates[-1]
    points = x.size
    blocks = -(-points // THREADS)
    counts = cuda.to_device(np.zeros(int(np.prod(sizes)) // int(np.prod(bins)), np.int32))
    rank, order, start = (cuda.device_array(points, np.uint32) for _ in range(3))
    offset = cuda.device_array((len(sizes), points), real)
    if points:
        count[blocks, THREADS](x, y, counts, rank)
    in_bin = counts.copy_to_host()
    first = np.concatenate([[0], np.cumsum(in_bin, dtype=np.int64)])
    if points:
        sort[blocks, THREADS](x, y, cuda.to_device(first[:-1].astype(np.int32)), rank, order, start, offset)
    return Sorted(order, start, offset, cuda.to_device(share(in_bin, first, most)))


def share(in_bin: np.ndarray, first: np.ndarray, most: int) -> np.ndarray:
    """Return rows of (bin, begin, end), which divide each bin's points into equal parts of at most `most`."""
    parts = -(-in_bin // most)
    of_bin = np.repeat(np.arange(len(in_bin)), parts)
    part = np.arange(len(of_bin)) - np.repeat(np.cumsum(parts) - parts, parts)
    ends = [first[of_bin] + in_bin[of_bin].astype(np.int64) * (part + i) // parts[of_bin] for i in (0, 1)]
    return np.stack([of_bin, *ends], axis=1).astype(np.int32)
