# SPDX-License-Identifier: BSD-2-Clause
"""Canonical names: the same functions get the same LLVM IR, whatever was compiled before them.

Mangled names contain, as an ABI tag (``B2v7``), a number that counts all functions of the process. The functions of one
kernel are renumbered in the order in which they appear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNIQUE_ID = re.compile(r"B(\d+)v(\d+)(?=B)")
_WARN_OF_OTHER_VERSION = 'i32 2, !"Debug Info Version"'
_OVERRIDE_OTHER_VERSION = 'i32 4, !"Debug Info Version"'
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

    return [_MODULE_ID.sub('; ModuleID = "module"', _UNIQUE_ID.sub(renumbered, text)) for text in texts]


def with_mergeable_debug_information(texts: Iterable[str]) -> list[str]:
    """Return the *texts* of LLVM modules so that they can be linked with those of NVRTC.

    With line information, Numba's modules and NVRTC's have different rules for merging the flag of the debug
    information's version, which LTO takes for an error. The version is the same: the flag may be overridden.
    """
    return [text.replace(_WARN_OF_OTHER_VERSION, _OVERRIDE_OTHER_VERSION) for text in texts]
