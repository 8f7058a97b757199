# SPDX-License-Identifier: BSD-2-Clause
"""Kernels between sorted points and the fine grid. Each piece of work uses a tile in shared memory.

Spreading (type 1): the lanes of a warp, or of a team within it, process the grid points of one point's window. No two
lanes add to the same location, so the additions need no atomics until the tile is added to the grid. Interpolation
(type 2): each thread processes one point and reads the tile.

Tiles hold real and imaginary parts separately. Indices that are loaded from memory are masked. The mask changes no
index, but it tells the compiler that an index is not negative, so that it omits Python's handling of negative indices.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from _frontend import cuda
from _run import simulated

WARP = 32
THREADS = 128  # per block that interpolates
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
    """Return the number of lanes per point, in one dimension."""
    return 8 if width <= 8 else 16


def bins_for(kind: int, sizes: tuple[int, ...], width: int, real: Any) -> tuple[int, ...]:
    """Return the sides of bins: powers of two, at most the grid's size, for tiles small enough that many fit."""
    single = np.dtype(real).itemsize == 4
    if len(sizes) == 1:
        sides: tuple[int, ...] = (256 if kind == 1 else 1024 if single else 512,)
    elif kind == 1:
        # With these sides, the rows of a window are in consecutive banks of shared memory: see `pitch_of`.
        sides = (16, 32 if single else 16)
    else:
        sides = (32, 32) if single else (16, 32)
    return tuple(min(side, size) for side, size in zip(sides, sizes, strict=True))


def pitch_of(bin_side: int, width: int, real: Any) -> int:
    """Return the row length of a tile for spreading: a multiple of the number of banks, plus `width`."""
    banks = 128 // np.dtype(real).itemsize
    return -(-(bin_side - 1) // banks) * banks + width


def _mask(size: int) -> int:
    """Return a mask of all bits that an index below `size` can have."""
    return (1 << (size - 1).bit_length()) - 1


@cache
def make_kernel(kind: int, sizes: tuple[int, ...], bins: tuple[int, ...], polynomials: bytes, width: int, real: Any):
    """Return the kernel of a transform of this type, and the threads of its blocks.

    Parameters
    ----------
    kind : 1 or 2
        1 for spreading, 2 for interpolation.
    sizes, bins : tuples of int
        The sizes of the fine grid and of the bins that points are sorted into.
    polynomials : bytes
        `Window.polynomials`, float64.
    width : int
    real : numpy.float32 or numpy.float64
    """
    table = np.frombuffer(polynomials).reshape(-1, width).astype(real)
    makers = (_spread_1d, _spread_2d) if kind == 1 else (_interpolate_1d, _interpolate_2d)
    make: Any = makers[len(sizes) - 1]
    return make(*sizes, *bins, table, real)


def _spread_1d(size, bin_size, table, real):
    terms, width = table.shape
    lanes = team_of(width)
    teams = WARP // lanes
    extent = bin_size + lanes - 1
    table = np.pad(table, ((0, 0), (0, lanes - width)))  # lanes outside of the window add zero

    @cuda.jit
    def spread(values, order, start, offset, work, grid):
        tile_re = cuda.shared.array((teams, extent), real)
        tile_im = cuda.shared.array((teams, extent), real)
        stage_at = cuda.shared.array((teams, lanes), np.int32)
        stage_z = cuda.shared.array((teams, lanes), real)
        stage_re = cuda.shared.array((teams, lanes), real)
        stage_im = cuda.shared.array((teams, lanes), real)
        coefficient = cuda.local.array(terms, real)
        constants = cuda.const.array_like(table)
        team, lane = cuda.threadIdx.x // lanes & (teams - 1), cuda.threadIdx.x & (lanes - 1)
        first_piece = cuda.blockIdx.x * teams
        begin, end, first = 0, 0, 0
        if first_piece + team < work.shape[0]:
            first = work[first_piece + team, 0] * bin_size
            begin, end = work[first_piece + team, 1], work[first_piece + team, 2]
        # All teams take as many steps as the team with the most points.
        steps = 0
        for piece in range(first_piece, min(first_piece + teams, work.shape[0])):
            steps = max(steps, work[piece, 2] - work[piece, 1])
        for d in range(terms):
            coefficient[d] = constants[d, lane]
        for e in range(lane, extent, lanes):
            tile_re[team, e] = 0
            tile_im[team, e] = 0
        for step in range(0, steps, lanes):
            sync()
            stage_at[team, lane] = 0
            stage_z[team, lane] = 0
            stage_re[team, lane] = 0
            stage_im[team, lane] = 0
            if begin + step + lane < end:
                own = np.uint32(begin + step + lane)
                value = values[order[own]]
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
                at = (stage_at[team, k] & (bin_size - 1)) + lane
                tile_re[team, at] += weight * stage_re[team, k]
                tile_im[team, at] += weight * stage_im[team, k]
                sync()
        sync()
        for e in range(lane, bin_size + width - 1 if begin < end else 0, lanes):
            at = np.uint32(2 * ((first + e) & (size - 1)))
            re, im = tile_re[team, e], tile_im[team, e]
            if re != 0 or im != 0:
                cuda.atomic.add(grid, at, re)
                cuda.atomic.add(grid, at + 1, im)

    return spread, (WARP, teams)


def _spread_2d(size_0, size_1, bin_0, bin_1, table, real):
    terms, width = table.shape
    half = WARP // 2
    extent_0, extent_1 = bin_0 + width - 1, bin_1 + width - 1
    pitch = pitch_of(bin_1, width, real)
    tile_size = extent_0 * pitch
    mask = _mask(tile_size)
    window_size = width * width
    rounds = -(-window_size // WARP)
    bins_1 = size_1 // bin_1
    table = np.pad(table, ((0, 0), (0, half - width)))

    @cuda.jit
    def spread(values, order, start, offset, work, grid):
        tile_re = cuda.shared.array(tile_size, real)
        tile_im = cuda.shared.array(tile_size, real)
        stage_at = cuda.shared.array(WARP, np.int32)
        stage_z = cuda.shared.array((2, WARP), real)
        stage_re = cuda.shared.array(WARP, real)
        stage_im = cuda.shared.array(WARP, real)
        # For half a warp of points: the weights along dimension 0, then those along dimension 1.
        weight = cuda.shared.array((half, WARP), real)
        coefficient = cuda.local.array(terms, real)
        constants = cuda.const.array_like(table)
        sum_re = cuda.local.array(rounds, real)
        sum_im = cuda.local.array(rounds, real)
        lane = cuda.threadIdx.x & (WARP - 1)
        for d in range(terms):
            coefficient[d] = constants[d, lane & (half - 1)]
        for e in range(lane, tile_size, WARP):
            tile_re[e] = 0
            tile_im[e] = 0
        piece = cuda.blockIdx.x
        begin, end = work[piece, 1], work[piece, 2]
        for batch in range(begin, end, WARP):
            sync()
            if batch + lane < end:
                own = np.uint32(batch + lane)
                value = values[order[own]]
                place = start[own]
                stage_at[lane] = (place // size_1 & (bin_0 - 1)) * pitch + (place & (bin_1 - 1))
                stage_z[0, lane] = offset[0, own]
                stage_z[1, lane] = offset[1, own]
                stage_re[lane] = value.real
                stage_im[lane] = value.imag
            sync()
            for part in range(0, min(WARP, end - batch), half):
                for k in range(half):
                    z = stage_z[lane // half, part + k]
                    sum_of = coefficient[0]
                    for d in range(1, terms):
                        sum_of = sum_of * z + coefficient[d]
                    weight[k, lane] = sum_of
                sync()
                for k in range(min(half, end - batch - part)):
                    re, im = stage_re[part + k], stage_im[part + k]
                    at = stage_at[part + k] & mask
                    # Do all reads before all writes, so that no read waits for a write that it does not depend on.
                    for r in range(rounds):
                        e = r * WARP + lane
                        if e < window_size:
                            both = weight[k, e // width] * weight[k, half + e % width]
                            to = at + e // width * pitch + e % width
                            sum_re[r] = tile_re[to] + both * re
                            sum_im[r] = tile_im[to] + both * im
                    for r in range(rounds):
                        e = r * WARP + lane
                        if e < window_size:
                            to = at + e // width * pitch + e % width
                            tile_re[to] = sum_re[r]
                            tile_im[to] = sum_im[r]
                    sync()
        sync()
        first_0, first_1 = work[piece, 0] // bins_1 * bin_0, work[piece, 0] % bins_1 * bin_1
        for row in range(extent_0):
            line = ((first_0 + row) & (size_0 - 1)) * size_1
            for column in range(lane, extent_1, WARP):
                re, im = tile_re[row * pitch + column], tile_im[row * pitch + column]
                if re != 0 or im != 0:
                    to = np.uint32(2 * (line + ((first_1 + column) & (size_1 - 1))))
                    cuda.atomic.add(grid, to, re)
                    cuda.atomic.add(grid, to + 1, im)

    return spread, (WARP, 1)


def _interpolate_1d(size, bin_size, table, real):
    terms, width = table.shape
    extent = bin_size + width - 1

    @cuda.jit
    def interpolate(values, order, start, offset, work, grid):
        tile_re = cuda.shared.array(extent, real)
        tile_im = cuda.shared.array(extent, real)
        constants = cuda.const.array_like(table)
        piece = cuda.blockIdx.x
        thread = cuda.threadIdx.x & (THREADS - 1)
        first = work[piece, 0] * bin_size
        for e in range(thread, extent, THREADS):
            value = grid[np.uint32((first + e) & (size - 1))]
            tile_re[e] = value.real
            tile_im[e] = value.imag
        cuda.syncthreads()
        for point in range(work[piece, 1] + thread, work[piece, 2], THREADS):
            own = np.uint32(point)
            at = start[own] & (bin_size - 1)
            z = offset[0, own]
            re, im = real(0), real(0)
            for i in range(width):
                weight = constants[0, i]
                for d in range(1, terms):
                    weight = weight * z + constants[d, i]
                re += weight * tile_re[at + i]
                im += weight * tile_im[at + i]
            values[order[own]] = complex(re, im)

    return interpolate, (THREADS, 1)


def _interpolate_2d(size_0, size_1, bin_0, bin_1, table, real):
    terms, width = table.shape
    extent_0, extent_1 = bin_0 + width - 1, bin_1 + width - 1
    tile_size = extent_0 * extent_1
    mask = _mask(tile_size)
    bins_1 = size_1 // bin_1
    warps = THREADS // WARP

    @cuda.jit
    def interpolate(values, order, start, offset, work, grid):
        tile_re = cuda.shared.array(tile_size, real)
        tile_im = cuda.shared.array(tile_size, real)
        constants = cuda.const.array_like(table)
        along_1 = cuda.local.array(width, real)
        piece = cuda.blockIdx.x
        thread = cuda.threadIdx.x & (THREADS - 1)
        first_0, first_1 = work[piece, 0] // bins_1 * bin_0, work[piece, 0] % bins_1 * bin_1
        for row in range(thread // WARP, extent_0, warps):
            line = ((first_0 + row) & (size_0 - 1)) * size_1
            for column in range(thread & (WARP - 1), extent_1, WARP):
                value = grid[np.uint32(line + ((first_1 + column) & (size_1 - 1)))]
                tile_re[row * extent_1 + column] = value.real
                tile_im[row * extent_1 + column] = value.imag
        cuda.syncthreads()
        for point in range(work[piece, 1] + thread, work[piece, 2], THREADS):
            own = np.uint32(point)
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
                line = (at + j * extent_1) & mask
                for i in range(width):
                    row_re += along_1[i] * tile_re[line + i]
                    row_im += along_1[i] * tile_im[line + i]
                re += weight * row_re
                im += weight * row_im
            values[order[own]] = complex(re, im)

    return interpolate, (THREADS, 1)
