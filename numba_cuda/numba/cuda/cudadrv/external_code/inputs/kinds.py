# SPDX-License-Identifier: BSD-2-Clause
"""The kinds of code that can be linked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.linkable_code import LTOIR, Archive, Cubin, CUSource, Fatbin, LinkableCode, Object, PTXSource

from .bitcode import Bitcode


@dataclass(frozen=True)
class Kind:
    """A kind of linkable code; what ``is_compiled`` goes into the link as another kind."""

    name: str
    linkable: type[LinkableCode]
    suffixes: tuple[str, ...]
    object_code: str
    magic: tuple[bytes, ...] = ()
    is_compiled: bool = False

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return _named, (self.name,)  # kinds are compared by identity


CUDA = Kind("CUDA C++ source", CUSource, (".cu",), "", is_compiled=True)
# A file of bitcode may have a wrapper around it.
BITCODE = Kind("LLVM bitcode", Bitcode, (".bc",), "", (b"BC\xc0\xde", b"\xde\xc0\x17\x0b"), is_compiled=True)
PTX = Kind("PTX", PTXSource, (".ptx",), "ptx")
LTO_IR = Kind("LTO-IR", LTOIR, (".ltoir",), "ltoir", (b"\xed\x43\x4e\x7f",))
CUBIN = Kind("cubin", Cubin, (".cubin",), "cubin", (b"\x7fELF",))
FATBIN = Kind("fatbin", Fatbin, (".fatbin",), "fatbin", (b"\x50\xed\x55\xba",))
OBJECT = Kind("object", Object, (".o", ".obj"), "object", (b"\x7fELF",))
ARCHIVE = Kind("archive", Archive, (".a", ".lib"), "library", (b"!<arch>\n",))
KINDS = (CUDA, BITCODE, PTX, LTO_IR, CUBIN, FATBIN, OBJECT, ARCHIVE)


def _named(name: str) -> Kind:
    return next(kind for kind in KINDS if kind.name == name)
