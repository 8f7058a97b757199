# SPDX-License-Identifier: BSD-2-Clause
"""Functions declared with ``cuda.declare_device``: what they link is remembered, so that they can be pickled."""

from __future__ import annotations

import copyreg
import weakref
from dataclasses import dataclass
from typing import Any

from numba.cuda.codegen import ExternalCodeLibrary

from .ordered_set import OrderedSet


@dataclass(frozen=True)
class Declaration:
    """How a function was declared: what `numba.cuda.declare_device` was told beside its name and signature."""

    link: tuple[Any, ...]
    use_cooperative: bool
    abi: str


_declarations: weakref.WeakKeyDictionary[Any, Declaration] = weakref.WeakKeyDictionary()


def declaration(function: Any) -> Declaration | None:
    """How the function was declared; None of one that was declared before this project was active."""
    return _declarations.get(function)


def remember(function: Any, link: Any, use_cooperative: bool, abi: str) -> None:
    """Remember how *function* was declared."""
    _declarations[function] = Declaration(tuple(link), use_cooperative, abi)


def reduce_function(function: Any) -> Any:
    """How to pickle a declared function: by declaring it again, which is how Numba gets to know it."""
    declared = declaration(function)
    if declared is None:
        return copyreg.__newobj__, (type(function),), vars(function)  # type: ignore[attr-defined]
    state = {name: value for name, value in vars(function).items() if name not in ("name", "sig")}
    return declare_again, (function.name, function.sig, declared), state or None


def declare_again(name: str, signature: Any, declared: Declaration) -> Any:
    """The function, declared in this process."""
    from numba import cuda

    return cuda.declare_device(
        name, signature, list(declared.link), use_cooperative=declared.use_cooperative, abi=declared.abi
    )


class LinkingExternalLibrary(ExternalCodeLibrary):
    """The code of a ``declare_device`` function, in the order in which it was given."""

    def __init__(self, codegen: Any, name: str):
        super().__init__(codegen, name)
        self._linking_files = OrderedSet()
