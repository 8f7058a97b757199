# SPDX-License-Identifier: BSD-2-Clause
"""Functions that nothing defines: those of LLVM IR as text, without those that the system defines."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FUNCTION = re.compile(r'^(declare|define)\b.*?@(?:"([^"]+)"|([\w.$-]+))\s*\(', re.M)
# NVVM defines these, or numba-cuda does when it hands the IR over.
_COMPILER_PREFIXES = ("llvm.", "__nv", "___numba_")
# The driver or the linker defines these.
_SYSTEM_FUNCTIONS = frozenset({"vprintf", "malloc", "free", "__assertfail"})
_SYSTEM_PREFIXES = (".nv", "__UDT", "__UFT", "__nv_reserved", "__cuda_syscall_")


def is_system(name: str) -> bool:
    """Return whether every program on a GPU can reference *name*."""
    return name in _SYSTEM_FUNCTIONS or name.startswith(_SYSTEM_PREFIXES)


def undefined_functions(modules: Iterable[str]) -> tuple[str, ...]:
    """Return the functions that *modules* (LLVM IR as text), linked with each other, call and do not define; sorted.

    Those that NVVM, numba-cuda, the driver or the linker defines are left out.
    """
    found: dict[str, set[str]] = {"declare": set(), "define": set()}
    for text in modules:
        for how, quoted, plain in _FUNCTION.findall(text):
            found[how].add(quoted or plain)
    undefined = (name for name in found["declare"] - found["define"] if not name.startswith(_COMPILER_PREFIXES))
    return tuple(sorted(name for name in undefined if not is_system(name)))
