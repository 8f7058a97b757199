# SPDX-License-Identifier: BSD-2-Clause
"""Call sites: which objects the calls of a typed function reach."""

from __future__ import annotations

import inspect
import types as pytypes
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.core import ir
from numba.cuda.typing.templates import Signature

from numba_cuda_autolink.source_locations import shown_file

from ..compilation.context import compilation
from ..frontend_api.front_end import NUMBA_CUDA, Vocabulary, vocabulary_of
from .callee import HOOK, Callee, attribute_of, find_callee, takes_core_types

# An attribute of the `Loc` of a call in a function that a front end inlined before types were known: that function.
INLINED = "numba_cuda_autolink_function"
# Expressions of the IR whose value is in the memory of another value.
_PARTS = ("getattr", "getitem", "static_getitem", "cast", "getiter", "iternext", "pair_first")


@dataclass(frozen=True)
class CallSite:
    """One call of an object that provides linkable code. Two are equal if object, argument types and place are."""

    callee: Callee
    argtypes: tuple[Any, ...]  # the final ones, in the order of the callee's parameters
    filename: str
    line: int
    function: str

    @property
    def call(self) -> str:
        """The call as text: ``fft(array(complex64, 1d, C))``, with the object's repr as its name."""
        return self.describe()

    def describe(self, number: int = 1) -> str:
        counted = f" #{number}" if number > 1 else ""
        return f"{self.callee}{counted}({', '.join(map(str, self.argtypes))})"

    @property
    def place(self) -> str:
        """Where it is: file and line, and the function that it is in."""
        return f"{shown_file(self.filename)}:{self.line} in {self.function}"

    @property
    def site(self) -> CallSite:
        return self

    def __str__(self) -> str:
        return f"{self.call} called at {self.place}"


def origins_of(sites: Iterable[CallSite]) -> dict[CallSite, str]:
    """Return the text of each of *sites*. Of objects that look the same and are called with the same types in one line,
    those after the first have numbers."""
    alike: dict[str, dict[Callee, int]] = {}
    found: dict[CallSite, str] = {}
    for site in sites:
        callees = alike.setdefault(str(site), {})
        number = callees.setdefault(site.callee, len(callees) + 1)
        found[site] = str(site) if number == 1 else f"{site.describe(number)} called at {site.place}"
    return found


def function_at(loc: Any, func_ir: Any) -> str:
    """Return the name of the function with the line *loc* of *func_ir*: an inlined one, or that of *func_ir* itself."""
    inlined = getattr(loc, INLINED, None)
    return func_ir.func_id.func_qualname if inlined is None else inlined.__qualname__


class CallSites:
    """Finds the call sites of one typed function.

    Two sources name the object that a call reaches. The definitions in the IR name it where it is a constant (a global,
    a closure variable, an attribute of one of these). Its Numba type names it everywhere else: an element of a tuple, a
    loop variable, an argument of a device function.
    """

    def __init__(self, func_ir: ir.FunctionIR, typemap: Mapping[str, types.Type], vocabulary: Vocabulary = NUMBA_CUDA):
        self.func_ir = func_ir
        self._typemap = typemap
        self._vocabulary = vocabulary

    def of(self, call: ir.Expr, signature: Signature) -> Iterator[CallSite]:
        """Yield the call sites of the IR expression *call*, typed as *signature*."""
        func_type = self._typemap[call.func.name]
        callees = self._from_definitions(call.func, func_type) or callees_of_type(func_type)
        if not callees:
            return
        argtypes = argument_types(signature)
        function = function_at(call.loc, self.func_ir)
        to_core = self._vocabulary.to_core
        for callee in callees:
            in_core = self._vocabulary is not NUMBA_CUDA and takes_core_types(callee.obj)
            given = tuple(map(to_core, argtypes)) if in_core else argtypes
            yield CallSite(callee, given, call.loc.filename, call.loc.line, function)

    def all(self, calltypes: Mapping[ir.Expr, Signature]) -> Iterator[tuple[ir.Expr, CallSite]]:
        """Yield each call expression of the function that reaches linkable code, with each of its call sites."""
        for block in self.func_ir.blocks.values():
            for call in block.find_exprs(op="call"):
                for site in self.of(call, calltypes[call]):
                    yield call, site

    def _from_definitions(self, func: ir.Var, func_type: types.Type) -> list[Callee]:
        words = self._vocabulary
        callee = find_callee(constant_of(self.func_ir, func, words))
        if callee is None and isinstance(func_type, words.types.BoundFunction):
            definition = words.ir_utils.guard(words.ir_utils.get_definition, self.func_ir, func)
            if isinstance(definition, words.ir.Expr) and definition.op == "getattr":  # of the object whose method it is
                callee = find_callee(constant_of(self.func_ir, definition.value, words))
        return [callee] if callee else []


def constant_of(func_ir: ir.FunctionIR, var: ir.Var | ir.Expr, vocabulary: Vocabulary = NUMBA_CUDA) -> Any:
    """Return the Python object that the IR variable *var* stands for, or the expression that defines one; None if its
    definitions do not name one."""
    words, definition = vocabulary.ir, var
    if not isinstance(var, words.Expr):
        definition = vocabulary.ir_utils.guard(vocabulary.ir_utils.get_definition, func_ir, var)
    if isinstance(definition, (words.Global, words.FreeVar, words.Const)):
        return definition.value
    if not isinstance(definition, words.Expr) or definition.op not in ("getattr", "getitem", "static_getitem", "cast"):
        return None
    value = constant_of(func_ir, definition.value, vocabulary)
    if value is None or definition.op == "cast":
        return value
    try:
        if definition.op == "getattr":
            return getattr(value, definition.attr)
        if definition.op == "static_getitem":
            return value[definition.index] if isinstance(value, tuple) else None
        index = constant_of(func_ir, definition.index, vocabulary)
        return value[index] if isinstance(index, str) and hasattr(type(value), "_cxx_reads_files") else None
    except Exception:  # typing found the attribute or element; Python need not have it
        return None


def find_read_only(
    func_ir: ir.FunctionIR, typemap: Mapping[str, types.Type], call: ir.Expr, vocabulary: Vocabulary = NUMBA_CUDA
) -> tuple[int, ...]:
    """Return the positions of the arguments of a *call* that are elements of read-only arrays of records, or parts of
    these, as far as the function shows it: their types do not."""
    words = vocabulary.types
    parts = (words.Record, words.NestedArray)
    return tuple(
        number
        for number, each in enumerate(call.args)
        if isinstance(typemap.get(each.name), parts) and _is_read_only(func_ir, typemap, each, vocabulary)
    )


def _is_read_only(func_ir: ir.FunctionIR, typemap: Mapping[str, types.Type], var: Any, vocabulary: Vocabulary) -> bool:
    while var is not None:
        numba_type = typemap.get(var.name)
        if isinstance(numba_type, vocabulary.types.Array) and not numba_type.mutable:
            return True
        definition = vocabulary.ir_utils.guard(vocabulary.ir_utils.get_definition, func_ir, var)
        is_part = isinstance(definition, vocabulary.ir.Expr) and definition.op in _PARTS
        var = definition.value if is_part else None
    return False


def callees_of_type(func_type: types.Type) -> list[Callee]:
    """Return the objects with linkable code that a call to a value of *func_type* may reach."""
    words = vocabulary_of(func_type).types
    receiver = func_type.this if isinstance(func_type, words.BoundFunction) else func_type
    objects = [getattr(func_type, "numba_cuda_link_object", None)]
    in_progress = compilation()
    if in_progress is not None:
        objects += in_progress.objects.get(receiver, {}).values()
    if isinstance(func_type, words.Dispatcher):
        objects.append(func_type.dispatcher)
    elif isinstance(func_type, words.BaseFunction):
        objects.append(func_type.typing_key)
    objects.append(getattr(func_type, "instance_class", None))
    callees = [callee for callee in map(find_callee, objects) if callee is not None]
    by_type = None if callees else find_callee(receiver)
    return [by_type] if by_type else callees


def argument_types(signature: Signature) -> tuple[Any, ...]:
    """Return the types of a call's arguments in the order of the callee's parameters: defaults are included, and
    ``*args`` come one by one."""
    argtypes: list[Any] = []
    for argtype in signature.args:
        words = vocabulary_of(argtype)
        if isinstance(argtype, (words.types.StarArgTuple, words.types.StarArgUniTuple)):
            argtypes.extend(argtype.types)
        else:
            is_default = isinstance(argtype, words.types.Omitted)
            argtypes.append(words.typeof.typeof(argtype.value) if is_default else argtype)
    return tuple(argtypes)


def note_objects(numba_type: types.Type, value: Any) -> None:
    """Remember, for the compilation in progress, which objects with linkable code *value* is or contains."""
    in_progress = compilation()
    if in_progress is None or isinstance(value, pytypes.ModuleType):
        return
    if isinstance(value, tuple):
        for element_type, element in zip(getattr(numba_type, "types", ()), value, strict=False):
            note_objects(element_type, element)
    elif not inspect.isclass(value) and attribute_of(value, HOOK) is not None:
        in_progress.objects.setdefault(numba_type, {})[id(value)] = value
