# SPDX-License-Identifier: BSD-2-Clause
"""Finds symbols that two parts of a link define, of which nvJitLink takes the first without a word, or crashes.

PTX and cubins are read. LTO-IR is linked with a module that defines the same symbols. What fatbins, objects and
archives hold compressed is linked in a child process, where nvJitLink may print what it likes, or crash.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from ..formats import defined_symbols as link_symbols
from ..inputs import kinds
from . import trial as link_trial
from .errors import Part


def defined_twice(parts: Sequence[Part], called: Iterable[str], arch: str) -> tuple[str, Part, Part] | None:
    """A symbol that two of *parts* define, with the two, or ``None``.

    *called* are the symbols that calls in Python want, which are looked for where no names can be read.
    """
    defined: dict[str, Part] = {}
    for part in parts:
        for symbol in sorted(link_symbols.in_code(part.kind.name, part.code)):
            if symbol in defined:
                return symbol, defined[symbol], part
            defined[symbol] = part
    compressed = [part for part in parts if link_symbols.is_compressed(part.kind.name, part.code)]
    if compressed and len(parts) > 1:
        with contextlib.suppress(Exception):  # where it cannot be found out, the link has the word
            twice = _twice_in_compressed(parts, compressed, defined, called, arch)
            if twice is not None:
                return twice
    for part in parts:
        if part.kind is kinds.LTO_IR and defined:
            symbol_there = link_symbols.defined_in_ltoir(part.code, defined, arch)
            if symbol_there is not None:
                return symbol_there, part, defined[symbol_there]
    return None


def _twice_in_compressed(
    parts: Sequence[Part], compressed: Sequence[Part], defined: dict[str, Part], called: Iterable[str], arch: str
) -> tuple[str, Part, Part] | None:
    """A symbol that a *compressed* part defines as well as another one. Adds to *defined* what they turn out to
    define."""
    machine_code = [part for part in parts if part.kind is not kinds.LTO_IR]
    together = _trials(machine_code, [range(len(machine_code))], arch) if len(machine_code) > 1 else []
    twice = sorted(name for outcome in together for name in link_symbols.reports_of(outcome.log)[1])
    has_ltoir = len(machine_code) < len(parts)
    names = twice[:1] or (sorted(set(called).union(*map(_host_names, compressed))) if has_ltoir else [])
    for part, found in zip(compressed, _defined_there(compressed, names, arch), strict=True):
        for name in sorted(found):
            first = defined.setdefault(name, part)
            if first is not part:
                one, other = sorted((first, part), key=parts.index)
                return name, one, other
    return None


def _host_names(part: Part) -> frozenset[str]:
    return link_symbols.of_host(part.kind.name, part.code)


def _defined_there(compressed: Sequence[Part], names: Sequence[str], arch: str) -> list[frozenset[str]]:
    """Which of *names* each of *compressed* defines: each is linked with a kernel that calls them all."""
    if not names:
        return [frozenset()] * len(compressed)
    probe = Part(kinds.PTX, link_symbols.calling(names, arch), "", "probe")
    trials = [[0], *([0, number] for number in range(1, len(compressed) + 1))]
    alone, *outcomes = _trials([probe, *compressed], trials, arch)
    missing = link_symbols.reports_of(alone.log)[0]  # without the compiler's own, such as vprintf
    return [
        missing - link_symbols.reports_of(outcome.log)[0] if outcome.ok or outcome.is_incomplete else frozenset()
        for outcome in outcomes
    ]


def _trials(parts: Sequence[Part], trials: Sequence[Iterable[int]], arch: str) -> list[link_trial.Outcome]:
    inputs = [(part.kind, part.code, part.name) for part in parts]
    return link_trial.run_trials(inputs, trials, link_trial.options_for(arch, (part.kind for part in parts)))
