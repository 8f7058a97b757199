# SPDX-License-Identifier: BSD-2-Clause
"""C prototypes: the types that a call in Python passes to a C function and expects back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class CType:
    """How C sees a value.

    ``cxx`` is the type in CUDA C++; ``kind`` is ``"int"``, ``"uint"``, ``"float"``, ``"bool"``, ``"byte"`` (an
    integer of one byte or a bool), ``"struct"`` (a complex
    or 16-bit number, which C++ defines as a struct), ``"pointer"``, ``"word"`` (an integer of 8 bytes or a pointer),
    ``"void"`` or ``"unknown"``; ``size`` and ``align`` are in bytes; ``pointee`` is that of a pointer to a number or a
    pointer.

    A view of an array is a ``"struct"``, or, by reference, a ``"pointer"``: a class of ``cuda::std``. ``fields`` are
    those of a record, for the struct or for a pointer to it.
    """

    cxx: str
    kind: str
    size: int
    align: int
    pointee: CType | None = None
    fields: tuple[CField, ...] = field(default=(), kw_only=True)

    @property
    def has_parts(self) -> bool:
        """Whether it is a struct whose parts are known."""
        return False

    def list_leaves(self, offset: int = 0) -> Iterator[tuple[int, CType]]:
        """Yield the numbers and pointers in the value at *offset*, with their offsets."""
        if self.kind == "struct" and self.size > 2:  # complex
            part = CType("part", "float", self.size // 2, self.size // 2)
            yield from ((offset, part), (offset + part.size, part))
        else:
            yield offset, self


@dataclass(frozen=True)
class CField:
    """A field of a record, for which a C++ struct may have a member of this *name*: its offset in bytes, and its type
    or that of its elements."""

    name: str
    offset: int
    type: CType


@dataclass(frozen=True)
class CPrototype:
    """The result and the parameters of a C function; the *names* of the arguments that a call passes are for
    messages."""

    returns: CType
    parameters: tuple[CType, ...]
    names: tuple[str, ...] = field(default=(), compare=False)

    def declaration(self, symbol: str) -> str:
        """Return the function as C declares it: ``float scale(const float*, int)``."""
        return f"{self.returns.cxx} {symbol}({', '.join(parameter.cxx for parameter in self.parameters)})"


@dataclass(frozen=True)
class CalledFunction:
    """A function that Python calls with the types of a prototype. Two are equal if symbol and prototype are; *call* is
    the first such call, for messages."""

    symbol: str
    prototype: CPrototype
    call: str = field(default="", compare=False)

    @property
    def declaration(self) -> str:
        """The function as C declares it."""
        return self.prototype.declaration(self.symbol)

    @property
    def has_structs(self) -> bool:
        """Whether there are structs by value whose parts are known."""
        return any(each.has_parts for each in (self.prototype.returns, *self.prototype.parameters))

    @property
    def types(self) -> str:
        return ", ".join(map(_pattern, (self.prototype.returns, *self.prototype.parameters)))


def prototype_of_llvm(function_type: str) -> CPrototype:
    """Return the prototype of an LLVM function type, such as ``i32 (float*, double)``, as far as LLVM's types show
    it: what a pointer points to, what a struct contains, and whether an integer of 8 bytes is an address is unknown."""
    returns, _, rest = function_type.partition(" (")
    return CPrototype(_of_llvm(returns), tuple(map(_of_llvm, split_types(rest.rpartition(")")[0]))))


_LLVM = {
    "void": CType("void", "void", 0, 1),
    "float": CType("float", "float", 4, 4),
    "double": CType("double", "float", 8, 8),
    "i1": CType("bool", "byte", 1, 1),
    "i8": CType("signed char", "byte", 1, 1),
    "i16": CType("short", "int", 2, 2),
    "i32": CType("int", "int", 4, 4),
    "i64": CType("long long", "word", 8, 8),
    "ptr": CType("void*", "pointer", 8, 8),
}


def _of_llvm(llvm_type: str) -> CType:
    llvm_type = llvm_type.strip()
    if llvm_type.endswith("*"):
        pointee = _of_llvm(llvm_type[:-1])
        # Only for messages: a cast in C++ may make another pointer of it.
        is_known = pointee.kind in ("int", "float", "word", "pointer")
        return replace(_LLVM["ptr"], cxx=f"{pointee.cxx}*" if is_known else "void*")
    if llvm_type.startswith("ptr"):
        return _LLVM["ptr"]
    return _LLVM.get(llvm_type, CType(f"/* {llvm_type} */", "unknown", 0, 1))


MOST_LEAVES = 256  # of a struct whose parts are compared
# What the templates call the numbers that C++ defines as structs.
_NUMBERS = {"float2": "float", "double2": "double", "__half": "nca_is_half", "__nv_bfloat16": "nca_is_bfloat"}
_VIEW = re.compile(r"(?:const )?(cuda::std::(?:md)?span)<([^,>]+)(.*)>&?")


def _pattern(c_type: CType) -> str:
    """Return the template of ``prototype_assertions`` that decides which C++ types fit a value of *c_type*."""
    if len(c_type.fields) > 1:  # a struct with one member may be memory for anything
        fields = ", ".join(f"nca_field<nca_name_{f.name}, {f.offset}, {_pattern(f.type)}>" for f in c_type.fields)
        return f"nca_with_members<{_pattern(replace(c_type, fields=()))}, {fields}>"
    kind, size = c_type.kind, c_type.size
    leaves = list(itertools.islice(c_type.list_leaves(), MOST_LEAVES + 1))
    if kind == "struct" and c_type.has_parts and 0 < len(leaves) <= MOST_LEAVES:
        listed = ", ".join(f"nca_leaf_at<{at}, {leaf.size}, {_kind(leaf)}>" for at, leaf in leaves)
        return f"nca_with_leaves<nca_struct_of<{size}, {c_type.align}>, {listed}>"
    if found := _VIEW.fullmatch(c_type.cxx):  # C++ may take the elements as const
        name, element, rest = found.groups()
        both = f"{name}<{element}{rest}>, {name}<const {element.removeprefix('const ')}{rest}>"
        return f"nca_{name.rpartition('::')[2].upper()}({both})"
    if kind == "unknown":
        return "nca_anything"
    if kind == "word":
        return "nca_word"
    if kind == "void":
        return "nca_nothing"
    if kind == "float":
        return f"nca_floating_of<{size}>"
    if kind == "struct" and c_type.cxx in _NUMBERS:
        return f"nca_number_of<{size}, {c_type.align}, {_NUMBERS[c_type.cxx]}>"
    if kind == "struct":
        return f"nca_struct_of<{size}, {c_type.align}>"
    if kind in ("bool", "byte"):
        return "nca_boolean_of" if kind == "bool" else "nca_byte_of"
    if kind == "pointer":
        pointer = "nca_address" if c_type.pointee is None else f"nca_pointer_to<{_pattern(c_type.pointee)}>"
        return f"nca_read_only<{pointer}>" if c_type.cxx.startswith("const ") else pointer
    return f"nca_integer_of<{size}>"


def _kind(leaf: CType) -> str:
    if leaf.kind == "struct":
        return {"__half": "nca_half", "__nv_bfloat16": "nca_bfloat"}.get(leaf.cxx, "nca_class")
    named = {"float": "nca_floating", "pointer": "nca_pointer", "bool": "nca_boolean", "byte": "nca_byte"}
    return named.get(leaf.kind, "nca_integer")


def split_types(parameters: str) -> list[str]:
    """Return the parameters of an LLVM function type, which are separated by the commas outside of brackets."""
    found, depth, current = [], 0, ""
    for character in parameters:
        depth += (character in "({[<") - (character in ")}]>")
        if character == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += character
    return [*found, current.strip()] if current.strip() else found
