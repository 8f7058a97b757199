# SPDX-License-Identifier: BSD-2-Clause
"""LLVM IR as text: the functions that it calls and does not define."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .symbol_record import Symbols

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
