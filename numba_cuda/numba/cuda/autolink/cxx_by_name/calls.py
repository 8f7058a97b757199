# SPDX-License-Identifier: BSD-2-Clause
"""The C++ text of one call: an ``extern "C"`` function, and how it asks C++ for the type of its result."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..device_callable.array_views import mdspan
from ..device_callable.conversions import state
from .parameters import Parameter, mode_of
from .placeholders import MADE, substituted
from .prelude import PRELUDE, VIEWS

_LONGEST_READABLE = 40
_VIEW_MODES = ("nca::by_mdspan", "nca::by_span")


@dataclass(frozen=True)
class Head:
    """What every call of a library begins with. *namespace* is where its names resolve; *records* are the C++ names of
    structs that have Numba types."""

    source: str
    identity: str  # digits that stand for the source and how it is compiled
    namespace: str = ""
    records: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text before all calls of a translation unit."""
        check = f"namespace nca_check {{ using namespace {self.namespace}; }}\n" if self.namespace else ""
        return f'#line 1 "source of autolink.cxx"\n{self.source}\n{check}#line 1 "prelude"\n{PRELUDE}'


@dataclass(frozen=True)
class Call:
    """A call of a C++ function. Its *text* has `ALL` in place of all arguments, or `FIRST` and `REST` in place of the
    first and of the others. *label* is what messages call it. *made* is an expression that the text calls `MADE`.
    """

    head: Head
    text: str
    parameters: tuple[Parameter, ...]
    label: str
    made: str = ""
    argtypes: tuple[Any, ...] = ()
    written: int = 0  # the arguments whose new values are returned too, as bits
    symbol: str = field(init=False)

    def __post_init__(self) -> None:
        readable = re.sub(r"[^A-Za-z0-9_]+", "_", self.label.partition("(")[0]).strip("_")[:_LONGEST_READABLE]
        content = repr((self.head, self.text, self.parameters, self.made, self.written, PRELUDE, VIEWS))
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        object.__setattr__(self, "symbol", f"cxx_{readable}_{digest}")

    @property
    def source(self) -> str:
        """The text of the call, after that of the head."""
        return "\n".join(_lines(self)).replace("nca_call", self.symbol) + "\n"

    @property
    def question(self) -> str:
        """The name expression whose lowered name tells the result, the way arrays are passed, and what is written."""
        return f"&nca::tell<nca::all_t<nca::told<{self.symbol}_mode, {self.symbol}_written>, {self.symbol}_code>>"

    def ways(self, mode: int) -> list[Any]:
        """Return what the ``args`` of an `Extern` say of each parameter, for the *mode* that C++ chose for arrays."""
        found: list[Any] = []
        for each in self.parameters:
            named = mode_of(each.way) if each.way else ("nca::by_pointer", *_VIEW_MODES)[mode]
            view = mdspan if each.as_array and named in _VIEW_MODES else None
            found.append(state if each.is_state else view)
        return found


def _lines(call: Call) -> Sequence[str]:
    parameters = call.parameters
    lines = [f"#include <{header}>" for header in dict.fromkeys(h for each in parameters for h in each.headers)]
    if any(each.as_array for each in parameters):
        lines.append(f'#line 1 "prelude"\n{VIEWS}')
    for number, name in enumerate(call.head.records):
        lines += _record(number, name, call.head.namespace)
    lines += dict.fromkeys(declared for each in parameters for declared in each.declarations)
    namespace = call.head.namespace
    if namespace:
        lines.append(f"namespace {namespace} {{")
    lines += dict.fromkeys(declared for each in parameters for declared in each.inside)
    line = f'#line 1 "{_quoted(call.label)}"'
    if call.made:
        lines += [line, f"inline __device__ auto nca_call_made() {{ return {call.made}; }}"]
    if any(each.as_array or each.is_number for each in parameters):
        lines += _tried(call, line)
    if namespace:
        lines.append("}")
    inside = f"::{namespace}::" if namespace else "::"
    lines += _choices(call, inside)
    if namespace:
        lines.append(f"namespace {namespace} {{")
    types = [_final(each.cxx, each, inside) for each in parameters]
    names = [f"a{i}" for i in range(len(parameters))]
    declared = ", ".join(f"{cxx} {name}" for cxx, name in zip(types, names, strict=True))
    lines += [line, f"inline __device__ decltype(auto) nca_call_expr({declared}) {{ return {_text(call, names)}; }}"]
    if namespace:
        lines.append("}")
    lines.append(f"using nca_call_r = nca::plain<decltype(nca::result(&{inside}nca_call_expr))>;")
    news = [f"nca::form_t<{each.cxx}>" for n, each in enumerate(parameters) if call.written >> n & 1]
    lines += _results(news)
    passed = [(i, _final(each.passed, each, inside)) for i, each in enumerate(parameters) if each.is_passed]
    declared = ", ".join(f"{cxx} p{i}" for i, cxx in passed)
    lines.append(f'extern "C" __device__ nca_call_out nca_call({declared}) {{')
    for i, each in enumerate(parameters):
        lines.append(f"    decltype(auto) a{i} = {_final(each.value, each, inside).replace('{p}', f'p{i}')};")
    called = f"{inside}nca_call_expr({', '.join(names)})"
    given = f"nca::given<nca_call_r>([&]() -> decltype(auto) {{ return {called}; }})"
    if not news:
        lines.append(f"    return {given};\n}}")
        return lines
    values = ", ".join(f"nca::form_t<{parameters[n].cxx}>::give(a{n})" for n in _bits(call.written))
    # The result comes first: it is computed before the new values are read.
    lines.append(
        f"    return nca::with_result<nca_call_out, nca_call_r>([&]() -> decltype(auto) {{ return {called}; }},"
    )
    lines.append(f"        [&](auto... r) {{ return nca_call_out{{r..., {values}}}; }});\n}}")
    return lines


def known_record(name: str) -> str:
    """Return what the C++ struct *name*, which a Numba type stands for, is called outside of all namespaces."""
    return f"nca_record_{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _record(number: int, name: str, namespace: str) -> Sequence[str]:
    known = known_record(name)
    alias = f"namespace {namespace} {{ using {known}_t = {name}; }}" if namespace else f"using {known}_t = {name};"
    return [
        f"#ifndef {known.upper()}\n#define {known.upper()}",
        f'#line 1 "{_quoted(name)}"\n{alias}',
        f"using {known} = ::{f'{namespace}::' if namespace else ''}{known}_t;",
        f"template <> inline constexpr int nca::record_number<{known}> = {number};\n#endif",
    ]


def _results(news: Sequence[str]) -> Sequence[str]:
    """Return what the C function returns, and the numbers that tell it: the result, and the new values of arguments."""
    if not news:
        return [
            "using nca_call_out = nca::returned<nca_call_r>;",
            "using nca_call_code = nca::form_t<nca_call_r>::code;",
        ]
    passed = ", ".join(f"{each}::passed" for each in news)
    codes = ", ".join(f"{each}::code" for each in news)
    return [
        f"using nca_call_out = nca::fields_after<nca_call_r, {passed}>::type;",
        f"using nca_call_code = nca::codes_after<nca_call_r, {len(news)}, {codes}>::type;",
    ]


def _bits(number: int) -> Sequence[int]:
    return [position for position in range(number.bit_length()) if number >> position & 1]


def _tried(call: Call, line: str) -> Sequence[str]:
    """Return functions that tell whether the call is possible, with each argument a variable or a temporary."""
    numbers = range(len(call.parameters))
    types = ", ".join(f"class A{i}" for i in numbers)
    declared = ", ".join(f"A{i}&& a{i}" for i in numbers)
    text = _text(call, [f"static_cast<A{i}&&>(a{i})" for i in numbers])
    return [
        line,
        f"template <{types}> __device__ auto nca_call_try(int, {declared}) -> decltype((void)({text}), nca::yes{{}});",
        "template <class... A> __device__ nca::no nca_call_try(long, A&&...);",
    ]


def _final(text: str, parameter: Parameter, inside: str) -> str:
    mode = mode_of(parameter.way) if parameter.way else "nca_call_mode"
    return text.replace("{mode}", mode).replace("{inside}", inside)


def _choices(call: Call, inside: str) -> Sequence[str]:
    """Yield how C++ takes arrays that may be passed in several ways, and which numbers it can write to."""
    open_arrays = [each for each in call.parameters if each.as_array and not each.way]
    lines = []
    given = ["0"] + [_made(each, inside) for each in call.parameters]
    if open_arrays:
        lines.append(
            f"template <int nca_mode> using nca_call_with = decltype({inside}nca_call_try({', '.join(given)}));"
        )
        lines.append("enum { nca_call_mode = sizeof(nca_call_with<nca::by_pointer>) == sizeof(nca::yes) ? 0")
        for number, (macro, mode) in enumerate((("NCA_MDSPAN", "by_mdspan"), ("NCA_SPAN", "by_span")), 1):
            lines.append(f"#ifdef {macro}\n: sizeof(nca_call_with<nca::{mode}>) == sizeof(nca::yes) ? {number}\n#endif")
        lines.append(": 0 };")
    else:
        lines.append("enum { nca_call_mode = 0 };")
    written = []
    for number, each in enumerate(call.parameters):
        if each.is_number:
            as_temporary = [*given]
            as_temporary[number + 1] = f"nca::made<nca::plain<{each.cxx}>&&>()"
            text = f"{inside}nca_call_try({', '.join(as_temporary)})".replace("nca_mode", "nca_call_mode")
            written.append(f"(sizeof(decltype({text})) == sizeof(nca::yes) ? 0ull : {1 << number}ull)")
    lines.append(f"enum : unsigned long long {{ nca_call_written = {' | '.join(written) or 0} }};")
    return lines


def _made(parameter: Parameter, inside: str) -> str:
    mode = mode_of(parameter.way) if parameter.way else "nca_mode"
    return f"nca::made<{parameter.cxx.replace('{mode}', mode).replace('{inside}', inside)}>()"


def _text(call: Call, names: Sequence[str]) -> str:
    return substituted(call.text, names).replace(MADE, "nca_call_made()")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
