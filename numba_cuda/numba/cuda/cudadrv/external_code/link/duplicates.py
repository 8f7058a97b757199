# SPDX-License-Identifier: BSD-2-Clause
"""Symbols that two parts of a link define. nvJitLink takes the first of them without a message, or crashes.

PTX and cubins are read. LTO-IR is linked with a module that defines the same symbols. Compressed pieces of fatbins,
objects and archives are linked in a child process, where nvJitLink may print what it likes, or crash.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..formats import symbols
from ..formats.pieces import has_compressed_piece
from ..inputs import kinds
from . import probes
from .errors import LinkError, message
from .parts import LinkJob, Part, trials_of


@dataclass(frozen=True)
class Duplicate:
    """A symbol, and two parts that define it."""

    symbol: str
    first: Part
    second: Part


def check_duplicates(job: LinkJob) -> None:
    """Look for a symbol that two parts define, runtime libraries aside. Raises `LinkError` if there is one."""
    duplicate = find_duplicate(job.provided, job.kernel_code.sites, job.plan.target.arch)
    if duplicate is not None:
        raise duplicate_error(job, duplicate)


def duplicate_error(job: LinkJob, duplicate: Duplicate, log: str = "") -> LinkError:
    """Return the error for a symbol that two parts define."""
    text = message(
        job.plan,
        f"{duplicate.symbol!r} is defined twice",
        f"first by: {duplicate.first.origin}",
        f"again by: {duplicate.second.origin}",
        "what to do: give the two functions different names (put what distinguishes them, such as sizes and types,"
        " into the symbol), or return equal code from both objects: equal code is linked once",
    )
    return LinkError(text, log)


def duplicate_of(symbol: str, parts: Sequence[Part], arch: str) -> Duplicate | None:
    """Return the first two LTO-IR modules among *parts* that define *symbol*, ``None`` if fewer than two do."""
    definers = [part for part in _ltoir(parts) if probes.defined_in_ltoir(part.code, [symbol], arch)]
    return Duplicate(symbol, *definers[:2]) if len(definers) > 1 else None


def find_duplicate(parts: Sequence[Part], called: Collection[str], arch: str) -> Duplicate | None:
    """Return a symbol that two of *parts* define, not both LTO-IR, of which the linker itself reports it; or ``None``.

    *called* are the symbols that calls in Python reference; where names cannot be read, only these are looked for.
    """
    defined: dict[str, Part] = {}
    for part in parts:
        for symbol in sorted(symbols.defined_in(part.kind.name, part.code)):
            if symbol in defined:
                return Duplicate(symbol, defined[symbol], part)
            defined[symbol] = part
    compressed = [part for part in parts if has_compressed_piece(part.kind.name, part.code)]
    if compressed and len(parts) > 1:
        with contextlib.suppress(Exception):  # if no child process can find out, the linker decides
            if duplicate := _in_compressed(parts, compressed, defined, called, arch):
                return duplicate
    return _in_ltoir(_ltoir(parts), defined, arch)


def _in_ltoir(modules: Sequence[Part], defined: dict[str, Part], arch: str) -> Duplicate | None:
    """Return a symbol that one of the LTO-IR *modules* defines and another part too; *defined* are those of others."""
    if not modules or not defined:
        return None
    others = probes.definitions_of(tuple(sorted(defined)), arch)
    symbol = probes.duplicate_in_ltoir([others, *(part.code for part in modules)], arch, isolated=False)
    if symbol is None or symbol not in defined:
        return None
    module = next(part for part in modules if probes.defined_in_ltoir(part.code, [symbol], arch, isolated=False))
    return Duplicate(symbol, module, defined[symbol])


def _in_compressed(
    parts: Sequence[Part], compressed: Sequence[Part], defined: dict[str, Part], called: Collection[str], arch: str
) -> Duplicate | None:
    """Return a symbol that a *compressed* part and another define. Adds to *defined* what they prove to define."""
    machine_code = [part for part in parts if part.kind is not kinds.LTO_IR]
    together = trials_of(machine_code, [range(len(machine_code))], arch) if len(machine_code) > 1 else []
    names = sorted(name for outcome in together for name in probes.duplicates_in_log(outcome.log))[:1]
    if not names and len(machine_code) < len(parts):
        stubs = (symbols.host_functions(part.kind.name, part.code) for part in compressed)
        names = sorted(set(called).union(*stubs))
    for part, found in zip(compressed, _defined_in_compressed(compressed, names, arch), strict=True):
        for name in sorted(found):
            first = defined.setdefault(name, part)
            if first is not part:
                one, other = sorted((first, part), key=parts.index)
                return Duplicate(name, one, other)
    return None


def _defined_in_compressed(compressed: Sequence[Part], names: Sequence[str], arch: str) -> list[frozenset[str]]:
    """Return which of *names* each of *compressed* defines: each is linked with a kernel that calls them all."""
    if not names:
        return [frozenset()] * len(compressed)
    caller = Part(kinds.PTX, probes.caller_of(tuple(names), arch), "probe")
    trials = [[0], *([0, number] for number in range(1, len(compressed) + 1))]
    alone, *outcomes = trials_of([caller, *compressed], trials, arch)
    undefined = probes.undefined_in_log(alone.log)  # without the system's, such as vprintf
    return [
        undefined - probes.undefined_in_log(outcome.log) if outcome.ok or outcome.is_incomplete else frozenset()
        for outcome in outcomes
    ]


def _ltoir(parts: Iterable[Part]) -> list[Part]:
    return [part for part in parts if part.kind is kinds.LTO_IR]
