# SPDX-License-Identifier: BSD-2-Clause
"""Canonical names: the same functions get the same LLVM IR, whatever was compiled before them.

Mangled names contain, as an ABI tag (``B2v7``), a number that counts all functions of the process. The functions of one
kernel are renumbered in the order in which they appear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNIQUE_ID = re.compile(r"B(\d+)v(\d+)(?=B)")
_MODULE_ID = re.compile(r'^; ModuleID = ".*"$', re.MULTILINE)


class CanonicalNames:
    """Renames the functions of one kernel, in the texts of its modules and wherever its names are used."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def modules(self, texts: Sequence[str]) -> list[str]:
        """Return the *texts* of the kernel's LLVM modules with canonical names."""
        return [_MODULE_ID.sub('; ModuleID = "module"', self.name(text)) for text in texts]

    def name(self, name: str) -> str:
        """Return a name, or any text that contains names, with canonical ones."""
        return _UNIQUE_ID.sub(self._renumbered, name)

    def _renumbered(self, found: re.Match[str]) -> str:
        length, unique_id = found.groups()
        if int(length) != len(unique_id) + 1:
            return found[0]
        tag = f"v{self._numbers.setdefault(unique_id, len(self._numbers) + 1)}"
        return f"B{len(tag)}{tag}"
