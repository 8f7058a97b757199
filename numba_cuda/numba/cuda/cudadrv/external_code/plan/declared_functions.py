# SPDX-License-Identifier: BSD-2-Clause
"""Functions of ``declare_device``: how and where they are declared, and the code that they bring."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from numba_cuda_autolink.source_locations import shown_file, with_place


@dataclass(frozen=True)
class Declaration:
    """How a function was declared, besides its name and signature: with what, and at which line of which file."""

    link: tuple[Any, ...]
    use_cooperative: bool
    abi: str
    place: tuple[str, int]


# Those of the functions that live, except for what was declared before this project was active; and by name the last.
declarations: weakref.WeakKeyDictionary[Any, Declaration] = weakref.WeakKeyDictionary()
_by_name: dict[str, Declaration] = {}


def note_declared(function: Any, declaration: Declaration) -> None:
    declarations[function] = _by_name[function.name] = declaration


def place_of(name: str) -> tuple[str, int] | None:
    return _by_name[name].place if name in _by_name else None


def abi_of(name: str) -> str:
    """Return how the function *name* is called, ``"numba"`` or ``"c"``; empty if none of that name was declared."""
    return _by_name[name].abi if name in _by_name else ""


def find_bringing(names: Iterable[str], is_item: Callable[[Any], bool]) -> str:
    """Return the first of the functions *names* that brings an item for which *is_item* is true; empty if none does."""
    return next((name for name in names if name in _by_name and any(map(is_item, _by_name[name].link))), "")


def with_declaration(message: str, name: str) -> str:
    """Return *message* with the place where the function *name* is declared."""
    filename, line = _by_name[name].place
    return with_place(message, f"declared at: {shown_file(filename)}:{line}", filename, line)
