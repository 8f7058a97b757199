# SPDX-License-Identifier: BSD-2-Clause
"""Matrices that a warp holds together: loads of 8 x 8 tiles from shared memory.

The operands of a lane are in memory of its own (A of its record): the address of a row, and then the registers that
come of it.
"""
# ruff: noqa: F821
# mypy: disable-error-code="name-defined"

from __future__ import annotations

from .native import native, u32, u64
from .state import Thread


@native(inline=False)
def gather_matrix(first: u64, lanes: u32, transposed: bool):
    """Lane 8 k + r holds the address of row r of matrix k; lane l gets 2 elements of row l / 4 from 2 (l mod 4) on."""
    count = u32(load_u64(first, Thread.B))
    for lane in range(u32(32)):
        mine = load_u64(first + u64(lane) * Thread.BYTES, Thread.A)
        for matrix in range(count):
            word = u32(0)
            for half in range(u32(2)):
                row = lane >> 2
                column = (lane & 3) * 2 + half
                if transposed:
                    row = (lane & 3) * 2 + half
                    column = lane >> 2
                holder = load_u64(first + u64(matrix * 8 + row) * Thread.BYTES, Thread.A)
                word |= u32(load_u16(load_u64(holder, 0), u64(column) * 2)) << (half * 16)
            store_u32(mine, u64(8 + matrix * 4), word)
