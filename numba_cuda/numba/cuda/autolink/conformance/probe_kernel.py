# SPDX-License-Identifier: BSD-2-Clause
"""A kernel that only calls an object."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.cuda import types

from ..device_callable.c_abi import numba_type_named, numba_type_of

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Argument:
    """An argument of the call: a parameter of the kernel with its Numba ``type``, or a constant."""

    type: Any = None
    constant: Any = None

    def __str__(self) -> str:
        return repr(self.constant) if self.type is None else str(self.type)


def argument(given: Any) -> Argument:
    """Return the argument that *given* stands for. Raise `TypeError` if a string is not the name of a type."""
    if isinstance(given, str):
        given = numba_type_named(given)
    if isinstance(given, types.Literal):
        return Argument(constant=given.literal_value)
    if isinstance(given, (types.Type, np.dtype)) or (isinstance(given, type) and issubclass(given, np.generic)):
        return Argument() if isinstance(given, types.NoneType) else Argument(numba_type_of(given))
    return Argument(constant=given)


def probe_kernel(obj: Any, args: Sequence[Argument], calls: int = 1) -> Callable[..., None]:
    """Return a Python function that makes that many *calls* of *obj* with *args*. Its parameters are the *args* with a
    type."""
    named = {f"{'a' if arg.type is not None else 'constant'}{number}": arg for number, arg in enumerate(args)}
    constants = {name: arg.constant for name, arg in named.items() if arg.type is None}
    parameters = ", ".join(name for name in named if name not in constants)
    source = f"def probe({parameters}):\n" + f"    obj({', '.join(named)})\n" * calls
    file = f"<a kernel of check_linkable, {next(_numbers)}>"
    # Error messages read the line from here.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"obj": obj, "__name__": __name__, **constants}
    exec(compile(source, file, "exec"), namespace)
    probe: Callable[..., None] = namespace["probe"]
    return probe


def signature(args: Sequence[Argument]) -> tuple[Any, ...]:
    """Return the types of the kernel's parameters."""
    return tuple(arg.type for arg in args if arg.type is not None)
