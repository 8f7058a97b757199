# SPDX-License-Identifier: BSD-2-Clause
"""Kernels between sorted points and the fine grid: each piece of work is done in a tile of shared memory.

Spreading (type 1): the lanes of a warp, or a team of them, are the grid points of one point's window, so no two of them
ever add to the same place, and adding needs no atomics until the tile goes to the grid. Interpolating (type 2): a
thread to a point, reading the tile.

Tiles hold real and imaginary parts apart. Fine grids are arrays of reals, re and im in turn.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from _run import simulated
from numba import cuda

WARP = 32
THREADS = 128  # of a block that interpolates
TILE_BYTES = 16 << 10  # at most, where the window allows


if simulated():

    @cuda.jit(device=True)
    def sync():
        """A barrier for the warp that a block of `spread` is."""
        cuda.syncthreads()

else:

    @cuda.jit(device=True)
    def sync():
        """A barrier for the warp that a block of `spread` is."""
        cuda.syncwarp()


def team_of(width: int) -> int:
    """Lanes to one point in one dimension."""
    return 8 if width <= 8 else 16


def bins_for(kind: int, sizes: tuple[int, ...], width: int, real: Any) -> tuple[int, ...]:
    """The size of bins: the largest powers of two that keep tiles small, up to what the grid has."""
    item = 2 * np.dtype(real).itemsize

    def tile(side):
        extent = side + width - 1
        if len(sizes) == 2:
            return extent * extent * item
        return (side + team_of(width) - 1) * WARP // team_of(width) * item if kind == 1 else extent * item

    least, side = (16, 32) if len(sizes) == 2 else (64, 1024)
    if kind == 1:
        side //= 2
    while side > least and tile(side) > TILE_BYTES:
        side //= 2
    return tuple(min(side, size) for size in sizes)


@lru_cache(maxsize=None)
def make_kernel(kind: int, sizes: tuple[int, ...], bins: tuple[int, ...], polynomials: bytes, width: int, real: Any):
    """The kernel of a transform of this type and the threads of its blocks.

    Parameters
    ----------
    kind : 1 or 2
        Spreading or interpolating.
    sizes, bins : tuples of int
        Of the fine grid and of the bins that points are sorted into.
    polynomials : bytes
        `Window.polynomials`, float64.
    width : int
    real : numpy.float32 or numpy.float64
    """
    table = np.frombuffer(polynomials).reshape(-1, width).astype(real)
    return _MAKERS[kind, len(sizes)](*sizes, *bins, table, real)


def _spread_1d(size, bin_size, table, real):
    terms, width = table.shape
    lanes = team_of(width)
    teams = WARP // lanes
    extent = bin_size + lanes - 1
    table = np.pad(table, ((0, 0), (0, lanes - width)))  # lanes that the window does not need add nothing

    @cuda.jit
    def spread(points, order, start, offset, work, grid):
        tile_re = cuda.shared.array((teams, extent), real)
        tile_im = cuda.shared.array((teams, extent), real)
        stage_at = cuda.shared.array((teams, lanes), np.int32)
        stage_z = cuda.shared.array((teams, lanes), real)
        stage_re = cuda.shared.array((teams, lanes), real)
        stage_im = cuda.shared.array((teams, lanes), real)
        coefficient = cuda.local.array(terms, real)
        constants = cuda.const.array_like(table)
        team, lane = cuda.threadIdx.x // lanes, cuda.threadIdx.x % lanes
        piece = cuda.blockIdx.x * teams + team
        begin, end = 0, 0
        if piece < work.shape[0]:
            begin, end = work[piece, 1], work[piece, 2]
        # All teams take as many steps as the longest.
        steps = 0
        for other in range(cuda.blockIdx.x * teams, min((cuda.blockIdx.x + 1) * teams, work.shape[0])):
            steps = max(steps, work[other, 2] - work[other, 1])
        for d in range(terms):
            coefficient[d] = constants[d, lane]
        for e in range(lane, extent, lanes):
            tile_re[team, e] = 0
            tile_im[team, e] = 0
        for step in range(0, steps, lanes):
            sync()
            own = begin + step + lane
            stage_at[team, lane] = 0
            stage_z[team, lane] = 0
            stage_re[team, lane] = 0
            stage_im[team, lane] = 0
            if own < end:
                value = points[order[own]]
                stage_at[team, lane] = start[own] & (bin_size - 1)
                stage_z[team, lane] = offset[0, own]
                stage_re[team, lane] = value.real
                stage_im[team, lane] = value.imag
            sync()
            for k in range(lanes):
                z = stage_z[team, k]
                weight = coefficient[0]
                for d in range(1, terms):
                    weight = weight * z + coefficient[d]
                at = stage_at[team, k] + lane
                tile_re[team, at] += weight * stage_re[team, k]
                tile_im[team, at] += weight * stage_im[team, k]
                sync()
        sync()
        if begin < end:
            first = work[piece, 0] * bin_size
            for e in range(lane, bin_size + width - 1, lanes):
                at = 2 * ((first + e) & (size - 1))
                if tile_re[team, e] != 0:
                    cuda.atomic.add(grid, at, tile_re[team, e])
                if tile_im[team, e] != 0:
                    cuda.atomic.add(grid, at + 1, tile_im[team, e])

    return spread, (WARP, teams)


def _spread_2d(size_0, size_1, bin_0, bin_1, table, real):
    terms, width = table.shape
    half = WARP // 2
    extent_0, extent_1 = bin_0 + width - 1, bin_1 + width - 1
    tile_size = extent_0 * extent_1
    window_size = width * width
    rounds = -(-window_size // WARP)
    bins_1 = size_1 // bin_1
    table = np.pad(table, ((0, 0), (0, half - width)))

    @cuda.jit
    def spread(points, order, start, offset, work, grid):
        tile_re = cuda.shared.array(tile_size, real)
        tile_im = cuda.shared.array(tile_size, real)
        stage_at = cuda.shared.array(WARP, np.int32)
        stage_z = cuda.shared.array((2, WARP), real)
        stage_re = cuda.shared.array(WARP, real)
        stage_im = cuda.shared.array(WARP, real)
        # For half a warp of points: their weights along dimension 0, then along dimension 1.
        weight = cuda.shared.array((half, WARP), real)
        coefficient = cuda.local.array(terms, real)
        along_0 = cuda.local.array(rounds, np.int32)
        along_1 = cuda.local.array(rounds, np.int32)
        to = cuda.local.array(rounds, np.int32)
        constants = cuda.const.array_like(table)
        lane = cuda.threadIdx.x
        dimension = lane // half
        begin, end = work[cuda.blockIdx.x, 1], work[cuda.blockIdx.x, 2]
        for d in range(terms):
            coefficient[d] = constants[d, lane % half]
        for r in range(rounds):
            e = r * WARP + lane
            along_0[r] = e // width
            along_1[r] = half + e % width
            to[r] = e // width * extent_1 + e % width
        for e in range(lane, tile_size, WARP):
            tile_re[e] = 0
            tile_im[e] = 0
        for batch in range(begin, end, WARP):
            sync()
            own = batch + lane
            if own < end:
                value = points[order[own]]
                place = start[own]
                stage_at[lane] = (place // size_1 & (bin_0 - 1)) * extent_1 + (place & (bin_1 - 1))
                stage_z[0, lane] = offset[0, own]
                stage_z[1, lane] = offset[1, own]
                stage_re[lane] = value.real
                stage_im[lane] = value.imag
            sync()
            for part in range(0, min(WARP, end - batch), half):
                for k in range(half):
                    z = stage_z[dimension, part + k]
                    value_at = coefficient[0]
                    for d in range(1, terms):
                        value_at = value_at * z + coefficient[d]
                    weight[k, lane] = value_at
                sync()
                for k in range(min(half, end - batch - part)):
                    re, im = stage_re[part + k], stage_im[part + k]
                    first = stage_at[part + k]
                    for r in range(rounds):
                        if r * WARP + lane < window_size:
                            both = weight[k, along_0[r]] * weight[k, along_1[r]]
                            at = first + to[r]
                            tile_re[at] += both * re
                            tile_im[at] += both * im
                    sync()
        sync()
        piece = work[cuda.blockIdx.x, 0]
        first_0, first_1 = piece // bins_1 * bin_0, piece % bins_1 * bin_1
        for e in range(lane, tile_size, WARP):
            row, column = first_0 + e // extent_1, first_1 + e % extent_1
            at = 2 * ((row & (size_0 - 1)) * size_1 + (column & (size_1 - 1)))
            if tile_re[e] != 0:
                cuda.atomic.add(grid, at, tile_re[e])
            if tile_im[e] != 0:
                cuda.atomic.add(grid, at + 1, tile_im[e])

    return spread, (WARP, 1)


def _interpolate_1d(size, bin_size, table, real):
    terms, width = table.shape
    extent = bin_size + width - 1

    @cuda.jit
    def interpolate(points, order, start, offset, work, grid):
        tile_re = cuda.shared.array(extent, real)
        tile_im = cuda.shared.array(extent, real)
        constants = cuda.const.array_like(table)
        piece = cuda.blockIdx.x
        first = work[piece, 0] * bin_size
        for e in range(cuda.threadIdx.x, extent, THREADS):
            at = 2 * ((first + e) & (size - 1))
            tile_re[e] = grid[at]
            tile_im[e] = grid[at + 1]
        cuda.syncthreads()
        for own in range(work[piece, 1] + cuda.threadIdx.x, work[piece, 2], THREADS):
            at = start[own] & (bin_size - 1)
            z = offset[0, own]
            re, im = real(0), real(0)
            for i in range(width):
                weight = constants[0, i]
                for d in range(1, terms):
                    weight = weight * z + constants[d, i]
                re += weight * tile_re[at + i]
                im += weight * tile_im[at + i]
            points[order[own]] = complex(re, im)

    return interpolate, (THREADS, 1)


def _interpolate_2d(size_0, size_1, bin_0, bin_1, table, real):
    terms, width = table.shape
    extent_0, extent_1 = bin_0 + width - 1, bin_1 + width - 1
    tile_size = extent_0 * extent_1
    bins_1 = size_1 // bin_1

    @cuda.jit
    def interpolate(points, order, start, offset, work, grid):
        tile_re = cuda.shared.array(tile_size, real)
        tile_im = cuda.shared.array(tile_size, real)
        constants = cuda.const.array_like(table)
        along_1 = cuda.local.array(width, real)
        piece = cuda.blockIdx.x
        bin_row, bin_column = work[piece, 0] // bins_1, work[piece, 0] % bins_1
        for e in range(cuda.threadIdx.x, tile_size, THREADS):
            row, column = bin_row * bin_0 + e // extent_1, bin_column * bin_1 + e % extent_1
            at = 2 * ((row & (size_0 - 1)) * size_1 + (column & (size_1 - 1)))
            tile_re[e] = grid[at]
            tile_im[e] = grid[at + 1]
        cuda.syncthreads()
        for own in range(work[piece, 1] + cuda.threadIdx.x, work[piece, 2], THREADS):
            place = start[own]
            at = (place // size_1 & (bin_0 - 1)) * extent_1 + (place & (bin_1 - 1))
            z_0, z_1 = offset[0, own], offset[1, own]
            for i in range(width):
                weight = constants[0, i]
                for d in range(1, terms):
                    weight = weight * z_1 + constants[d, i]
                along_1[i] = weight
            re, im = real(0), real(0)
            for j in range(width):
                weight = constants[0, j]
                for d in range(1, terms):
                    weight = weight * z_0 + constants[d, j]
                row_re, row_im = real(0), real(0)
                for i in range(width):
                    row_re += along_1[i] * tile_re[at + j * extent_1 + i]
                    row_im += along_1[i] * tile_im[at + j * extent_1 + i]
                re += weight * row_re
                im += weight * row_im
            points[order[own]] = complex(re, im)

    return interpolate, (THREADS, 1)


_MAKERS = {(1, 1): _spread_1d, (1, 2): _spread_2d, (2, 1): _interpolate_1d, (2, 2): _interpolate_2d}
