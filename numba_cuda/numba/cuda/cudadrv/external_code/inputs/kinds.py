# SPDX-License-Identifier: BSD-2-Clause
"""The kinds of code that can be linked, and the class of LLVM bitcode, which numba-cuda lacks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.linkable_code import LTOIR, Archive, Cubin, CUSource, Fatbin, LinkableCode, Object, PTXSource


class Bitcode(LinkableCode):
    """LLVM bitcode, the form of libdevice and of NVSHMEM's device library: the content of a ``.bc`` file.

    NVVM compiles it to LTO-IR, or to PTX if the kernel is linked without LTO. NVVM reads the bitcode of LLVM 7 for
    architectures before Blackwell, and for later ones that of the LLVM that it is built on. Other bitcode is compiled
    to PTX by llvmlite's LLVM, and is not inlined into the kernel. Either happens once on a machine.

    Parameters
    ----------
    data : bytes
        The bitcode. Its functions keep their names and their linkage.
    name : str, optional
        Its name in messages.
    setup_callback, teardown_callback : callable, optional
        Called with the loaded module, and before it is unloaded.

    Raises
    ------
    TypeError
        If *data* is text or not a buffer.
    """

    kind = "bc"
    default_name = "<unnamed-bitcode>"

    def __init__(
        self,
        data: Any,
        name: str | None = None,
        setup_callback: Callable[[Any], object] | None = None,
        teardown_callback: Callable[[Any], object] | None = None,
    ):
        try:
            code = bytes(memoryview(data))
        except TypeError:
            path = data if isinstance(data, (str, os.PathLike)) else "kernels.bc"
            raise TypeError(
                f"Bitcode takes the bytes of a .bc file, got {type(data).__name__}\n"
                f"  what to do: read the file, Bitcode(pathlib.Path({str(path)!r}).read_bytes());"
                " link= and hooks take its path, too"
            ) from None
        others = {"setup_callback": setup_callback, "teardown_callback": teardown_callback}
        # The simulator's base class takes no other arguments.
        super().__init__(code, name, **{key: value for key, value in others.items() if value})


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
