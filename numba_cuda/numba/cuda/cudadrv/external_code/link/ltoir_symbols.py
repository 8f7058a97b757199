# SPDX-License-Identifier: BSD-2-Clause
"""The symbols of LTO-IR modules, whose names cannot be read: found by a few links of many modules at once.

A link to PTX without optimisation shows which of the requested functions have a body, and what the bodies reference,
but not which module a body comes from. Links of some of the modules follow. Each module takes part in a set of its own
of these links, and all sets have the same size: a function that has a body in exactly the links of one set is that
module's, and one that has a body in more links comes from several modules. The number of links grows with the logarithm
of the number of modules.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from numba_cuda_autolink.ptx import ptx_references, ptx_symbols

from ..formats.symbols import Symbols
from .ltoir_probes import PROBE_SYMBOLS, ptx_of_ltoir


def symbols_of_ltoir(modules: Sequence[bytes], candidates: Collection[str], arch: str) -> list[Symbols | None]:
    """Return for each of the LTO-IR *modules* which functions it defines, of the *candidates* and of what the other
    *modules* reference, and what these functions reference without the module defining it. ``None`` stands for a module
    that does not link for *arch*."""
    names = tuple(sorted(set(candidates)))
    if not names or not modules:
        return [None] * len(modules)
    if (found := _symbols(modules, names, arch)) is not None:
        return list(found)
    if len(modules) == 1:
        return [None]
    half = len(modules) // 2
    return [each for some in (modules[:half], modules[half:]) for each in symbols_of_ltoir(some, names, arch)]


def _symbols(modules: Sequence[bytes], candidates: tuple[str, ...], arch: str) -> list[Symbols] | None:
    """Return the symbols of *modules*; ``None`` if they do not link with each other."""
    if (whole := _Bodies.of(modules, candidates, arch)) is None:
        return None
    homes = _homes(modules, tuple(sorted({*whole.functions, *candidates})), arch)
    if homes is None:
        return None
    owned: list[set[str]] = [set() for _ in modules]
    for name, indices in homes.items():
        for index in indices:
            owned[index].add(name)
    reached = [whole.reached_from(own, homes) for own in owned]
    requested = defaultdict[str, set[int]](set)  # by function, the modules that reference it
    for index, names in enumerate(reached):
        for name in names:
            requested[name].add(index)
    return [
        Symbols.of((name for name in own if name in candidates or requested[name] - {index}), reached[index] - own)
        for index, own in enumerate(owned)
    ]


@dataclass(frozen=True)
class _Bodies:
    """What has a body in a link, functions and variables, and the names that each body contains; and which of them are
    *functions*."""

    references: dict[str, frozenset[str]]
    functions: frozenset[str]

    @classmethod
    def of(cls, modules: Sequence[bytes], names: tuple[str, ...], arch: str) -> _Bodies | None:
        """Link *modules* with references to *names*; return ``None`` if that fails."""
        ptx = ptx_of_ltoir(modules, names, arch, optimize=False)
        if ptx is None:
            return None
        functions = frozenset(each.name for each in ptx_symbols(ptx) if each.space == "func" and each.is_defined)
        return cls({name: used for name, used in ptx_references(ptx).items() if name not in PROBE_SYMBOLS}, functions)

    def reached_from(self, names: Iterable[str], homes: Collection[str]) -> set[str]:
        """Return what is referenced from the bodies of *names*, and of what these reference, as far as it is visible to
        other modules, being one of *homes*, or has no body. Bodies that others cannot see are passed through."""
        found: set[str] = set()
        left, passed = list(names), set(names)
        while left:
            for name in self.references.get(left.pop(), ()):
                if name in homes or name not in self.references:
                    found.add(name)
                elif name not in passed:
                    passed.add(name)
                    left.append(name)
        return found


def _homes(modules: Sequence[bytes], names: tuple[str, ...], arch: str) -> dict[str, list[int]] | None:
    """Return by index the modules that define each of *names* for others; several do of weak definitions. Names that no
    module defines for others are left out. ``None`` stands for links that fail."""
    links, chosen = _memberships(len(modules))
    seen = defaultdict[str, list[int]](list)
    for link in range(links):
        some = [module for module, members in zip(modules, chosen, strict=True) if link in members]
        if (bodies := _Bodies.of(some, names, arch)) is None:
            return None
        for name in bodies.functions.intersection(names):
            seen[name].append(link)
    indices = {members: [index] for index, members in enumerate(chosen)}
    homes = {name: indices.get(tuple(numbers), []) for name, numbers in seen.items()}
    several = tuple(sorted(name for name, found in homes.items() if not found))
    for index, module in enumerate(modules if several else ()):
        alone = _Bodies.of([module], several, arch)
        for name in alone.functions.intersection(several) if alone is not None else ():
            homes[name].append(index)
    return homes


def _memberships(number: int) -> tuple[int, list[tuple[int, ...]]]:
    """Return a number of links, as small as possible, and for each of *number* modules the links with it: a different
    set for each, all of one size."""
    links = next(links for links in itertools.count(1) if math.comb(links, links // 2) >= number)
    size = max(links // 2, 1)
    return links, list(itertools.islice(itertools.combinations(range(links), size), number))
