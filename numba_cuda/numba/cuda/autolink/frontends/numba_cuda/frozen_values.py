# SPDX-License-Identifier: BSD-2-Clause
"""Frozen values: globals, closure variables and attributes that became constants of a function when it was compiled.

A device function is compiled once in a process, for all kernels that call it. A kernel that is compiled after one of
them changed has the old value, where its key, made of what the names mean then, has the new one.
"""

from __future__ import annotations

import builtins
import functools
import types as pytypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.core import ir

from ...protocol.callee import identity
from ...protocol.loaded_modules import UnknownValueError, origin_of
from ...protocol.value_digest import is_plain, value_digest

_MISSING = object()


class GlobalOfObject(ir.Global):
    """A *value* that stands for an expression of an object, such as the attribute *name* of it. *read* evaluates that:
    it returns a value and its Numba type, or None."""

    def __init__(self, name: str, value: Any, read: functools.partial[Any], loc: Any):
        super().__init__(f"{name} of an object", value, loc)
        self.read = read


@dataclass(frozen=True)
class FrozenValue:
    """What *name* of *owner* meant when *function* was compiled: *meant* is the digest of a plain value, or else
    the object itself. *owner* is a dict of globals, a cell, a module, or an object, or evaluates an expression; None if
    it is not known."""

    function: str
    name: str
    owner: Any
    meant: Any

    def changed(self) -> bool:
        """Return whether the name means something else now, as far as that is known."""
        if self.owner is None:
            return True
        try:
            return not _equal(_snapshot(_read(self.owner, self.name)), self.meant)
        except UnknownValueError:
            return True

    def __str__(self) -> str:
        return f"{self.name}, which {self.function} uses"


def frozen_values(lowering: Any) -> Iterator[FrozenValue]:
    """Yield the values that are constants of the function that is being lowered. The version of a package stands for
    those of the functions in it."""
    function = lowering.func_ir.func_id.func
    if origin_of(function.__globals__.get("__name__")) is not None:
        return
    label, typemap = function.__qualname__, lowering.fndesc.typemap
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    for block in lowering.func_ir.blocks.values():
        for statement in block.find_insts(ir.Assign):
            value = statement.value
            if isinstance(value, GlobalOfObject):
                yield _frozen(label, value.name, value.read, value.value)
            elif isinstance(value, ir.Global):
                yield _frozen(label, value.name, function.__globals__, value.value)
            elif isinstance(value, ir.FreeVar):
                yield _frozen(label, value.name, cells.get(value.name), value.value)
            elif isinstance(value, ir.Expr) and value.op == "getattr":
                owner = _owner(typemap.get(value.value.name))
                if owner is not None:
                    yield _frozen(label, value.attr, owner, _read(owner, value.attr))


def _frozen(function: str, name: str, owner: Any, value: Any) -> FrozenValue:
    """Return the record of *value*. What was inlined from another function has another owner, which is not known."""
    try:
        meant, found = _snapshot(value), _read(owner, name)
        if found is not value and not _equal(_snapshot(found), meant):
            owner = None
    except UnknownValueError:
        owner = meant = None
    return FrozenValue(function, name, owner, meant)


def _owner(numba_type: Any) -> Any:
    if isinstance(numba_type, types.Module):
        return numba_type.pymod
    return getattr(numba_type, "numba_cuda_link_object", None)


def _read(owner: Any, name: str) -> Any:
    try:
        if isinstance(owner, dict):
            return owner[name] if name in owner else getattr(builtins, name, _MISSING)
        if isinstance(owner, pytypes.CellType):
            return owner.cell_contents
        if isinstance(owner, functools.partial):
            found = owner()
            return _MISSING if found is None else found[0]
        return getattr(owner, name, _MISSING)
    except Exception:  # an empty cell, or a property that raises
        return _MISSING


def _snapshot(value: Any) -> Any:
    return value_digest(value) if is_plain(value) else value


def _equal(one: Any, other: Any) -> bool:
    if type(one) is bytes or type(other) is bytes:  # digests
        return bool(type(one) is type(other) and one == other)
    return bool(identity(one) == identity(other))
