# SPDX-License-Identifier: BSD-2-Clause
"""Calls of C++ functions, as records: what is called, and a C++ variable for each argument, made from what C passes."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numba.cuda import types
from numba.cuda.cudadrv.external_code.inputs.link_input import line_marker

from numba_cuda_autolink.assigned_names import Assigned

from ..c_abi.c_types import HEADERS, CABIError, cxx_type, members, memory_layout
from ..c_abi.conversions import mdspan
from ..c_abi.record_values import EnumeratorType, list_members
from ..c_abi.structs import field_names, field_types
from ..device_functions.definition import DeviceFunction
from .cxx_errors import NAMESPACE
from .enumerators import declare_members
from .log_of_calls import MARKED_KERNELS
from .prelude import PRELUDE, VIEWS
from .structs import OTHER_LAYOUT, RECORD_OF_WHOLE, Struct, offset_condition

SOURCE = "source of autolink.cxx"  # what NVRTC calls the file with the library's text
# All arguments, or the first and the others; and the function object that is called. No C++ text has these characters.
ALL, FIRST, REST, CALLEE = "\u27e8all\u27e9", "\u27e8first\u27e9", "\u27e8rest\u27e9", "\u27e8callee\u27e9"
_NAMED = re.compile(r"@(\w+?)@")
# In names of types that have no name, or one in a function alone.
_NAMELESS = re.compile(r"<unnamed|lambda|\(\)|[\[{]")


def insert_arguments(text: str, arguments: Sequence[str]) -> str:
    """Return *text* with *arguments* in place of `ALL`, `FIRST` and `REST`."""
    text = text.replace(ALL, ", ".join(arguments)).replace(REST, ", ".join(arguments[1:]))
    return text.replace(FIRST, arguments[0]) if arguments else text


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return *template* with ``@name@`` replaced by the value of that name. What is filled in is not read again."""
    return _NAMED.sub(lambda found: values[found[1]], template)


VALUE, POINTER, ELEMENT, SPAN, MDSPAN, STATE = "value", "pointer", "element", "span", "mdspan", "state"
WAYS = (VALUE, POINTER, ELEMENT, SPAN, MDSPAN, STATE)
_MODES = {POINTER: "by_pointer", ELEMENT: "by_element", SPAN: "by_span", MDSPAN: "by_mdspan"}
# A class of its own: a pointer to the data of an array is not one.
_STATE = "#ifndef NCA_STATE\n#define NCA_STATE\nnamespace nca { struct nca_state { const void* nca_at; }; }\n#endif"


# Text as the array of char that a literal is.
_TEXT_TYPE = "namespace nca { template <int nca_N> using nca_text = const char[nca_N]; }"
_TEXT = f"#ifndef NCA_TEXT\n#define NCA_TEXT\n{_TEXT_TYPE}\n#endif"


@dataclass(frozen=True)
class Parameter:
    """An argument of a call."""

    cxx: str  # the type of the variable that the C++ call gets, as a parameter declares it: ``float&``
    passed: str  # the type of the C function's parameter, empty if nothing is passed
    value: str  # the C++ expression that makes the variable of the C function's parameter ``{p}``
    is_number: bool = False  # whether the variable is a copy of a number, to which C++ can write
    bits: int = 0  # how many such an integer or bool has
    as_array: str = ""  # for arrays, the arguments of ``nca::nca_array_form`` after the mode
    way: str | None = None  # How an array is passed; None lets the function decide.
    is_state: bool = False  # whether it is passed as state of a Python function
    by_address: bool = False  # whether C gets the address of a struct that C++ declares, whatever its layout is
    # headers, declarations, inside: what C++ needs before the call; *inside* is declared in the namespace in which
    # names resolve
    headers: tuple[str, ...] = ()
    declarations: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()

    @property
    def is_passed(self) -> bool:
        """Whether the C function has a parameter for it."""
        return bool(self.passed)

    @property
    def is_place(self) -> bool:
        """Whether C gets an address, whatever is at it."""
        return self.by_address or self.way == ELEMENT

    @property
    def is_temporary(self) -> bool:
        """Whether the C++ call gets a temporary value, to which no ``T&`` can be bound."""
        return self.cxx.endswith("&&") or not self.cxx.endswith("&")


Records = Mapping[Any, Struct]  # by their Numba types


def make_parameter(numba_type: Any, way: str | None, records: Records, is_read_only: bool = False) -> Parameter:
    """Return the parameter for an argument of *numba_type*, which may be part of an array that *is read-only*. Raise
    `CABIError` if C++ has no value for it."""
    callee = getattr(numba_type, "numba_cuda_link_object", None)
    if callee is not None:
        if isinstance(callee, DeviceFunction):
            return _make_python_function(callee)
        if not hasattr(type(callee), "_cxx_text"):
            raise CABIError(f"an object that is not a function of C++ cannot be passed to one\n  got: {callee!r}")
        return _make_functor(callee)
    if isinstance(numba_type, types.StringLiteral):
        return _make_text(numba_type.literal_value)
    if isinstance(numba_type, types.Function):
        name = getattr(numba_type.typing_key, "__name__", "f")
        raise CABIError(
            f"{name}, which Numba knows, is not a function of C++\n"
            f"  what to do: pass a lambda that calls it, such as lambda a, b: {name}(a, b)"
        )
    numba_type = types.unliteral(numba_type)
    if way == STATE:
        return Parameter("nca::nca_state", "const void*", "nca::nca_state{{p}}", is_state=True, declarations=(_STATE,))
    if isinstance(numba_type, types.Array):
        if is_read_only:
            numba_type = types.Array(numba_type.dtype, numba_type.ndim, numba_type.layout, readonly=True)
        return _make_array(numba_type, way, records)
    if way not in (None, VALUE):
        raise CABIError(f"{numba_type} cannot be passed as {way!r}: it is not an array")
    if isinstance(numba_type, (types.Record, types.BaseTuple)):
        return _make_struct(numba_type, records, is_read_only)
    if numba_type == types.none:
        return Parameter("decltype(nullptr)", "", "nullptr")
    if isinstance(numba_type, types.Complex):
        part = cxx_type(numba_type.underlying_float)
        name = f"cuda::std::complex<{part}>"
        value = f"{name}({{p}}.x, {{p}}.y)"
        return Parameter(f"{name}&", cxx_type(numba_type), value, True, headers=("cuda/std/complex",))
    found, headers, _ = _describe_element(numba_type, records)
    is_number = isinstance(numba_type, (types.Number, types.Boolean))
    if isinstance(numba_type, EnumeratorType):
        return Parameter(f"{found}&&", cxx_type(numba_type), f"static_cast<{found}>({{p}})")
    if isinstance(numba_type, types.EnumMember) and isinstance(numba_type.dtype, types.Integer):
        members = list_members(numba_type.instance_class)
        numbers = [f", static_cast<{found}>({each % 2**64}u)" for each in members]
        name, declared = declare_members(numba_type.instance_class.__name__, members)
        enumerator = f"nca::nca_enumerator<nca::{name}, {found}{''.join(numbers)}>"
        return Parameter(f"const {enumerator}&", found, f"{enumerator}{{{{p}}}}", declarations=(declared,))
    is_integer = isinstance(numba_type, (types.Integer, types.Boolean))
    bits = getattr(numba_type, "bitwidth", 8) if is_integer else 0
    const = "" if is_number else " const"
    return Parameter(f"{found}{const}&", found, "{p}", is_number, bits, headers=headers)


def _make_text(text: str) -> Parameter:
    """Return the parameter for a constant string: a literal of C++, in UTF-8."""
    encoded = text.encode("utf-8", "surrogatepass")
    escaped = "".join(chr(each) if chr(each).isalnum() and each < 128 else f"\\{each:03o}" for each in encoded)
    return Parameter(f"nca::nca_text<{len(encoded) + 1}>&", "", f'"{escaped}"', declarations=(_TEXT,))


def _make_functor(callee: Any) -> Parameter:
    text = callee._cxx_text
    name = f"nca_functor_{_digest(text)}"
    given = [*(["static_cast<nca_A0&&>(nca_a0)"] if FIRST in text else []), "static_cast<nca_A&&>(nca_a)..."]
    first = ("class nca_A0, ", "nca_A0&& nca_a0, ") if FIRST in text else ("", "")
    call = insert_arguments(text, given)
    declared = (
        f"#ifndef {name.upper()}\n#define {name.upper()}\n{line_marker(callee.__name__)}"
        f"struct {name} {{ template <{first[0]}class... nca_A>"
        f" __device__ decltype(auto) operator()({first[1]}nca_A&&... nca_a) const {{ return {call}; }} }};\n#endif"
    )
    return Parameter(f"const {{inside}}{name}&", "", f"{{inside}}{name}{{}}", inside=(declared,))


def _make_python_function(function: DeviceFunction) -> Parameter:
    """Return the parameter for a Python function: its functor, or what makes one of the addresses of its state."""
    declared, functor = (function.declaration,), function.functor
    if not function.states:
        return Parameter(f"const {functor}&", "", f"{functor}{{}}", declarations=declared)
    name = f"nca_with_state_{function.symbol}"
    given = [f"nca::nca_state nca_s{number}" for number in range(function.states)]
    passed = ", ".join(f"nca_s{number}.nca_at" for number in range(function.states))
    maker = (
        f"#ifndef {name.upper()}\n#define {name.upper()}\nstruct {name} {{ __device__ {functor} operator()("
        f"{', '.join(given)}) const {{ return {functor}({passed}); }} }};\n#endif"
    )
    return Parameter(f"const {name}&", "", f"{name}{{}}", declarations=(_STATE, *declared, maker))


def _make_array(array: Any, way: str | None, records: Records) -> Parameter:
    element, headers, declarations = _describe_element(array.dtype, records)
    element = element if array.mutable else f"const {element}"
    if way == ELEMENT:  # which is in one place, however the others are
        array = array.copy(layout="C")
    strided = array.layout not in "CF"
    way = way or (MDSPAN if strided else POINTER if array.ndim == 0 else None)
    if way == VALUE:
        raise CABIError(f"{array} cannot be passed as 'value': ways for arrays are {', '.join(map(repr, WAYS[1:]))}")
    if strided and way != MDSPAN:
        raise CABIError(
            f"{array} may be strided, but C++ reads contiguous memory through a {way}\n"
            f"  what to do: pass it as 'mdspan', or pass a contiguous array, of type {array.copy(layout='C')}"
        )
    if way in (SPAN, MDSPAN):
        headers = (*headers, f"cuda/std/{way}")
        if way == MDSPAN and strided:
            headers = (*headers, "cuda/std/array")
        mdspan.ctype(array)  # which raises for what has no view
    form = f"{element}, {array.ndim}, '{array.layout}'"
    chosen = f"nca::nca_array_form<{{mode}}, {form}>"
    return Parameter(
        f"typename {chosen}::nca_type", f"typename {chosen}::nca_passed", f"{chosen}::nca_of({{p}})", as_array=form,
        by_address=array.dtype in records,
        way=way, headers=headers, declarations=declarations,
    )  # fmt: skip


def name_mode(way: str) -> str:
    """Return the C++ name of a way to pass arrays."""
    return f"nca::nca_{_MODES[way]}"


def _make_struct(numba_type: Any, records: Records, is_read_only: bool) -> Parameter:
    is_record = isinstance(numba_type, types.Record)
    record = numba_type if is_record else getattr(numba_type, "of_record", None)
    if record is not None:
        name, headers, declarations = _describe_element(record, records)
        const = "" if is_record and not is_read_only else "const "
        return Parameter(
            f"{const}{name}&", f"{const}void*", f"(*static_cast<{const}{name}*>({{p}}))",
            by_address=record in records, headers=headers, declarations=declarations,
        )  # fmt: skip
    try:
        name, headers, declarations = _describe_element(numba_type, records)
    except CABIError:
        if not _cxx_struct(numba_type):
            raise
        raise CABIError(f"what C++ returned {OTHER_LAYOUT}\n  what to do: {RECORD_OF_WHOLE}") from None
    if _cxx_struct(numba_type):
        return Parameter(f"const {name}&", f"const {name}*", "*{p}", headers=headers, declarations=declarations)
    parts, elements = _build_tuple(numba_type, records, "{p}->")
    return Parameter(
        f"{elements}&&", f"const {name}*", parts, headers=(*headers, "cuda/std/tuple"), declarations=declarations
    )


def _build_tuple(numba_type: Any, records: Records, path: str) -> tuple[str, str]:
    """Return a tuple's value and type in C++; *path* leads to its struct."""
    values, names = [], []
    for number, element in enumerate(numba_type.types):
        place = f"{path}_{number}"
        is_tuple = isinstance(element, types.BaseTuple) and len(element) and not hasattr(element, "of_record")
        if is_tuple and not _cxx_struct(element):
            value, name = _build_tuple(element, records, f"{place}.")
        else:
            value, name = place, _describe_element(element, records).cxx
        values.append(value)
        names.append(name)
    whole = f"cuda::std::tuple<{', '.join(names)}>"
    return f"{whole}({', '.join(values)})", whole


def _cxx_struct(numba_type: Any) -> Any:
    """Return the names of the members of the C++ struct whose value a tuple is, and the number that stands for the
    struct's name; None for other tuples."""
    return getattr(getattr(numba_type, "instance_class", None), "cxx_struct", None)


class _Element(NamedTuple):
    """The C++ type of a value in memory, and the headers and declarations that it needs."""

    cxx: str
    headers: tuple[str, ...] = ()
    declarations: tuple[str, ...] = ()


def _describe_element(numba_type: Any, records: Records) -> _Element:
    """Return what a value of *numba_type* is in C++. A record that no C++ struct is known for becomes a struct with its
    fields."""
    numba_type = getattr(numba_type, "of_record", numba_type)
    if isinstance(numba_type, types.Complex):
        return _Element(f"cuda::std::complex<{cxx_type(numba_type.underlying_float)}>", ("cuda/std/complex",))
    if isinstance(numba_type, types.Record) and numba_type in records:
        struct = records[numba_type]
        return _Element(struct.alias, declarations=(struct.assertion(struct.alias),))
    if isinstance(numba_type, EnumeratorType):
        return _Element(_name_enumeration(numba_type))
    if not isinstance(numba_type, (types.Record, types.BaseTuple)):
        found = cxx_type(numba_type)
        return _Element(found, (HEADERS[found],) if found in HEADERS else ())
    layout = memory_layout(numba_type)
    headers: tuple[str, ...] = ()
    declarations: tuple[str, ...] = ()
    declared = []
    is_record = isinstance(numba_type, types.Record)
    struct = _cxx_struct(numba_type)
    fields = field_types(numba_type)
    names = members(field_names(numba_type)) if is_record else map("_{}".format, range(len(fields)))
    listed = [*(struct[0] if struct else names)]
    for name, part in zip(listed, fields, strict=True):
        shape = "".join(f"[{size}]" for size in part.shape) if isinstance(part, types.NestedArray) else ""
        element = part.dtype if shape else part
        while struct and isinstance(element, types.UniTuple):
            shape, element = f"{shape}[{len(element)}]", element.dtype
        member = _describe_element(element, records)
        headers, declarations = (*headers, *member.headers), (*declarations, *member.declarations)
        declared.append(f"{member.cxx} {name}{shape};")
    if struct:
        assigned = " ".join(f"nca::nca_assign(nca_t.{name}, {name});" for name in struct[0])
        declared.append(
            f"template <class nca_T, int (*)[nca::nca_is_named<nca_T, {struct[1]}ull> ? 1 : -1] = nullptr>"
            f" __device__ operator nca_T() const {{ nca_T nca_t; {assigned} return nca_t; }}"
        )
    body = " ".join(declared)
    name = f"nca_struct_{_digest(body)}"
    offsets = (offset_condition(name, *each) for each in zip(listed, layout.offsets, strict=True))
    condition = " && ".join([f"sizeof({name}) == {layout.size}", f"alignof({name}) == {layout.align}", *offsets])
    whose = "what C++ returned" if struct else "an argument"
    asserted = f'static_assert({condition}, "{whose} {OTHER_LAYOUT}");'
    guard = f"#ifndef {name.upper()}\n#define {name.upper()}\nstruct {name} {{ {body} }};\n{asserted}\n#endif"
    return _Element(name, headers, (*declarations, guard))


def _name_enumeration(numba_type: EnumeratorType) -> str:
    """Return what C++ calls an enumeration, at global scope. Raise `CABIError` if it has no name there."""
    name = numba_type.cxx_type.replace("<unnamed>::", "")
    if _NAMELESS.search(name):
        raise CABIError(
            "an enumerator of an enumeration without a name at global scope cannot go to C++ again\n"
            "  what to do: give it a name in a namespace or a class; or pass its number, x + 0"
        )
    return f"::{name}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


_LONGEST_READABLE = 40
# Stands for the text that is ours in the symbols of calls.
_PRELUDE = hashlib.sha256((PRELUDE + VIEWS).encode()).hexdigest()
_VIEW_MODES = ("nca::nca_by_mdspan", "nca::nca_by_span")


@dataclass(frozen=True)
class Head:
    """What the calls of a library share."""

    source: str  # the library's source
    identity: str  # digits that stand for the source and how it is compiled
    namespace: str = ""  # where names resolve; empty for the global namespace
    records: tuple[Struct, ...] = ()  # the structs that have Numba types

    @functools.cached_property
    def text(self) -> str:
        """The text before all calls of a translation unit."""
        check = f"namespace nca_check {{ using namespace {self.namespace}; }}\n" if self.namespace else ""
        check = line_marker(NAMESPACE) + check
        source = f"{MARKED_KERNELS}{line_marker(SOURCE)}{self.source}"
        return f"{source}\n{check}{line_marker('prelude')}{PRELUDE}"


@dataclass(frozen=True)
class CallPattern:
    """How a function of C++ is called, whatever the arguments are."""

    name: str  # what messages call the function
    text: str  # the C++ expression, in which `ALL`, or `FIRST` and `REST`, stand for the arguments
    callee: str = ""  # an expression for the function object that is called, which the text calls `CALLEE`
    passing: tuple[str | None, ...] = ()  # how arrays are passed; see `CxxFunction.passing`
    # The positions of numbers that are no variables, and of those that are constant ones.
    temporaries: tuple[int, ...] = ()
    constants: tuple[int, ...] = ()
    read_only: tuple[int, ...] = ()  # those of the arguments that are parts of read-only arrays
    given: Assigned = field(default=Assigned(), compare=False)  # of an expression: the variable that holds it


@dataclass(frozen=True)
class Call:
    """A call of a C++ function with arguments of the Numba types *argtypes*; *label* is what messages call it, and
    *symbol* the name of the C function that makes it. *python* are the Python functions that C++ calls."""

    head: Head
    pattern: CallPattern
    parameters: tuple[Parameter, ...]
    label: str
    argtypes: tuple[Any, ...] = ()
    python: tuple[DeviceFunction, ...] = field(default=(), compare=False)
    symbol: str = field(init=False)

    def __post_init__(self) -> None:
        name = self.pattern.name.partition("(")[0]
        readable = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:_LONGEST_READABLE] or "expression"
        called = self.pattern.text, self.pattern.callee
        head = self.head.identity, self.head.namespace, self.head.records
        content = repr((head, called, self.parameters, _PRELUDE))
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        object.__setattr__(self, "symbol", f"cxx_{readable}_{digest}")

    @property
    def question(self) -> str:
        """The name expression whose lowered name spells the way arrays are passed, which arguments are written to, to
        which C++ refers and which cannot be copied, whether a number in the result is not aligned, and the type of the
        result."""
        passed = ", ".join(f"{self.symbol}_{each}" for each in ("mode", "written", "referred", "copied", "cut"))
        return f"&nca::nca_tell<nca::nca_all_t<nca::nca_told<{passed}>, {self.symbol}_code>>"

    def choose_views(self, mode: int) -> list[Any]:
        """Return for each parameter the view that an `Extern` passes it as, or None, where C++ chose *mode* for arrays
        that may be passed in several ways."""
        chosen = ("nca::nca_by_pointer", *_VIEW_MODES)[mode]
        return [
            mdspan if each.as_array and (name_mode(each.way) if each.way else chosen) in _VIEW_MODES else None
            for each in self.parameters
        ]
