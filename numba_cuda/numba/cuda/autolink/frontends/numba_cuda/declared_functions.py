# SPDX-License-Identifier: BSD-2-Clause
"""Functions declared with ``cuda.declare_device``: what they link is remembered, so that they can be pickled."""

from __future__ import annotations

import copyreg
import weakref
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Declaration:
    """The arguments of `numba.cuda.declare_device`, besides name and signature."""

    link: tuple[Any, ...]
    use_cooperative: bool
    abi: str


# How functions were declared, except before this project was active.
declarations: weakref.WeakKeyDictionary[Any, Declaration] = weakref.WeakKeyDictionary()


def reduce_function(function: Any) -> Any:
    """Return what pickles a declared function: it is declared again, which makes it known to Numba."""
    declared = declarations.get(function)
    if declared is None:
        return copyreg.__newobj__, (type(function),), vars(function)  # type: ignore[attr-defined]
    state = {name: value for name, value in vars(function).items() if name not in ("name", "sig")}
    return declare_again, (function.name, function.sig, declared), state or None


def declare_again(name: str, signature: Any, declared: Declaration) -> Any:
    from numba import cuda

    return cuda.declare_device(
        name, signature, list(declared.link), use_cooperative=declared.use_cooperative, abi=declared.abi
    )
