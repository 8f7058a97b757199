# SPDX-License-Identifier: BSD-2-Clause
"""Numba's arrays among the packed parameters of a kernel: their shapes, and indices of their elements, for messages."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = 4  # words before the address: two that are unused, the number of elements, and their size
_MOST_DIMENSIONS = 8


@dataclass(frozen=True)
class PackedArray:
    """An array: the *address* of its first element, its shape, and its strides in bytes."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def index_of(self, address: int) -> tuple[int, ...]:
        """Return the index of the element at *address*, which may be outside: of the longest stride then."""
        index, offset = [0] * len(self.shape), address - self.address
        for axis in sorted(range(len(self.shape)), key=lambda axis: -abs(self.strides[axis])):
            if self.strides[axis]:
                index[axis], offset = divmod(offset, self.strides[axis])
        return tuple(index)


def find_array(parameters: bytes, low: int, high: int) -> PackedArray | None:
    """Return the array among the packed *parameters* whose memory begins between the addresses *low* and *high*."""
    words = struct.unpack(f"<{len(parameters) // 8}q", parameters[: len(parameters) // 8 * 8])
    found = (array for k in range(_HEADER, len(words)) if low <= words[k] < high for array in _read_arrays(words, k))
    return next(found, None)


def _read_arrays(words: tuple[int, ...], k: int) -> Iterator[PackedArray]:
    """Yield what the address at *k* can be the array of: the elements of its shape are as many as it says."""
    count, itemsize = words[k - 2], words[k - 1]
    for dimensions in range(1, _MOST_DIMENSIONS + 1):
        shape = words[k + 1 : k + 1 + dimensions]
        strides = words[k + 1 + dimensions : k + 1 + 2 * dimensions]
        is_whole = len(strides) == dimensions and count > 0 and itemsize > 0
        if is_whole and math.prod(shape) == count and all(s and s % itemsize == 0 for s in strides):
            yield PackedArray(words[k], shape, strides)
