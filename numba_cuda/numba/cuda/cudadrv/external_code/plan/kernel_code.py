# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's own side of a link: its code, its entry, and the symbols that it references and does not define."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..inputs.c_prototypes import CalledFunction, CPrototype, prototype_of_llvm
from ..inputs.link_input import LinkInput

_POINTER = re.compile(r"[%\w.\"]+\*+")


class SymbolSite(NamedTuple):
    """A call that references a symbol."""

    prototype: str  # its LLVM prototype
    call: str  # which call it is, for messages
    c_prototype: CPrototype | None = None  # the types that C sees; ``None`` if only LLVM's are known
    asked: tuple[str, ...] = ()  # the calls of objects that it is, as the origins of link inputs

    @property
    def untyped(self) -> str:
        """The prototype without the types that its pointers point to, in which calls of one function may differ."""
        return _POINTER.sub("i8*", self.prototype)

    def called(self, symbol: str) -> CalledFunction:
        return CalledFunction(symbol, self.c_prototype or prototype_of_llvm(self.prototype), self.call)


@dataclass(frozen=True)
class LLVMModules:
    """LLVM IR of a kernel, called *name*: its *texts*, callers before callees, which NVVM compiles to LTO-IR with
    *options*, sorted by name."""

    texts: tuple[str, ...] = field(repr=False)
    options: tuple[tuple[str, Any], ...]
    name: str


@dataclass(frozen=True)
class KernelCode:
    """A kernel's own code (*inputs*): LLVM IR, LTO-IR or PTX; the kernel's name in it (*entry*), the functions that it
    calls and does not define (*undefined*), for those of them that calls in Python reference the *sites* of these
    calls, each with another prototype, and *options* of its link besides those of the target, of
    `cuda.core.LinkerOptions`."""

    inputs: tuple[LinkInput | LLVMModules, ...]
    entry: str = ""
    undefined: tuple[str, ...] = ()
    sites: Mapping[str, tuple[SymbolSite, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def referenced_by(self, symbol: str) -> str:
        return self.sites[symbol][0].call if symbol in self.sites else "linked code, not by a call in Python"
