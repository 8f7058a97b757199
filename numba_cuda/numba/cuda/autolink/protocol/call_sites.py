# SPDX-License-Identifier: BSD-2-Clause
"""Call sites: which Python objects the calls of a typed function reach."""

from __future__ import annotations

import inspect
import types as pytypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.core import ir

from ..compilation import compilation
from .callee import HOOK, Callee, find_callee


@dataclass(frozen=True)
class CallSite:
    """One call of an object that provides linkable code.

    Equal when object, argument types and place are the same.
    """

    callee: Callee
    argtypes: tuple[Any, ...]
    filename: str
    line: int
    function: str

    @property
    def call(self) -> str:
        """The call as text: ``fft(array(complex64, 1d, C))`` with the object's repr as its name."""
        return f"{self.callee}({', '.join(map(str, self.argtypes))})"

    @property
    def place(self) -> str:
        """Where the call stands."""
        return f"{self.filename}:{self.line} in {self.function}"

    def __str__(self) -> str:
        return f"{self.call} called at {self.place}"


class CallSites:
    """Finds the call sites of one typed function.

    Two sources tell which object a call reaches. The definitions in the IR name it exactly where the object is a
    constant (a global, a closure variable, an attribute of such a one). Its Numba type tells it everywhere else: the
    element of a tuple, a loop variable, the argument of a device function.
    """

    def __init__(self, func_ir: Any, typemap: dict[str, Any]):
        self._func_ir = func_ir
        self._typemap = typemap

    def of(self, call: Any, signature: Any) -> Iterator[CallSite]:
        """The call sites that the IR expression *call*, typed as *signature*, stands for."""
        func_type = self._typemap[call.func.name]
        callees = self._from_definitions(call.func, func_type) or callees_of_type(func_type)
        if not callees:
            return
        argtypes = called_with(signature)
        function = self._func_ir.func_id.func_qualname
        for callee in callees:
            yield CallSite(callee, argtypes, call.loc.filename, call.loc.line, function)

    def all(self, calltypes: dict[Any, Any]) -> Iterator[tuple[Any, CallSite]]:
        """Every call expression of the function that reaches linkable code, with its call sites."""
        for block in self._func_ir.blocks.values():
            for call in block.find_exprs(op="call"):
                for site in self.of(call, calltypes[call]):
                    yield call, site

    def _from_definitions(self, func: Any, func_type: Any) -> list[Callee]:
        try:
            value = self._value(func)
        except _NotConstantError:
            return []
        callee = find_callee(value)
        if callee is None and isinstance(func_type, types.BoundFunction):
            owner = self._owner(func)
            callee = find_callee(owner) if owner is not None else None
        return [callee] if callee else []

    def _owner(self, func: Any) -> Any:
        """The object whose method *func* is, or None."""
        definition = self._definition(func)
        if isinstance(definition, ir.Expr) and definition.op == "getattr":
            return self._value(definition.value)
        return None

    def _definition(self, var: Any) -> Any:
        try:
            return self._func_ir.get_definition(var)
        except KeyError:  # none, or several
            raise _NotConstantError from None

    def _value(self, var: Any) -> Any:
        """The Python object that the IR variable *var* stands for."""
        definition = self._definition(var)
        if isinstance(definition, (ir.Global, ir.FreeVar, ir.Const)):
            return definition.value
        if isinstance(definition, ir.Expr):
            if definition.op == "getattr":
                owner = self._value(definition.value)
                try:
                    return getattr(owner, definition.attr)
                except Exception:  # typing found the attribute; Python need not have it
                    if isinstance(self._typemap.get(var.name), types.BoundFunction):
                        return None
                    raise _NotConstantError from None
            if definition.op == "static_getitem":
                container = self._value(definition.value)
                if isinstance(container, tuple):
                    try:
                        return container[definition.index]
                    except (IndexError, TypeError):
                        raise _NotConstantError from None
            if definition.op == "cast":
                return self._value(definition.value)
        raise _NotConstantError


class _NotConstantError(Exception):
    """The definitions do not tell which object a variable stands for."""


def callees_of_type(func_type: Any) -> list[Callee]:
    """The objects with linkable code that a call of a value of *func_type* may reach."""
    receiver = func_type.this if isinstance(func_type, types.BoundFunction) else func_type
    objects = [getattr(func_type, "numba_cuda_link_object", None)]
    in_progress = compilation()
    if in_progress is not None:
        objects += in_progress.objects.get(receiver, ())
    if isinstance(func_type, types.Dispatcher):
        objects.append(func_type.dispatcher)
    elif isinstance(func_type, types.BaseFunction):
        objects.append(func_type.typing_key)
    objects.append(getattr(func_type, "instance_class", None))
    callees = [callee for callee in map(find_callee, objects) if callee is not None]
    if not callees:
        by_type = find_callee(receiver)
        callees = [by_type] if by_type else []
    return callees


def called_with(signature: Any) -> tuple[Any, ...]:
    """The types of a call's arguments in the callee's parameter order, defaults included, ``*args`` one by one."""
    argtypes: list[Any] = []
    for argtype in signature.args:
        if isinstance(argtype, (types.StarArgTuple, types.StarArgUniTuple)):
            argtypes.extend(argtype.types)
        elif isinstance(argtype, types.Omitted):
            from numba.cuda.typing.typeof import typeof

            argtypes.append(typeof(argtype.value))
        else:
            argtypes.append(argtype)
    return tuple(argtypes)


def note_objects(numba_type: Any, value: Any) -> None:
    """Remember, for the compilation in progress, which objects with linkable code typing met in *value*."""
    in_progress = compilation()
    if in_progress is None or isinstance(value, pytypes.ModuleType):
        return
    if isinstance(value, tuple):
        for element_type, element in zip(getattr(numba_type, "types", ()), value, strict=False):
            note_objects(element_type, element)
    elif not inspect.isclass(value) and hasattr(value, HOOK):
        in_progress.met(numba_type, value)
