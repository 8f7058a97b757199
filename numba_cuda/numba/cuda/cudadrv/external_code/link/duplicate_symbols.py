# SPDX-License-Identifier: BSD-2-Clause
"""Symbols that two parts of a link define. nvJitLink takes the first of them without a message, or crashes.

PTX and cubins are read. LTO-IR is linked with a module that defines the same symbols. Compressed pieces of fatbins,
objects and archives are linked in a child process, where nvJitLink may print what it likes, or crash.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ..formats import symbols
from ..formats.containers import has_compressed_piece
from ..inputs import kinds
from . import ltoir_symbols
from .linker_input import LinkJob, Part
from .nvjitlink import TrialError, run_trials

_UNDEFINED = re.compile(r"Undefined reference to '([^']+)'")
_TWICE = re.compile(r"Multiple definition of '([^']+)'")


class Duplicate(NamedTuple):
    """A symbol, and two parts that define it."""

    symbol: str
    first: Part
    second: Part


class DefinedTwiceError(Exception):
    """Two parts define a symbol: *duplicate*. *form* is the kind of code in which both may, if it is equal there; and
    empty where one part alone may."""

    def __init__(self, duplicate: Duplicate, form: str = ""):
        self.duplicate, self.form = duplicate, form
        super().__init__(duplicate.symbol)


def check_readable_duplicates(job: LinkJob) -> None:
    """Look for a symbol that two parts define among the names that can be read, without a link. Raises
    `DefinedTwiceError` if there is one."""
    _, duplicate = _readable(job.provided)
    if duplicate is not None:
        raise DefinedTwiceError(duplicate)


def duplicate_of(symbol: str, parts: Sequence[Part], arch: str) -> Duplicate | None:
    """Return the first two LTO-IR modules among *parts* that define *symbol*, ``None`` if fewer than two do."""
    modules = [part for part in parts if part.kind is kinds.LTO_IR]
    try:
        definers = [modules[number] for number in ltoir_symbols.definers_in_ltoir(modules, symbol, arch)]
    except TrialError:
        return None
    return Duplicate(symbol, *definers[:2]) if len(definers) > 1 else None


def find_duplicate(
    parts: Sequence[Part], called: Collection[str], arch: str, *, isolated: bool = False
) -> Duplicate | None:
    """Return a symbol that two of *parts* define, not both LTO-IR, of which the linker itself reports it; or ``None``.

    *called* are the symbols that calls in Python reference; where names cannot be read, only these are looked for.
    If *isolated*, LTO-IR is linked in another process, which a part needs that has not survived a link.
    """
    defined, duplicate = _readable(parts)
    if duplicate is not None:
        return duplicate
    compressed = [part for part in parts if has_compressed_piece(part.kind.name, part.code)]
    if compressed and len(parts) > 1:
        with contextlib.suppress(Exception):  # if no child process can find out, the linker decides
            if duplicate := _in_compressed(parts, compressed, defined, called, arch):
                return duplicate
    modules = [part for part in parts if part.kind is kinds.LTO_IR]
    if not modules or not defined:
        return None
    others = ltoir_symbols.definitions_of(tuple(sorted(defined)), arch)
    found = ltoir_symbols.duplicate_in_ltoir([others, *(part.code for part in modules)], arch, isolated=isolated)
    if found is None or found not in defined:
        return None
    if isolated:
        with contextlib.suppress(TrialError):
            for number in ltoir_symbols.definers_in_ltoir(modules, found, arch):
                return Duplicate(found, modules[number], defined[found])
        return None
    module = next(part for part in modules if ltoir_symbols.defined_in_ltoir(part.code, [found], arch, isolated=False))
    return Duplicate(found, module, defined[found])


def _readable(parts: Sequence[Part]) -> tuple[dict[str, Part], Duplicate | None]:
    defined: dict[str, Part] = {}
    for part in parts:
        for symbol in sorted(symbols.find_defined(part.kind.name, part.code)):
            if symbol in defined:
                return defined, Duplicate(symbol, defined[symbol], part)
            defined[symbol] = part
    return defined, None


def _in_compressed(
    parts: Sequence[Part], compressed: Sequence[Part], defined: dict[str, Part], called: Collection[str], arch: str
) -> Duplicate | None:
    """Return a symbol that a *compressed* part and another define. Adds to *defined* what they prove to define."""
    machine_code = [part for part in parts if part.kind is not kinds.LTO_IR]
    together = run_trials(machine_code, [range(len(machine_code))], arch) if len(machine_code) > 1 else []
    names = sorted(name for outcome in together for name in _TWICE.findall(outcome.log))[:1]
    if not names and len(machine_code) < len(parts):
        stubs = (symbols.host_functions(part.kind.name, part.code) for part in compressed)
        names = sorted(set(called).union(*stubs))
    if not names:
        return None
    # Each is linked with a kernel that references all the names.
    alone, *outcomes = run_trials(
        [ltoir_symbols.reference_to(tuple(names), arch), *compressed],
        [[0], *([0, number] for number in range(1, len(compressed) + 1))],
        arch,
    )
    undefined = set(_UNDEFINED.findall(alone.log))  # without the system's, such as vprintf
    for part, outcome in zip(compressed, outcomes, strict=True):
        for name in sorted(undefined.difference(_UNDEFINED.findall(outcome.log))) if not outcome.is_faulty else ():
            first = defined.setdefault(name, part)
            if first is not part:
                return Duplicate(name, *sorted((first, part), key=parts.index))
    return None
