# SPDX-License-Identifier: BSD-2-Clause
"""Canonical names: the same functions get the same LLVM IR, whatever was compiled before them.

Mangled names contain, as an ABI tag (``B2v7``), a number that counts all functions of the process; and the address of
each Python function that is an argument. Both are renumbered in the order in which they appear in a kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNIQUE_ID = re.compile(r"B(\d+)v(\d+)(?=B)")
_ADDRESS = re.compile(r"(?<=_200x)[0-9a-f]{8,16}(?=_3e)")  # in "<function f at 0x...>"
_MODULE_ID = re.compile(r'^; ModuleID = ".*"$', re.MULTILINE)


def with_canonical_names(texts: Iterable[str]) -> list[str]:
    """Return the *texts* of a kernel's LLVM modules, or its names, with canonical names."""
    numbers: dict[str, int] = {}

    def renumbered(found: re.Match[str]) -> str:
        length, unique_id = found.groups()
        if int(length) != len(unique_id) + 1:
            return found[0]
        tag = f"v{numbers.setdefault(unique_id, len(numbers) + 1)}"
        return f"B{len(tag)}{tag}"

    addresses: dict[str, int] = {}

    def moved(found: re.Match[str]) -> str:
        # As long as before: a length stands in front of each part of a mangled name.
        return f"{addresses.setdefault(found[0], len(addresses) + 1):0{len(found[0])}x}"

    texts = [_ADDRESS.sub(moved, _UNIQUE_ID.sub(renumbered, text)) for text in texts]
    return [_MODULE_ID.sub('; ModuleID = "module"', text) for text in texts]
