# SPDX-License-Identifier: BSD-2-Clause
"""The error for a symbol that nothing defines: who references it, and which similar names exist."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping

from numba_cuda_autolink import mangled_names
from numba_cuda_autolink.source_locations import shown_file

from ..compile import bitcode, programs
from ..compile.nvrtc import CompileError
from ..compile.nvrtc_log import NO_RTTI
from ..compile.unknown_names import NOT_ON_DEVICES, not_on_devices
from ..formats import symbols
from ..formats.containers import has_compressed_piece
from ..inputs import kinds
from ..link.linker_input import LinkJob, Part
from ..plan.declared_functions import place_of
from ..plan.link_plan import LinkError, link_error
from ..plan.plan_checks import extern_declaration, undefined_variable
from ..platform.target import Target
from .source_errors import find_line

_UNDEFINED = re.compile(
    r"Unresolved extern (?:function|variable) '([^']+)'|Undefined reference to '([^']+)'|undefined symbol '?([\w$]+)"
)
_MOST_NAMES = 8
_REMEDY = (
    "check the symbol's spelling; in CUDA C++ declare the function"
    ' extern "C" __device__, so that its name is not mangled; return the code that defines it from __numba_cuda_link__'
)
_REMEDY_FOR_DECLARED = 'define {!r} in code that link= names, of the declare_device or of the kernel, as extern "C"'
_REMEDY_FOR_CXX = "define {} in that source, or in another one that is linked"
_REMEDY_FOR_HIDDEN = (
    'define it as extern "C" __device__, without static and inline: the compiler leaves such a function out'
)
_REMEDY_FOR_TEMPLATE = (
    '{0} is a template, which has no symbol: define an extern "C" __device__ function of another name that calls it;'
    " or call the template by name, autolink.cxx(...)"
)
_REMEDY_WITHOUT_CODE = (
    "return the code that defines it from the object's __numba_cuda_link__; if it does, check that method's spelling"
)
_REMEDY_FOR_NOTHING = "return the code that defines it from that __numba_cuda_link__: without return, it gives None"
_REMEDY_FOR_VARIABLES = (
    "return the autolink.Variable that is called so from __numba_cuda_link__, with the source; or, if the host does not"
    " set it, define it in C++"
)

_REMEDY_FOR_VARIABLES_OF_CXX = (
    "define it in that source; or, if the host sets it, link an autolink.Variable that is called so,"
    " cuda.jit(link=[variable])"
)


def symbol_in_log(log: str) -> str | None:
    found = _UNDEFINED.search(log)
    return next(group for group in found.groups() if group) if found else None


def symbol_in_parts(job: LinkJob) -> str | None:
    """Return an undefined symbol that no part defines, where that can be read, or ``None``. nvJitLink before 12.9 does
    not name those of machine code."""
    defined: set[str] = set()
    undefined = list(job.kernel_code.sites)
    for part in job.parts:
        own = symbols.symbols_of(part.kind.name, part.code)
        undefined += own.undefined if own is not None else ()
        names = _names_in(part, job.plan.target)
        if names is None and part.planned is not None:
            return None
        defined |= names or set()
    return next((name for name in undefined if name not in defined), None)


def missing_symbol_error(job: LinkJob, symbol: str, log: str) -> LinkError:
    declared = _declarations(job, symbol)
    is_variable = bool(declared) or symbol == undefined_variable(log)
    external = [part for part in job.parts if part.planned is not None]
    defined = {part: names for part in external if (names := _names_in(part, job.plan.target)) is not None}
    variables = {part: names for part, names in defined.items() if part.planned and part.planned.input.variable}
    near, remedy = _similar_names(symbol, variables if is_variable else defined)
    if is_variable and near:
        remedy = "give the autolink.Variable the name that it has in C++, or the other way round"
    if any(f"AUTOLINK_{symbol}\n".encode() in each.input.code for each in job.plan.inputs):
        remedy = "return the device_function itself from __numba_cuda_link__, with the source that has its declaration"
    details = declared or [f"referenced by: {job.kernel_code.referenced_by(symbol)}"]
    asked = [each for site in job.kernel_code.sites.get(symbol, ()) for each in site.asked]
    given = {origin for each in job.plan.inputs for origin in each.origins}
    if asked and given.isdisjoint(asked):
        details.append(f"got: nothing from __numba_cuda_link__ of {asked[0]}")
        remedy = remedy or _REMEDY_FOR_NOTHING
    if not is_variable and (template := _find_line(job, _template_of(symbol))):
        details.append(f"in C++: {template}")
        remedy = remedy or _REMEDY_FOR_TEMPLATE.format(symbol)
    if not is_variable and (hidden := _find_hidden(job, symbol)):
        details.append(f"in C++: {hidden}")
        remedy = remedy or _REMEDY_FOR_HIDDEN
    if place := place_of(symbol):
        details.append(f"declared at: {shown_file(place[0])}:{place[1]}")
        known = sorted(
            {
                repr(mangled_names.readable(name))
                for each in defined.values()
                for name in each
                if not name.startswith("cxx_")
            }
        )
        others = f"declare {' or '.join(known)}, which the linked code defines; or " if 0 < len(known) < 4 else ""
        remedy = remedy or others + _REMEDY_FOR_DECLARED.format(symbol)
    elif is_variable and not declared and (named := _find_line(job, _declaration_of(symbol))):  # in C++ by name
        details = [f"in C++: {named}"]
        is_of_c = mangled_names.base_name(symbol) == symbol
        remedy = remedy or (
            _REMEDY_FOR_VARIABLES_OF_CXX if is_of_c else _REMEDY_FOR_CXX.format(mangled_names.readable(symbol))
        )
    elif not is_variable and symbol not in job.kernel_code.sites and (named := _find_in_sources(job, symbol)):
        details = [f"in C++: {named}"]
        remedy = remedy or _REMEDY_FOR_CXX.format(mangled_names.readable(symbol))
    remedy = remedy or (_REMEDY_WITHOUT_CODE if not external else _REMEDY_FOR_VARIABLES if is_variable else _REMEDY)
    used = "read" if is_variable else "called"
    diagnosis = f"{mangled_names.readable(symbol)!r} is {used} but nothing that is linked defines it"
    if of_host := not_on_devices(mangled_names.readable(symbol)):
        diagnosis = f"the kernel's code uses std::{of_host}, which device code does not have"
        details = [f"{used}: {mangled_names.readable(symbol)}"]
        remedy = f"use {NOT_ON_DEVICES[of_host]}; or call a function that does without std::{of_host}"
    if symbol == "__dynamic_cast":
        diagnosis, details = "the kernel's code uses dynamic_cast, which device code does not have", []
        remedy = NO_RTTI
    return link_error(
        job.plan,
        diagnosis,
        *mangled_names.mangled_lines(symbol),
        *details,
        *(f"near miss: {line}" for line in near),
        *(f"linked: {part.origin}{_definitions(defined.get(part))}" for part in job.parts),
        f"what to do: {remedy}",
        log=log,
    )


def _declarations(job: LinkJob, symbol: str) -> list[str]:
    sources = [each for each in job.plan.inputs if each.input.kind is kinds.CUDA]
    found = [(each, extern_declaration(each.input.code.decode(), symbol)) for each in sources]
    return [f"declared by: {each}, line {declaration[1]}" for each, declaration in found if declaration is not None]


def _declaration_of(symbol: str) -> re.Pattern[str]:
    return re.compile(rf"\bextern\b[^;{{}}()]*\b{re.escape(mangled_names.base_name(symbol))}\b\s*[\[;,]")


def _template_of(symbol: str) -> re.Pattern[str]:
    return re.compile(rf"\btemplate\s*<[^;{{}}()]*>[^;{{}}()]*\b{re.escape(symbol)}\s*\(")


def _find_in_sources(job: LinkJob, symbol: str) -> str:
    """Return the place where a linked source first names the function *symbol*; empty if none does."""
    return _find_line(job, re.compile(rf"\b{re.escape(mangled_names.base_name(symbol))}\s*\("))


def _find_hidden(job: LinkJob, symbol: str) -> str:
    """Return the place where a linked source defines the function *symbol* for itself alone; empty if none does."""
    return _find_line(
        job, re.compile(rf"\b(?:static|inline|__forceinline__|constexpr)\b[^;()]*\b{re.escape(symbol)}\s*\(")
    )


def _find_line(job: LinkJob, pattern: re.Pattern[str]) -> str:
    sources = (each.input for each in job.plan.inputs if each.input.kind is kinds.CUDA)
    return next(filter(None, (find_line(source, job.plan.target, pattern) for source in sources)), "")


def _definitions(names: frozenset[str] | None) -> str:
    if names is None:
        return ""
    shown = sorted(map(mangled_names.readable, names))
    more = f" and {len(shown) - _MOST_NAMES} more" if len(shown) > _MOST_NAMES else ""
    return f", which defines {', '.join(shown[:_MOST_NAMES])}{more}" if shown else ", which defines nothing"


def _names_in(part: Part, target: Target) -> frozenset[str] | None:
    source = part.planned.input if part.planned is not None else None
    if source is not None and source.kind is kinds.BITCODE:
        return frozenset(bitcode.defined(source) or ()) or None
    if part.kind is kinds.LTO_IR:
        if source is not None and source.kind is kinds.CUDA:
            with contextlib.suppress(CompileError):  # to machine code, whose symbols can be read
                program = programs.compiled(source, dataclasses.replace(target, lto=False))
                return symbols.find_defined("cubin", program.code)
        return None
    names = symbols.find_defined(part.kind.name, part.code)
    if has_compressed_piece(part.kind.name, part.code):
        names |= symbols.host_functions(part.kind.name, part.code)
    return names or None


def _similar_names(symbol: str, defined: Mapping[Part, Iterable[str]]) -> tuple[list[str], str]:
    every = [(part, name) for part, names in defined.items() for name in names]
    mangled = [(part, name) for part, name in every if mangled_names.base_name(name) == symbol != name]
    if mangled:
        near = [f"{part.origin} defines {mangled_names.readable(name)}, as C++: {name}" for part, name in mangled]
        return near, f'declare it extern "C" __device__, so that its name in the code is {symbol!r}'
    near = []
    for part, names in defined.items():
        bases = {mangled_names.base_name(name): name for name in names}
        for base in difflib.get_close_matches(symbol, bases, n=2, cutoff=0.7):
            near.append(f"{part.origin} defines {mangled_names.readable(bases[base])!r}")
    return near, f"call what is defined, or rename the function to {symbol!r}" if near else ""
