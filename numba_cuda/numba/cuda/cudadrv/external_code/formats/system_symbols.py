# SPDX-License-Identifier: BSD-2-Clause
"""Symbols that the driver or the linker defines: no code that is linked has to."""

from __future__ import annotations

_FUNCTIONS = frozenset({"vprintf", "malloc", "free", "__assertfail"})
_PREFIXES = (".nv", "__UDT", "__UFT", "__nv_reserved", "__cuda_syscall_")


def is_system(name: str) -> bool:
    """Return whether every program on a GPU can reference *name*."""
    return name in _FUNCTIONS or name.startswith(_PREFIXES)
