# SPDX-License-Identifier: BSD-2-Clause
"""Walking code libraries, however deep their call graph is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Library = TypeVar("Library")


def callees_first(root: Library, callees: Callable[[Library], Iterable[Library]]) -> Iterator[Library]:
    """Yield *root* and all below it: each once, after everything that it calls."""
    visited = {root}
    path = [(root, iter(callees(root)))]
    while path:
        library, callees_left = path[-1]
        below = next((each for each in callees_left if each not in visited), None)
        if below is None:
            path.pop()
            yield library
        else:
            visited.add(below)
            path.append((below, iter(callees(below))))
