# SPDX-License-Identifier: BSD-2-Clause
"""The C function of a call, with its result type, from the numbers in the lowered name that describes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numba.cuda import types

from numba_cuda_autolink.printable_texts import number_of

from ..c_abi.c_types import CType, ctype
from ..c_abi.conversions import state
from ..c_abi.extern import Extern
from ..c_abi.record_values import make_enumerator_type
from ..c_abi.structs import field_types, is_struct, struct_ctype
from .calls import Call, Records
from .cxx_errors import CxxError, refuse_call
from .declared_names import UNQUALIFIED
from .prelude import ARRAY, COMPLEX, ENUMERATOR, OBJECT, PLAIN, POINTER, RECORD, STRUCT, TUPLE

NUMBA_TYPES = {
    "void": types.none,
    "bool": types.boolean,
    "signed char": types.int8,
    "unsigned char": types.uint8,
    "short": types.int16,
    "unsigned short": types.uint16,
    "int": types.int32,
    "unsigned int": types.uint32,
    "long long": types.int64,
    "unsigned long long": types.uint64,
    "__half": types.float16,
    "__nv_bfloat16": types.bfloat16,
    "float": types.float32,
    "double": types.float64,
}
_PLAIN = {PLAIN[name]: numba_type for name, numba_type in NUMBA_TYPES.items()}
# By what C++ calls them.
PLAIN_TYPES = {name: _PLAIN[code] for name, code in PLAIN.items()}
COMPLEX_OF = {types.float32: types.complex64, types.float64: types.complex128}
_LARGEST = 4096  # bytes of a result: each number in it is a value of its own in the kernel
_NUMBER = re.compile(r"L[a-z](\d+)E")


@dataclass(frozen=True)
class CxxObject:
    """A value that C cannot return: its size and alignment in bytes."""

    size: int
    align: int


def read_numbers(lowered: str) -> list[int]:
    """Return the numbers that a lowered name spells."""
    return [int(number) for number in _NUMBER.findall(lowered)]


def read_type(code: Iterator[int], records: Sequence[Any]) -> Any:
    """Return the Numba type that the next numbers of *code* describe, or a `CxxObject`; *records* are the types of
    known structs."""
    first = next(code)
    if first == POINTER:
        pointee = _PLAIN[next(code)]
        return types.voidptr if pointee == types.none else types.CPointer(pointee)
    if first == COMPLEX:
        return COMPLEX_OF[_PLAIN[next(code)]]
    if first == ENUMERATOR:
        underlying = _PLAIN[next(code)]
        return make_enumerator_type(_read_name(code), underlying)
    if first == OBJECT:
        return CxxObject(next(code), next(code))
    if first == RECORD:
        return records[next(code)]
    if first == ARRAY:
        count = next(code)
        return types.UniTuple(read_type(code, records), count)
    if first in (TUPLE, STRUCT):
        if first == STRUCT:
            next(code)  # the name
        elements = [read_type(code, records) for _ in range(next(code))]
        return types.BaseTuple.from_types(elements)
    return _PLAIN[first]


def _read_name(code: Iterator[int]) -> str:
    """Return what C++ calls a type, in numbers of eight characters."""
    words = [next(code) for _ in range(next(code))]
    text = b"".join(word.to_bytes(8, "little") for word in words).rstrip(b"\0").decode()
    return text.removesuffix("]").strip()


class WrittenArgumentError(CxxError):
    """A call writes to arguments: those at the positions ``written``. It refers to those at the positions ``referred``,
    and ``returns`` this Numba type."""

    def __init__(self, message: str, written: tuple[int, ...], referred: tuple[int, ...], returns: Any):
        super().__init__(message)
        self.written = written
        self.referred = referred
        self.returns = returns


class CxxExtern(Extern):
    """The C function of a call, which returns the members of a struct one after the other, as C has them: the struct
    itself may be packed, or aligned to more. C++ may write to the arguments at the positions ``referred``, if it gets
    variables."""

    def __init__(
        self, symbol: str, returns: types.Type, args: Mapping[str, Any], records: Records, referred: tuple[int, ...]
    ):
        self._records = records
        self.referred = referred
        super().__init__(symbol, returns=returns, args=args)

    def _describe_result(self) -> CType:
        passed = _list_members(self.returns, self._records)
        return struct_ctype(passed) if is_struct(passed) else ctype(passed)


def _list_members(numba_type: types.Type, records: Records, is_member: bool = False) -> types.Type:
    """Return the type of a result with tuples in place of the structs whose members are known."""
    is_known = is_member or (numba_type in records and records[numba_type].has_members)
    if isinstance(numba_type, types.Record) and is_known:
        return types.Tuple([_list_members(each, records, True) for each in field_types(numba_type)])
    if isinstance(numba_type, types.NestedArray):
        found = _list_members(numba_type.dtype, records, True)
        for count in reversed(numba_type.shape):
            found = types.UniTuple(found, count)
        return found
    if isinstance(numba_type, types.BaseTuple) and len(numba_type):
        return types.Tuple([_list_members(each, records) for each in numba_type.types])
    return numba_type


def _name_struct(argument: Any, records: Records) -> str:
    """Return what C++ calls the struct that an *argument* of this type is, or that the elements of this array are."""
    return records[
        argument.dtype if isinstance(argument, types.Array) else getattr(argument, "of_record", argument)
    ].name


def _use_object(call: Call) -> str:
    """Return the text of a lambda that uses what a *call* returns; that of another lambda is too long to repeat."""
    if not UNQUALIFIED.search(call.pattern.name):
        return ", lib.expr(...)"
    each = "x..." if call.argtypes else ""
    return f": lib.expr('[](auto... x) {{ return f({call.pattern.name}({each})); }}')"


def make_extern(call: Call, answer: str, records: Records, may_refer: Callable[[], bool]) -> Extern:
    """Return the C function of *call*, whose question has the lowered name *answer*. Raise `CxxError` if Python cannot
    call it. *may_refer* tells whether C++ may write to a float, of which no question can be asked."""
    mode, written_bits, referred_bits, copied_bits, is_cut, *code = read_numbers(answer)
    written, referred, copied = (
        tuple(number for number in range(len(call.parameters)) if bits >> number & 1)
        for bits in (written_bits, written_bits | referred_bits, copied_bits)
    )
    if (floats := [n for n, each in enumerate(call.parameters) if each.is_number and not each.bits]) and may_refer():
        referred = tuple(sorted({*referred, *floats}))
    for number in copied:
        name = _name_struct(call.argtypes[number], records)
        diagnosis = f"{name} has packed members, which CUDA's compiler passes wrongly by value"
        raise refuse_call(call.label, diagnosis, f"let C++ take a reference to it: const {name}&")
    returns = read_type(iter(code), list(records))
    if isinstance(returns, CxxObject):
        raise CxxError(
            f"{call.label} returns an object that only C++ knows ({number_of(returns.size, 'byte')})\n"
            f"  what to do: let a lambda use the object and return numbers{_use_object(call)};\n"
            "    or keep it in memory of a lib.type(...)"
        )
    if is_cut:
        raise CxxError(
            f"{call.label} returns a struct with packed members, of which CUDA's compiler may lose bytes\n"
            "  what to do: let C++ write it through a reference, to an element of an array of lib.record(...)"
        )
    if written:
        positions = ", ".join(str(number + 1) for number in written)
        raise WrittenArgumentError(
            f"{call.label} writes to argument {positions}, which is neither a variable nor an element of an array that"
            " can be written\n"
            "  what to do: assign it to a variable, pass that, and store it after the call: n = v; f(n); v = n",
            written,
            referred,
            returns,
        )
    passed = {
        f"args_{number}": state if parameter.is_state else view or (types.voidptr if parameter.is_place else None)
        for number, (view, parameter) in enumerate(zip(call.choose_views(mode), call.parameters, strict=True))
        if parameter.is_passed
    }
    found = CxxExtern(call.symbol, returns, passed, records, referred)
    if found.return_ctype.size > _LARGEST:
        raise CxxError(
            f"{call.label} returns {found.return_ctype.size} bytes, and a value in a kernel has at most {_LARGEST}\n"
            "  what to do: let C++ write it to an array"
        )
    return found
