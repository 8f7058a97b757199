# SPDX-License-Identifier: BSD-2-Clause
"""The record of the symbols of a piece of code, and the symbols of LLVM IR as text."""

from __future__ import annotations

import re
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


_LLVM_FUNCTION = re.compile(r'^(declare|define)\b.*?@(?:"([^"]+)"|([\w.$-]+))\s*\(', re.M)
# NVVM defines these, or numba-cuda does when it hands the IR over.
_COMPILER_PREFIXES = ("llvm.", "__nv", "___numba_")


def undefined_functions(modules: Iterable[str]) -> tuple[str, ...]:
    """Return the functions that *modules* (LLVM IR as text), linked with each other, call and do not define; sorted.

    Those that NVVM, numba-cuda, the driver or the linker defines are left out.
    """
    found: dict[str, set[str]] = {"declare": set(), "define": set()}
    for text in modules:
        for how, quoted, plain in _LLVM_FUNCTION.findall(text):
            found[how].add(quoted or plain)
    undefined = Symbols.of(found["define"], found["declare"]).undefined
    return tuple(name for name in undefined if not name.startswith(_COMPILER_PREFIXES))
