# SPDX-License-Identifier: BSD-2-Clause
"""Functions that call the object that is checked, and what they pass."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..builds.ahead_of_time import build
from ..builds.result import LinkedKernel
from ..c_abi.c_types import numba_type_named, numba_type_of
from ..frontend_api.front_end import core_type

_numbers = itertools.count(1)
_CALL = "    obj({arguments})\n"


@dataclass(frozen=True)
class Argument:
    """An argument of the call: a parameter of the kernel with its Numba ``type``, or a constant."""

    type: Any = None
    constant: Any = None

    @classmethod
    def of(cls, given: Any) -> Argument:
        """Return the argument that *given* stands for. Raise `TypeError` if a string is not the name of a type."""
        if isinstance(given, str):
            given = numba_type_named(given)
        given = core_type(given)
        if isinstance(given, types.Literal):
            return cls(constant=given.literal_value)
        if isinstance(given, (types.Type, np.dtype)) or (isinstance(given, type) and issubclass(given, np.generic)):
            return cls() if isinstance(given, types.NoneType) else cls(numba_type_of(given))
        return cls(constant=given)

    def __str__(self) -> str:
        return repr(self.constant) if self.type is None else str(self.type)


@dataclass(frozen=True)
class Probe:
    """A *function* that calls the object, and the Numba types of its parameters."""

    function: Callable[..., Any]
    types: tuple[Any, ...]

    def build(self, target: Target, **options: Any) -> LinkedKernel:
        return build(self.function, self.types, cc=target.cc, **options)


def make_probe(
    obj: Any,
    args: Sequence[Argument],
    body: str = _CALL,
    elements: Mapping[int, str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    **namespace: Any,
) -> Probe:
    """Return a function whose *body* calls *obj* with ``{arguments}``, and whose parameters are those with a type.

    Of an argument numbered in *elements*, only that element is passed. *parameters* adds parameters with their types.
    """
    named = {f"{'a' if arg.type is not None else 'constant'}{number}": arg for number, arg in enumerate(args)}
    typed = {name: arg.type for name, arg in named.items() if arg.type is not None} | dict(parameters or {})
    passed = ", ".join(name + (elements or {}).get(number, "") for number, name in enumerate(named))
    source = f"def probe({', '.join(typed)}):\n{body.format(arguments=passed)}"
    file = f"<a kernel of check_linkable, {next(_numbers)}>"
    # Error messages read the line from here.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    constants = {name: arg.constant for name, arg in named.items() if name not in typed}
    known: dict[str, Any] = {"obj": obj, "__name__": __name__, **namespace, **constants}
    exec(compile(source, file, "exec"), known)
    return Probe(known["probe"], tuple(typed.values()))


def build_calls(obj: Any, args: Sequence[Argument], target: Target, calls: int = 1, **options: Any) -> LinkedKernel:
    """Build a kernel that makes that many *calls* of *obj* with *args*."""
    return make_probe(obj, args, _CALL * calls).build(target, **options)
