# SPDX-License-Identifier: BSD-2-Clause
"""Functions of ``declare_device``, for messages: where they are declared, and the code that they bring."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from numba_cuda_autolink.source_locations import shown_file, with_place

Place: TypeAlias = "tuple[str, int]"
_declared: dict[str, tuple[tuple[Any, ...], Place]] = {}


def note_declared(name: str, link: Iterable[Any], place: Place) -> None:
    """Note that the function *name* is declared at a line of a file, and brings what *link* names."""
    _declared[name] = tuple(link), place


def place_of(name: str) -> Place | None:
    return _declared[name][1] if name in _declared else None


def find_bringing(names: Iterable[str], is_item: Callable[[Any], bool]) -> str:
    """Return the first of the functions *names* that brings an item for which *is_item* is true; empty if none does."""
    return next((name for name in names if any(map(is_item, _declared.get(name, ((),))[0]))), "")


def with_declaration(message: str, name: str) -> str:
    """Return *message* with the place where the function *name* is declared."""
    filename, line = _declared[name][1]
    return with_place(message, f"declared at: {shown_file(filename)}:{line}", filename, line)
