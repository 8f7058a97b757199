# SPDX-License-Identifier: BSD-2-Clause
"""The record of the symbols of a piece of code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# The driver or the linker defines these.
_SYSTEM_FUNCTIONS = frozenset({"vprintf", "malloc", "free", "__assertfail"})
_SYSTEM_PREFIXES = (".nv", "__UDT", "__UFT", "__nv_reserved", "__cuda_syscall_")


@dataclass(frozen=True)
class Symbols:
    """The functions and variables that code defines for other code, and those that it references and does not define;
    each sorted."""

    defined: tuple[str, ...]
    undefined: tuple[str, ...]

    @classmethod
    def of(cls, defined: Iterable[str], referenced: Iterable[str]) -> Symbols:
        """Return the record of these; what the driver or the linker defines is left out."""
        own = set(defined)
        undefined = set(referenced) - own - _SYSTEM_FUNCTIONS
        return cls(tuple(sorted(own)), tuple(sorted(n for n in undefined if not n.startswith(_SYSTEM_PREFIXES))))
