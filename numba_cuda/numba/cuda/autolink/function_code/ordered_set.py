# SPDX-License-Identifier: BSD-2-Clause
"""A set that keeps the order of insertion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class OrderedSet:
    """A set that keeps the order of insertion, with the methods that numba-cuda calls."""

    def __init__(self, items: Iterable[Any] = ()):
        self._items = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Any) -> None:
        self._items[item] = None

    def update(self, items: Iterable[Any]) -> None:
        self._items.update(dict.fromkeys(items))
