# SPDX-License-Identifier: BSD-2-Clause
"""The C ABI: how C declares a value of a Numba type, and where it finds the value's parts in memory.

The sizes and alignments are CUDA C++'s own (`CUDA C++ Programming Guide, "Built-in Vector Types"
<https://docs.nvidia.com/cuda/cuda-c-programming-guide/#built-in-vector-types>`_); the tests compare every prototype
with the one that NVRTC compiles.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.core.errors import NumbaError
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CField, CType

from numba_cuda_autolink.errors import PrintableError
from numba_cuda_autolink.printable_texts import did_you_mean, number_of

from ..frontend_api.front_end import core_type
from ..frontend_api.signature_messages import type_meant_by


class CABIError(PrintableError, TypeError):
    """A value cannot be passed to C or returned from it. The message says why and what to do."""

    __module__ = "numba.cuda.autolink"  # as tracebacks show it


_VOID = CType("void", "void", 0, 1)
_SCALARS: dict[Any, CType] = {
    types.int8: CType("signed char", "int", 1, 1),
    types.int16: CType("short", "int", 2, 2),
    types.int32: CType("int", "int", 4, 4),
    types.int64: CType("long long", "int", 8, 8),
    types.uint8: CType("unsigned char", "uint", 1, 1),
    types.uint16: CType("unsigned short", "uint", 2, 2),
    types.uint32: CType("unsigned int", "uint", 4, 4),
    types.uint64: CType("unsigned long long", "uint", 8, 8),
    types.boolean: CType("bool", "bool", 1, 1),
    types.float16: CType("__half", "struct", 2, 2),
    types.bfloat16: CType("__nv_bfloat16", "struct", 2, 2),
    types.float32: CType("float", "float", 4, 4),
    types.float64: CType("double", "float", 8, 8),
    types.complex64: CType("float2", "struct", 8, 8),
    types.complex128: CType("double2", "struct", 16, 16),
}


# What may be the name of a member in C++, apart from words that mean something else.
_MEMBER = re.compile(r"(?!__|defined$|nca_)[A-Za-z_][A-Za-z0-9_]*")
# The headers of types that CUDA C++ does not have without one.
HEADERS = {"__half": "cuda_fp16.h", "__nv_bfloat16": "cuda_bf16.h"}
_BY_NAME = {c_type.cxx: c_type for c_type in _SCALARS.values()}


def pointer_to(cxx: str) -> CType:
    name = cxx.removeprefix("const ")
    pointee = pointer_to(name.removesuffix("*")) if name.endswith("*") else _BY_NAME.get(name)
    return CType(f"{cxx}*", "pointer", 8, 8, pointee)


def cxx_type(numba_type: Any, view: Any = None) -> str:
    """Return the CUDA C++ type of a parameter or a result of a Numba type.

    Numbers are passed by value: ``float32`` is ``float``, ``int64`` ``long long``, ``complex64`` ``float2``,
    ``float16`` ``__half`` (from ``<cuda_fp16.h>``). A contiguous array is a pointer to its first element, ``float*``,
    or ``const float*`` if it is read-only; a tuple of equal types is a ``const`` pointer to the first. Records are
    ``void*`` and other tuples ``const void*``: the C++ code declares the struct. ``None`` is ``void``; as an argument
    it is a null pointer, whatever pointer the C++ code declares.

    With a *view*, `autolink.span` or `autolink.mdspan`, the result is the type of a parameter that takes an array as
    this view: ``cuda::std::span<float>``, ``const cuda::std::mdspan<float, cuda::std::dextents<long long, 2>,
    cuda::std::layout_right>&``.

    *numba_type* may also be the type's name as in signatures (``"float32"``), or a NumPy dtype or scalar class. Raises
    `CABIError` if C has no type for it: a strided array, an unaligned record, a dtype, a function, any other object.
    """
    described = ctype if view is None else view.ctype
    return str(described(numba_type_of(numba_type)).cxx)


def numba_type_named(name: str) -> Any:
    """Return the Numba type with this *name* in signatures, such as ``"float32[::1]"``, or raise `CABIError`."""
    try:
        found = eval(name, {"__builtins__": {}}, vars(types))
    except Exception as error:
        is_unknown = isinstance(error, NameError)
        why = did_you_mean(name, vars(types)) if is_unknown else f": {type(error).__name__}: {error}"
        raise CABIError(f"{name!r} is not the name of a Numba type{why}") from None
    if not isinstance(found, types.Type):
        raise CABIError(f"{name!r} is not the name of a Numba type: it is {found!r}")
    return found


def numba_type_of(given: Any) -> Any:
    """Return the Numba type of one of any front end, its name, or a NumPy dtype or scalar class; None is void."""
    if given is None:
        return types.none
    given = numba_type_named(given) if isinstance(given, str) else core_type(given)
    if isinstance(given, types.Type):
        return types.unliteral(given)
    if isinstance(given, np.dtype) or (isinstance(given, type) and issubclass(given, np.generic)):
        from numba.cuda.np import numpy_support

        try:
            return numpy_support.from_dtype(np.dtype(given))
        except (NotImplementedError, NumbaError):
            raise CABIError(f"{given!r} has no Numba type") from None
    if isinstance(given, (tuple, list)):
        raise CABIError(
            f"{given!r} is not a Numba type\n"
            "  what to do: write types.Tuple((...)), or types.UniTuple(T, n) if all elements are of one type"
        )
    if inspect.isfunction(given):
        name = given.__name__
        raise CABIError(
            f"the function {name} is not a Numba type\n  what to do: call it with a type, such as {name}(types.int32)"
        )
    shown = given.__name__ if isinstance(given, type) else safe_repr(given, 40)
    if isinstance(given, type) and (meant := type_meant_by(given)):
        raise CABIError(
            f"{shown} is not a Numba type: C and Python mean different types by {shown}\n"
            f"  what to do: write {meant!r}, which Python's {shown} is in kernels, or another type of C"
        )
    raise CABIError(f"{shown} is not a Numba type\n  expected: such as types.float32, its name or a dtype")


def ctype(numba_type: Any) -> CType:
    """Return how C sees a value of *numba_type*, or raise `CABIError` if C has no type for it."""
    if isinstance(numba_type, types.EnumMember):
        numba_type = numba_type.dtype
    if numba_type in _SCALARS:
        return _SCALARS[numba_type]
    if numba_type == types.none:
        return _VOID
    if isinstance(numba_type, types.RawPointer):
        return pointer_to("void")
    if isinstance(numba_type, types.CPointer):
        return _pointer(numba_type.dtype)
    if isinstance(numba_type, types.Array):
        return _array(numba_type)
    if isinstance(numba_type, types.Record):
        memory_layout(numba_type)
        return _pointer(numba_type)
    if isinstance(numba_type, types.BaseTuple) and len(numba_type):
        memory_layout(numba_type)
        is_uniform = len(set(numba_type.types)) == 1 and numba_type.types[0] in _SCALARS
        return pointer_to(f"const {_SCALARS[numba_type.types[0]].cxx}" if is_uniform else "const void")
    raise CABIError(f"{numba_type} has no counterpart in C{_ADVICE.get(type(numba_type), _PASS_OTHERS)}")


_PASS_OTHERS = "\n  what to do: pass numbers, arrays, or tuples and records of numbers"
_ADVICE = {
    types.Optional: ": a value that may be None cannot be passed\n  what to do: pass it where it cannot be None",
    types.Bytes: (
        "\n  what to do: pass an array of np.uint8; or, to C++ by name, a constant string, which is a const char*"
    ),
    types.UnicodeType: (
        ": strings must be constants\n  what to do: write each string in a call of its own, in a branch of the kernel"
    ),
    types.UnicodeCharSeq: (
        "\n  what to do: pass numbers: the characters of a text are np.frombuffer(text.encode(), np.uint8)"
    ),
    types.CharSeq: "\n  what to do: pass numbers: the bytes of a text are np.frombuffer(text, np.uint8)",
}


def is_passed(numba_type: Any) -> bool:
    """Whether an argument of *numba_type* is passed to C: dtypes, functions and strings, as others, are not."""
    if numba_type == types.none or isinstance(numba_type, types.RawPointer):
        return True
    if isinstance(numba_type, types.BaseTuple):
        return any(map(is_passed, numba_type.types))
    compile_time = (types.Dummy, types.Callable, types.DTypeSpec, types.TypeRef, types.StringLiteral)
    return not isinstance(numba_type, compile_time)


def element_ctype(numba_type: Any) -> CType:
    """Return how C sees an element of an array or tuple: the value itself, in memory."""
    found = ctype(numba_type)
    is_pointer = isinstance(numba_type, (types.RawPointer, types.CPointer))
    if found.kind == "void" or (found.kind == "pointer" and not is_pointer):
        raise CABIError(f"{numba_type} inside an array or tuple has no counterpart in C")
    return found


def _pointer(numba_type: Any, qualifier: str = "") -> CType:
    if isinstance(numba_type, types.Record):
        return replace(pointer_to(f"{qualifier}void"), fields=fields_of_record(numba_type))
    return pointer_to(qualifier + element_ctype(numba_type).cxx)


def _array(array: Any) -> CType:
    if array.layout not in "CF":
        raise CABIError(
            f"{array} may be strided, but C reads contiguous memory\n  what to do: pass a contiguous array, of type"
            f" {array.copy(layout='C')} (in signatures: {array.dtype}[{':, ' * (array.ndim - 1)}::1]);"
            " or let args pass it as autolink.mdspan, with its strides"
        )
    if isinstance(array.dtype, types.Record):
        memory_layout(array.dtype)
    return _pointer(array.dtype, "" if array.mutable else "const ")


@dataclass(frozen=True)
class Layout:
    """A struct or an array in memory: its size, its alignment, and the offsets of its fields, in bytes."""

    size: int
    align: int
    offsets: tuple[int, ...] = ()


def memory_layout(numba_type: types.Type, *, as_in_cxx: bool = True) -> Layout:
    """Return where C finds the parts of a value of *numba_type* behind a pointer. Raise `CABIError` if a record has its
    fields at other offsets than a C++ struct, unless they need not be *as_in_cxx*."""
    numba_type = getattr(numba_type, "of_record", numba_type)  # the value of a record
    if isinstance(numba_type, types.Record):
        return _record(numba_type) if as_in_cxx else _packed_record(numba_type)
    if isinstance(numba_type, types.BaseTuple):
        return layout_of_fields(memory_layout(element, as_in_cxx=as_in_cxx) for element in numba_type.types)
    if isinstance(numba_type, types.NestedArray):
        of_one = memory_layout(numba_type.dtype, as_in_cxx=as_in_cxx)
        return Layout(of_one.size * int(np.prod(numba_type.shape)), of_one.align)
    if isinstance(numba_type, types.CharSeq):
        return Layout(numba_type.count, 1)
    element = element_ctype(numba_type)
    return Layout(element.size, element.align)


def fields_of_record(record: Any) -> tuple[CField, ...]:
    return c_fields((name, record.offset(name), field_type) for name, field_type in record.members)


def c_fields(fields: Iterable[tuple[str, int, Any]]) -> tuple[CField, ...]:
    """Return what C sees of *fields* with a name, an offset and a Numba type; of those that C++ can name."""
    usable = ((name, *rest) for name, *rest in fields if _MEMBER.fullmatch(name) and name not in RESERVED)
    return tuple(CField(name, offset, _field_ctype(numba_type)) for name, offset, numba_type in usable)


def _field_ctype(numba_type: Any) -> CType:
    if isinstance(numba_type, types.NestedArray):
        return as_element(_field_ctype(numba_type.dtype))
    if isinstance(numba_type, types.Record):
        layout = memory_layout(numba_type)
        return CType("struct", "struct", layout.size, layout.align, fields=fields_of_record(numba_type))
    if isinstance(numba_type, (types.CharSeq, types.BaseTuple)):
        return CType("char[]", "unknown", 0, 1)
    return element_ctype(numba_type)


def as_element(c_type: CType) -> CType:
    """Return how C sees an element of an array in a record: Numba has none of bool there, but of ``uint8``."""
    return replace(c_type, kind="byte") if c_type.cxx == "unsigned char" else c_type


def layout_of_fields(fields: Iterable[Layout]) -> Layout:
    offsets, end, align = [], 0, 1
    for field in fields:
        offsets.append(end + -end % field.align)
        end, align = offsets[-1] + field.size, max(align, field.align)
    return Layout(end + -end % align, align, tuple(offsets))


def _record(record: Any) -> Layout:
    fields = sorted(record.members, key=lambda member: record.offset(member[0]))
    expected = layout_of_fields(memory_layout(field_type) for _, field_type in fields)
    advice = (
        "what to do: let C++ make its dtype, autolink.cxx(...).record('NAME'); or make it with"
        " np.dtype(..., align=True), with the fields in the order and of the types of the struct"
    )
    described = f"\n  record: {record}\n  {advice}"
    for (name, field_type), offset in zip(fields, expected.offsets, strict=True):
        if record.offset(name) != offset:
            raise CABIError(
                f"the field {name!r} ({field_type}) of a record is at byte {record.offset(name)}, and in a C++ struct"
                f" of such members at byte {offset}{described}"
            )
    if record.size != expected.size:
        size = number_of(record.size, "byte")
        raise CABIError(f"a record has {size}, and a C++ struct of such members {expected.size}{described}")
    return expected


def _packed_record(record: types.Record) -> Layout:
    """Return where a record has its fields, which may be anywhere, in the order of their offsets."""
    fields = [
        (record.offset(name), memory_layout(inner, as_in_cxx=False))
        for name, inner in sorted(record.members, key=lambda member: record.offset(member[0]))
    ]
    align = max(field.align for _, field in fields)
    is_aligned = record.size % align == 0 and all(offset % field.align == 0 for offset, field in fields)
    return Layout(record.size, align if is_aligned else 1, tuple(offset for offset, _ in fields))


_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await
    co_return co_yield compl concept const const_cast consteval constexpr constinit continue contract_assert decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int
    long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual
    void volatile wchar_t while xor xor_eq
"""
KEYWORDS = frozenset(_KEYWORDS.split())
# Macros of compilers, and of headers of C that a program may include before.
_MACROS = """
    linux unix i386 arm sparc mips sun NULL EOF I complex imaginary noreturn errno assert offsetof stdin stdout stderr
    va_start va_arg va_end va_copy setjmp signbit BUFSIZ SEEK_CUR SEEK_END SEEK_SET FILENAME_MAX FOPEN_MAX TMP_MAX
    L_tmpnam L_ctermid P_tmpdir FD_SETSIZE MB_CUR_MAX NFDBITS WCONTINUED WEXITED WNOHANG WNOWAIT WSTOPPED WUNTRACED
"""
# Words that no member, and no kernel, can be called by.
RESERVED = KEYWORDS.union(_MACROS.split())
# Types that a header uses, after which C++ does not let a member have their names; macros of the headers that it
# includes; its struct of arguments, whose name C++ does not let a member have, and its guard.
_USED = re.compile(
    r"u?int(_least|_fast)?(8|16|32|64)_t|u?int(ptr|max)_t|size_t|ptrdiff_t|max_align_t|nullptr_t"
    r"|CU\w+|cu[A-Z]\w*|cuuint(32|64)_t"
    r"|(U?INT(_LEAST|_FAST)?(8|16|32|64)|U?INT(PTR|MAX)?|SIZE|PTRDIFF|SIG_ATOMIC|WCHAR|WINT)_(MAX|MIN|C|WIDTH)"
    r"|(FP|MATH|EXIT|RAND|LITTLE|BIG|PDP|BYTE)_\w+|BYTE_ORDER"
    r"|\w+_(arguments|KERNEL_H)"
)


def members(names: Iterable[str]) -> Iterator[str]:
    """Yield a name in C for each of the *names* of parameters or items: the same where C and C++ accept it in a header
    of this project, with ``_`` after it where it means something else, ``item0`` where it is not a name."""
    taken: set[str] = set()
    for number, name in enumerate(names):
        # Compilers have names of their own that begin with two underscores, or with one and a capital letter.
        if not (name.isascii() and name.isidentifier()) or re.match(r"_[_A-Z]", name):
            name = f"item{number}"
        if name in RESERVED or _USED.fullmatch(name):
            name += "_"
        while name in taken:
            name += "_"
        taken.add(name)
        yield name
