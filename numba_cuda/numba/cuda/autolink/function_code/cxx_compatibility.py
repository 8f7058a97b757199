# SPDX-License-Identifier: BSD-2-Clause
"""What LLVM modules of numba-cuda need to be linked with those of NVRTC without loss."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
