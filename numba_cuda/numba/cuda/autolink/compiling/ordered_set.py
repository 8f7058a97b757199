# SPDX-License-Identifier: BSD-2-Clause
"""An ordered set, so that the same program is linked in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import Any


class OrderedSet(MutableSet[Any]):
    """A set that keeps the order of insertion."""

    def __init__(self, items: Iterable[Any] = ()):
        self._items = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Any) -> None:
        """Add *item* at the end, unless it is contained already."""
        self._items[item] = None

    def discard(self, item: Any) -> None:
        """Remove *item* if it is contained."""
        self._items.pop(item, None)

    def update(self, items: Iterable[Any]) -> None:
        """Add each of *items*."""
        for item in items:
            self.add(item)
