# SPDX-License-Identifier: BSD-2-Clause
"""Symbol sites: which calls reference a symbol, and with which prototype."""

from __future__ import annotations

import re
from typing import NamedTuple

_POINTER = re.compile(r"[%\w.\"]+\*+")


class SymbolSite(NamedTuple):
    """A call that references a symbol: its LLVM prototype, and the call in words, for messages."""

    prototype: str
    call: str

    @property
    def untyped(self) -> str:
        """The prototype without what its pointers point to, in which calls of one function may differ."""
        return _POINTER.sub("i8*", self.prototype)
