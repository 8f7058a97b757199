# SPDX-License-Identifier: BSD-2-Clause
"""Says what nvJitLink's log means: which input is at fault, what it got, what it expected, and what to do."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from ..compile import bitcode as bitcode_compile
from ..compile.nvrtc import CompileError
from ..compile.programs import compiled
from ..formats import containers as link_formats
from ..formats import cxx_names
from ..formats import defined_symbols as link_symbols
from ..formats import symbols as code_symbols
from ..inputs import kinds
from ..inputs.link_input import LinkInput
from . import trial as link_trial
from .errors import LinkError, Part, listed
from .plan import LinkPlan

_UNDEFINED = re.compile(
    r"Unresolved extern (?:function|variable) '([^']+)'|Undefined reference to '([^']+)'|undefined symbol '?([\w$]+)"
)
_TOO_NEW = re.compile(r"OUTDATED_LIBRARY|nvvmAddNVVMContainerToProgram")
_PTX_VERSION = re.compile(r"Unsupported \.version ([\d.]+); current version is '([\d.]+)'")
_PTX_TARGET = re.compile(
    r"SM version specified by \.target|PTX with \.target '(\w+)' cannot|Unsupported \.target '(\w+)'"
)
_PTX_LINE = re.compile(r"ptx input, line (\d+)")
_MOST_NAMES = 8


def failed(plan: LinkPlan) -> str:
    """How every message on a link of *plan* begins."""
    return f"linking {plan.kernel} for {plan.target.arch} failed"


def explained(
    plan: LinkPlan, parts: Sequence[Part], wanted_by: Mapping[str, str], prototypes: Mapping[str, str], log: str
) -> LinkError:
    """The error that says what nvJitLink's *log* means."""
    symbol = link_symbols.multiply_defined(log)
    if symbol is not None:
        ltoir = [part for part in parts if part.kind is kinds.LTO_IR]
        for index, second in enumerate(ltoir):
            for first in ltoir[:index]:
                if link_symbols.clash(first.code, second.code, plan.target.arch) == symbol:
                    return double_definition(plan, symbol, first, second, log)
    undefined = _UNDEFINED.search(log)
    if undefined:
        name = next(group for group in undefined.groups() if group)
        return _missing_symbol(plan, parts, wanted_by, prototypes, name, log)
    if _TOO_NEW.search(log):
        return _too_new(plan, parts, log)
    version = _PTX_VERSION.search(log)
    if version:
        return _error(
            plan,
            _named(parts, log),
            f"its PTX has .version {version[1]}, and this toolkit knows versions up to {version[2]}",
            "compile the PTX with this toolkit or an older one, or update nvJitLink",
            parts,
            log,
        )
    if _PTX_TARGET.search(log):
        return _error(
            plan,
            _named(parts, log),
            f"its PTX is for an architecture that {plan.target.arch} is not, nor comes after",
            f"make it for {plan.target.arch} or an older architecture (autolink.current_target().arch tells the hook)",
            parts,
            log,
        )
    symbol = _undefined_in(plan, parts, wanted_by)
    if symbol is not None:
        return _missing_symbol(plan, parts, wanted_by, prototypes, symbol, log)
    return _unexplained(plan, parts, log)


def double_definition(plan: LinkPlan, symbol: str, first: Part, second: Part, log: str = "") -> LinkError:
    """The error for a *symbol* that two parts define."""
    return LinkError(
        f"{failed(plan)}: {symbol!r} is defined twice\n"
        f"  first by: {first.origin}\n"
        f"  again by: {second.origin}\n"
        "  what to do: give the two functions different names (put what distinguishes them, such as sizes and types,"
        " into the symbol), or return equal code from both objects: equal code is linked once",
        log,
    )


def wrong_signature(
    plan: LinkPlan, part: Part, wanted_by: Mapping[str, str], symbol: str, called: object, defined: object
) -> LinkError:
    """The error for a function of *part* that is called with a signature that is not its own."""
    return LinkError(
        f"{failed(plan)}: {symbol!r} is called with another signature than it has\n"
        f"  defined by: {part.origin}\n"
        f"  got: the caller's {symbol!r} {called}: {wanted_by.get(symbol, 'code that is linked')}\n"
        f"  expected: the function {defined}\n"
        "  what to do: make the function's parameters those of the call, or the other way round (Extern's args and"
        " returns, or declare_device's signature, whose functions return a status and take a pointer to the result)"
    )


def _error(
    plan: LinkPlan, at_fault: Sequence[Part], why: str, remedy: str, parts: Sequence[Part], log: str
) -> LinkError:
    fault = "; ".join(part.origin for part in at_fault) or f"one of: {listed(parts)}"
    return LinkError(f"{failed(plan)}: {why}\n  at fault: {fault}\n  what to do: {remedy}", log)


def _named(parts: Sequence[Part], log: str) -> list[Part]:
    return [part for part in parts if part.name and part.name in log]


# A symbol that nobody defines


def _missing_symbol(
    plan: LinkPlan,
    parts: Sequence[Part],
    wanted_by: Mapping[str, str],
    prototypes: Mapping[str, str],
    symbol: str,
    log: str,
) -> LinkError:
    defined = {part: names for part in parts[1:] if (names := _names_in(plan, part)) is not None}
    near, remedy = _near_miss(symbol, defined)
    if not near and symbol in prototypes:
        near, remedy = _mangled_in_ltoir(plan, parts, symbol, prototypes[symbol])
    lines = [
        f"{failed(plan)}: {symbol!r} is called but nothing that is linked defines it",
        f"  wanted by: {wanted_by.get(symbol, 'code that is linked, not by a call in Python')}",
        *(f"  near miss: {line}" for line in near),
        *(f"  linked: {part.origin}{_what_it_defines(defined.get(part))}" for part in parts),
        f"  what to do: {remedy or _REMEDY}",
    ]
    return LinkError("\n".join(lines), log)


def _undefined_in(plan: LinkPlan, parts: Sequence[Part], wanted_by: Mapping[str, str]) -> str | None:
    """A symbol that is wanted and that none of *parts* defines, where that can be read: nvJitLink before 12.9 does not
    say it of machine code."""
    defined: set[str] = set()
    wanted = [name for name in wanted_by if not name.startswith(("llvm.", "__nv_"))]  # NVVM has these
    for part in parts:
        if part.kind is kinds.PTX:
            wanted += code_symbols.in_ptx(part.code).wanted
        elif part.kind is kinds.CUBIN and (found := code_symbols.in_elf(part.code)) is not None:
            wanted += found.wanted
        names = _names_in(plan, part)
        if names is None and part is not parts[0]:
            return None
        defined |= names or set()
    return next((name for name in wanted if name not in defined), None)


_REMEDY = (
    "check the symbol's spelling; in CUDA C++ declare the function"
    ' extern "C" __device__, so that its name is not mangled; return the code that defines it from __numba_cuda_link__'
)


def _what_it_defines(names: frozenset[str] | None) -> str:
    if names is None:
        return ""
    shown = sorted(map(cxx_names.readable, names))
    more = f" and {len(shown) - _MOST_NAMES} more" if len(shown) > _MOST_NAMES else ""
    return f", which defines {', '.join(shown[:_MOST_NAMES])}{more}" if shown else ", which defines nothing"


def _names_in(plan: LinkPlan, part: Part) -> frozenset[str] | None:
    """What *part* defines; ``None`` where that cannot be read."""
    names: frozenset[str] = frozenset()
    planned = next((planned for planned in plan.units if str(planned) == part.origin), None)
    if planned is not None and planned.input.kind is kinds.BITCODE:
        return frozenset(bitcode_compile.defined(planned.input) or ()) or None
    if part.kind is kinds.LTO_IR:
        return None if planned is None else _names_in_source(plan, planned.input)
    if link_symbols.is_compressed(part.kind.name, part.code):
        names = link_symbols.of_host(part.kind.name, part.code)
    names |= link_symbols.in_code(part.kind.name, part.code)
    return names or None


def _names_in_source(plan: LinkPlan, source: LinkInput) -> frozenset[str] | None:
    """What a source that became LTO-IR defines: it is compiled again, to machine code, whose symbols can be read."""
    if source.kind is kinds.CUDA:
        with contextlib.suppress(CompileError):
            return link_symbols.in_cubin(compiled(source, dataclasses.replace(plan.target, lto=False)).code)
    return None


def _near_miss(symbol: str, defined: Mapping[Part, Iterable[str]]) -> tuple[list[str], str]:
    """What is defined under a name that is nearly *symbol*, and what to do about it."""
    mangled = [(part, name) for part, names in defined.items() for name in names if cxx_names.base_name(name) == symbol]
    mangled = [(part, name) for part, name in mangled if name != symbol]
    if mangled:
        near = [f"{part.origin} defines {cxx_names.readable(name)}, as C++: {name}" for part, name in mangled]
        return near, f'declare it extern "C" __device__, so that its name in the code is {symbol!r}'
    near = []
    for part, names in defined.items():
        bases = {cxx_names.base_name(name): name for name in names}
        for base in difflib.get_close_matches(symbol, bases, n=2, cutoff=0.7):
            near.append(f"{part.origin} defines {cxx_names.readable(bases[base])!r}")
    return near, f"call what is defined, or rename the function to {symbol!r}" if near else ""


def _mangled_in_ltoir(plan: LinkPlan, parts: Sequence[Part], symbol: str, prototype: str) -> tuple[list[str], str]:
    """Whether LTO-IR, whose names cannot be listed, defines the C++ name that *symbol* would have."""
    candidates = cxx_names.possible_names(symbol, prototype)
    for part in parts[1:]:
        if part.kind is kinds.LTO_IR and candidates:
            name = link_symbols.defined_in_ltoir(part.code, candidates, plan.target.arch)
            if name is not None:
                return _near_miss(symbol, {part: [name]})
    return [], ""


# Inputs that the linker refuses


def _too_new(plan: LinkPlan, parts: Sequence[Part], log: str) -> LinkError:
    headers = {}
    for part in parts:
        if part.kind is kinds.LTO_IR:
            with contextlib.suppress(link_formats.FormatError):
                headers[part] = link_formats.lto_ir(part.code)
    linker = ".".join(map(str, plan.target.nvjitlink_version or ("?",)))
    own = headers.get(parts[0])
    newer = [part for part, header in headers.items() if own is not None and header.is_newer_than(own)]
    if own is None or not newer:
        return _error(
            plan,
            [part for part in headers if part is not parts[0]],
            f"there is LTO-IR of a newer toolkit than nvJitLink {linker}",
            f"make the LTO-IR with a toolkit no newer than {linker}, or update nvJitLink",
            parts,
            log,
        )
    lines = [
        f"{failed(plan)}: LTO-IR was made by a newer toolkit than nvJitLink {linker} can read",
        *(f"  at fault: {part.origin}" for part in newer),
        f"  got: LTO-IR of {headers[newer[0]].version}",
        f"  expected: no newer than nvJitLink {linker}; the kernel's own LTO-IR, made here, is of {own.version}",
        f"  what to do: update nvJitLink, make the LTO-IR with a toolkit no newer than {linker}, or return CUDA C++ or"
        " PTX of an older version",
    ]
    return LinkError("\n".join(lines), log)


def _unexplained(plan: LinkPlan, parts: Sequence[Part], log: str) -> LinkError:
    at_fault = _named(parts, log)
    if not at_fault:
        at_fault, tried = _found_by_trial(plan, parts)
        log += tried
    lines = [failed(plan)]
    lines += [f"  at fault: {part.origin}" for part in at_fault]
    for part in at_fault:
        if (line := _PTX_LINE.search(log)) and part.kind is kinds.PTX:
            text = part.code.decode("utf-8", "replace").splitlines()
            number = int(line[1])
            if number <= len(text):
                lines.append(f"  its line {number}: {text[number - 1].strip()}")
    if not at_fault or len(parts) > len(at_fault):
        lines.append(f"  linked: {listed(parts)}")
    if at_fault and at_fault[0] is not parts[0]:
        lines.append(
            f"  what to do: make that {at_fault[0].kind} anew for {plan.target.arch} and with this toolkit; the log"
            " says what the linker found wrong with it"
        )
    return LinkError("\n".join(lines), log)


def _found_by_trial(plan: LinkPlan, parts: Sequence[Part]) -> tuple[list[Part], str]:
    """The part that the linker refuses alone, and what it says of it. Tried in a child process, since what it refuses
    together it may not survive alone."""
    inputs = [(part.kind, part.code, part.name) for part in parts]
    options = link_trial.options_for(plan.target.arch, (part.kind for part in parts))
    try:
        outcomes = link_trial.run_trials(inputs, [[index] for index in range(len(parts))], options)
    except link_trial.TrialError:
        return [], ""
    for part, outcome in zip(parts, outcomes, strict=True):
        if outcome.crash or not (outcome.ok or outcome.is_incomplete):
            said = outcome.log or f"the linker does not survive it ({outcome.crash})"
            return [part], f"\nof {part.name} alone: {said}"
    return [], ""
