# SPDX-License-Identifier: BSD-2-Clause
"""The FFT of the fine grid: passes that call an FFT object, each between specialised loads and stores.

A pass transforms rows; its loads and stores determine where their elements are. Nothing but the transform itself
therefore reads or writes the grid. Zero padding and the deconvolution of the window happen when modes are loaded. When
modes are stored, the deconvolution happens and modes that were not requested are left out. Grid points are reset to
zero, for the next transform, when they are read. A dimension of more than `longest` points is treated as a matrix: one
pass over its columns, a twiddle factor for each element, and one pass over its rows.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from _frontend import cuda
from _memory import memory
from fft import FFT

LAUNCHABLE = 48 << 10  # bytes of dynamic shared memory that a kernel may use without requesting more from the driver


class Grid(NamedTuple):
    """Element `j` of row `r` is at ``r * across + j * along``.

    With `clear`, loaded elements are set to zero. With `twiddle`, stored elements are multiplied by a root of unity to
    the power ``r * j``; the table has the powers below `twiddle`, and then the powers that are multiples of it.
    """

    across: int
    along: int
    clear: bool = False
    twiddle: int = 0


class Modes(NamedTuple):
    """Element `j` of row `r` is frequency ``r * shift + j * step`` of `size`; `kept` of them are modes, the rest zero.

    Mode `m`, of frequency ``m - kept // 2``, is at ``r * across + m * along``. The table has a factor for each mode.
    """

    kept: int
    size: int
    shift: int = 0
    step: int = 1
    across: int = 0
    along: int = 1


class Pass(NamedTuple):
    """One pass over `rows` rows of `size` elements."""

    size: int
    rows: int
    load: Grid | Modes
    store: Grid | Modes


def passes_of(kind: int, modes: tuple[int, ...], sizes: tuple[int, ...], longest: int) -> list[Pass]:
    """Return the passes that transform a fine grid into modes (`kind` 1) or modes into a fine grid (`kind` 2).

    If there are two passes, the first writes a separate array, which the second reads.
    """
    if len(sizes) == 2:
        (count_0, count_1), (size_0, size_1) = modes, sizes
        modes_0 = Modes(count_0, size_0, across=1, along=count_1)
        modes_1 = Modes(count_1, size_1, across=count_1)
        columns, rows = Grid(1, count_1), Grid(size_1, 1, clear=True)
        if kind == 1:
            return [Pass(size_1, size_0, rows, modes_1), Pass(size_0, count_1, columns, modes_0)]
        return [Pass(size_0, count_1, modes_0, columns), Pass(size_1, size_0, modes_1, rows)]
    (count,), (size,) = modes, sizes
    if size <= longest:
        ends = Grid(0, 1, clear=True), Modes(count, size)
        return [Pass(size, 1, *(ends if kind == 1 else ends[::-1]))]
    along = matrix_rows(size)
    across = size // along
    # Element (i, j) of the matrix is grid point i * across + j; frequency (k, l) is k + l * along.
    columns, rows = Grid(1, across, twiddle=twiddle_split(size)), Grid(across, 1)
    if kind == 1:
        return [
            Pass(along, across, Grid(1, across, clear=True), columns),
            Pass(across, along, rows, Modes(count, size, shift=1, step=along)),
        ]
    return [
        Pass(along, across, Modes(count, size, shift=1, step=across), columns),
        Pass(across, along, rows, Grid(1, along)),
    ]


def matrix_rows(size: int) -> int:
    """Return the rows of a long dimension's matrix: the smallest power of two that is at least the root of its size."""
    return 1 << size.bit_length() // 2


def twiddle_split(size: int) -> int:
    return matrix_rows(size)


def twiddles(size: int, sign: int, value_type: Any) -> np.ndarray:
    """Return the table of a `Grid` with ``twiddle=twiddle_split(size)``."""
    fine = twiddle_split(size)
    powers = np.concatenate([np.arange(fine), np.arange(0, size, fine)])
    turns = 2 * np.arccos(np.longdouble(-1)) * powers / size
    return (np.cos(turns) + sign * 1j * np.sin(turns)).astype(value_type)


def _loads(place: Grid | Modes, value_type: Any):
    if isinstance(place, Modes):
        kept, size, shift, step, across, along = place
        negative = kept // 2
        positive = kept - negative

        @cuda.jit(device=True)
        def load_mode(source, table, row, j):
            frequency = row * shift + j * step
            if frequency < positive:
                mode = frequency + negative
            elif frequency >= size - negative:
                mode = frequency - (size - negative)
            else:
                return value_type(0)
            return value_type(memory.load(source, row * across + mode * along) * table[mode])

        return load_mode

    across, along, clear, _ = place

    @cuda.jit(device=True)
    def load_point(source, table, row, j):
        at = row * across + j * along
        value = memory.load(source, at)
        if clear:
            memory.store(source, at, 0)
        return value

    return load_point


def _stores(place: Grid | Modes):
    if isinstance(place, Modes):
        kept, size, shift, step, across, along = place
        negative = kept // 2
        positive = kept - negative

        @cuda.jit(device=True)
        def store_mode(target, table, row, j, value):
            frequency = row * shift + j * step
            if frequency < positive:
                mode = frequency + negative
                memory.store(target, row * across + mode * along, value * table[mode])
            elif frequency >= size - negative:
                mode = frequency - (size - negative)
                memory.store(target, row * across + mode * along, value * table[mode])

        return store_mode

    across, along, _, twiddle = place

    @cuda.jit(device=True)
    def store_point(target, table, row, j, value):
        if twiddle:
            turn = row * j
            value *= table[turn % twiddle] * table[twiddle + turn // twiddle]
        memory.store(target, row * across + j * along, value)

    return store_point


def fft_for(done: Pass, sign: int, real: Any) -> FFT:
    """Return the FFT object of a pass. Adjacent rows go to one block, so that together they fill memory sectors."""
    direction = "inverse" if sign > 0 else "forward"
    fft = FFT(done.size, real, direction)
    rows = fft.ffts_per_block
    if 1 in (done.load.across, done.store.across):
        rows = max(rows, 128 // fft.value_type.itemsize)
    rows = max(1, min(rows, 512 // fft.stride, 1 << (done.rows - 1).bit_length()))
    while rows > 1 and FFT(done.size, real, direction, ffts_per_block=rows).shared_memory_size > LAUNCHABLE:
        rows //= 2
    return FFT(done.size, real, direction, ffts_per_block=rows)


@cache
def make_kernel(done: Pass, sign: int, real: Any) -> tuple[Any, FFT]:
    """Return the kernel of a pass, and the FFT object that it calls."""
    fft = fft_for(done, sign, real)
    load, store = _loads(done.load, fft.value_type.type), _stores(done.store)
    rows = done.rows

    @cuda.jit
    def transform(source, target, load_table, store_table):
        row = cuda.blockIdx.x * fft.ffts_per_block + cuda.threadIdx.y
        thread_data = cuda.local.array(fft.storage_size, fft.value_type)
        shared_mem = cuda.shared.array(0, fft.value_type)
        if row < rows:
            for i in range(fft.storage_size):
                thread_data[i] = load(source, load_table, row, cuda.threadIdx.x + i * fft.stride)
        fft(thread_data, shared_mem)
        if row < rows:
            for i in range(fft.storage_size):
                store(target, store_table, row, cuda.threadIdx.x + i * fft.stride, thread_data[i])

    return transform, fft
