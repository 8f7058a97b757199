# SPDX-License-Identifier: BSD-2-Clause
"""Canonical LLVM IR: the same functions get the same text, whatever was compiled before them, and fit NVRTC's modules.

Mangled names contain, as an ABI tag (``B2v7``), a number that counts all functions of the process; for a record or an
object that is an argument, one that counts such types; and for a Python function that is an argument, its address. The
name of a string constant is Python's hash of its bytes, which another process computes with another seed. All are
renumbered in the order in which they appear in a kernel.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable

_UNIQUE_ID = re.compile(r"B(\d+)v(\d+)(?=B)")
_ADDRESS = re.compile(r"(?<=_200x)[0-9a-f]{8,16}(?=_3e)")  # in "<function f at 0x...>"
_TYPE = re.compile(r"(6RecordILi|18DeviceCallableTypeILi)(\d+)(?=E)")
_BYTES = re.compile(r'@"\.bytes\.(-?\d+)"')
_DIGITS = 16  # of a digest: 64 bits
_MODULE_ID = re.compile(r'^; ModuleID = ".*"$', re.MULTILINE)


def with_canonical_names(texts: Iterable[str]) -> list[str]:
    """Return the *texts* of a kernel's LLVM modules, or its names, with canonical names."""
    numbers, addresses, types, constants = (_Numbers() for _ in range(4))
    texts = _rename(texts, lambda unique_id: f"v{numbers[unique_id]}")
    # As long as before: a length stands in front of each part of a mangled name.
    texts = [_ADDRESS.sub(lambda found: f"{addresses[found[0]]:0{len(found[0])}x}", text) for text in texts]
    texts = [_TYPE.sub(lambda found: f"{found[1]}{types[found[0]]}", text) for text in texts]
    texts = [_BYTES.sub(lambda found: f'@".bytes.{constants[found[1]]}"', text) for text in texts]
    return [_MODULE_ID.sub('; ModuleID = "module"', text) for text in texts]


class _Numbers(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return self.setdefault(name, len(self) + 1)


def with_names_by_content(texts: Iterable[str]) -> list[str]:
    """Return the *texts* of the LLVM modules of a function that is linked into kernels that other code is part of, too.

    Equal functions get equal names there, and different functions different ones.
    """
    canonical = with_canonical_names(texts)
    content = hashlib.sha256("\0".join(canonical).encode()).hexdigest()[:_DIGITS]
    return _rename(canonical, lambda number: f"v{number}h{content}")


def _rename(texts: Iterable[str], tag_of: Callable[[str], str]) -> list[str]:
    def rename(found: re.Match[str]) -> str:
        length, unique_id = found.groups()
        if int(length) != len(unique_id) + 1:
            return found[0]
        tag = tag_of(unique_id)
        return f"B{len(tag)}{tag}"

    return [_UNIQUE_ID.sub(rename, text) for text in texts]


_WARN_OF_OTHER_VERSION = 'i32 2, !"Debug Info Version"'
_OVERRIDE_OTHER_VERSION = 'i32 4, !"Debug Info Version"'
_POINTERS = re.compile(r'^(target datalayout = "e-p:64:64:64-)(?!p3:)', re.MULTILINE)


def compatible_with_cxx(texts: Iterable[str]) -> list[str]:
    """Return the *texts* of LLVM modules as they are linked with those of NVRTC.

    - NVRTC's pointers to shared memory have 32 bits, in numba-cuda's data layout they have 64. Link-time optimisation
      uses the kernel's layout for all code, so that C++ would compute such addresses in pairs of registers.
    - With line information, the two have different rules for merging the flag of the debug information's version, which
      link-time optimisation takes for an error. The version is the same: the flag may be overridden.
    """
    return [
        _POINTERS.sub(r"\1p3:32:32:32-", text).replace(_WARN_OF_OTHER_VERSION, _OVERRIDE_OTHER_VERSION)
        for text in texts
    ]
