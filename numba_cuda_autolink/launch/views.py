# SPDX-License-Identifier: BSD-2-Clause
"""Views of device memory: address, shape, strides, element type; and why an argument does not fit."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..types.parameters import ElementType, item_size, type_name


class Misfit(Exception):
    """An argument does not fit: what it is, and what to do."""

    def __init__(self, got: str, remedy: str = ""):
        super().__init__(got)
        self.got, self.remedy = got, remedy


class View(NamedTuple):
    """Memory that an array shows. ``strides`` are in bytes, ``None`` for C-contiguous arrays. ``dtype`` is ``None`` for
    bytes without a type. ``device`` is the number of the device if the library tells it."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: ElementType | None
    readonly: bool = False
    device: int | None = None

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    def is_contiguous(self, layout: str, itemsize: int) -> bool:
        """Return whether it has *layout*, ``C`` or ``F``. Strides of dimensions of length 1 do not count."""
        if self.strides is None:
            return layout == "C" or sum(length != 1 for length in self.shape) < 2 or not self.size
        pairs = zip(self.shape, contiguous_strides(self.shape, itemsize, layout), self.strides, strict=True)
        return not self.size or all(length == 1 or expected == stride for length, expected, stride in pairs)

    def __str__(self) -> str:
        if self.dtype is None:
            return f"{self.shape[0]} bytes"
        itemsize = item_size(self.dtype)
        layout = next((each for each in "CF" if self.is_contiguous(each, itemsize)), "A")
        kind = "read-only array" if self.readonly else "array"
        return f"{kind}({type_name(self.dtype)}, {len(self.shape)}d, {layout})"


def contiguous_strides(shape: tuple[int, ...], itemsize: int, layout: str) -> tuple[int, ...]:
    """Return the strides in bytes of an array of *layout* ``C`` or ``F``."""
    strides, step = [], itemsize
    for length in reversed(shape) if layout == "C" else shape:
        strides.append(step)
        step *= length
    return tuple(reversed(strides) if layout == "C" else strides)


def shown(value: Any) -> str:
    """Return *value* for messages, in a few words: ``float 1.5``, ``list [1, 2]``."""
    if value is None:
        return "None"
    try:
        return f"{type(value).__name__} {value!r:.60}"
    except Exception:  # a foreign object's own, and integers with thousands of digits
        return type(value).__name__
