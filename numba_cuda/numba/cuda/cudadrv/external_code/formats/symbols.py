# SPDX-License-Identifier: BSD-2-Clause
"""The symbols that code defines and references: of PTX, cubins and what contains these, and of LLVM IR.

LTO-IR cannot be read: see `link.ltoir_symbols`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from numba_cuda_autolink.errors import FormatError
from numba_cuda_autolink.ptx import ptx_symbols

from .containers import read_archive, readable_pieces
from .cubin import kernels_of
from .elf import ELF_MAGIC, FUNCTION, GLOBAL, elf_symbols, read_elf


def symbols_of_ptx(code: bytes) -> Symbols:
    """Return the symbols of PTX. Weak definitions, of which there may be several, are left out. Raises `FormatError` if
    it is damaged."""
    found = list(ptx_symbols(code))
    visible = (symbol for symbol in found if symbol.linkage == "visible" and symbol.is_defined)
    return Symbols.of(
        (symbol.name for symbol in visible if symbol.space != "shared"),
        (symbol.name for symbol in found if symbol.linkage == "extern" and symbol.space != "shared"),
    )


def symbols_of(kind: str, code: bytes) -> Symbols | None:
    """Return the symbols of a piece of code of *kind* (the name of a `Kind`), without weak definitions; ``None`` if it
    cannot be read, as LTO-IR."""
    with contextlib.suppress(FormatError):  # the linker reports what is wrong with it
        if kind == "PTX":
            return symbols_of_ptx(code)
        if kind == "cubin" and (file := read_elf(code)).is_cuda:
            found = [symbol for symbol in elf_symbols(code, file) if symbol.name]
            return Symbols.of(
                (symbol.name for symbol in found if symbol.bind == GLOBAL and symbol.is_defined),
                (symbol.name for symbol in found if not symbol.is_defined),
            )
    return None


def find_defined(kind: str, code: bytes) -> frozenset[str]:
    """Return the symbols that code of *kind* defines for other code, as far as it can be read: none of LTO-IR, nor of
    compressed pieces."""
    return frozenset(name for symbols in _readable(kind, code) for name in symbols.defined)


def find_undefined(kind: str, code: bytes) -> frozenset[str]:
    """Return the symbols that code of *kind* references and does not define, as far as it can be read."""
    readable = list(_readable(kind, code))
    defined = {name for symbols in readable for name in symbols.defined}
    return frozenset(name for symbols in readable for name in symbols.undefined if name not in defined)


def kernels_in(kind: str, code: bytes) -> frozenset[str]:
    found: set[str] = set()
    with contextlib.suppress(FormatError):
        for of_piece, content in readable_pieces(kind, code):
            if of_piece == "cubin":
                found |= kernels_of(content)
            elif of_piece == "PTX":
                found |= {symbol.name for symbol in ptx_symbols(content) if symbol.space == "entry"}
    return frozenset(found)


def _readable(kind: str, code: bytes) -> Iterator[Symbols]:
    found = (symbols_of(*piece) for piece in readable_pieces(kind, code))
    return (symbols for symbols in found if symbols is not None)


def host_functions(kind: str, code: bytes) -> frozenset[str]:
    """Return the functions for the CPU in an object or archive, which include a stub for each function for the GPU."""
    found: set[str] = set()
    with contextlib.suppress(FormatError):
        for _, file in read_archive(code) if kind == "archive" else [("", code)]:
            if file.startswith(ELF_MAGIC):
                symbols = elf_symbols(file, read_elf(file))
                found |= {s.name for s in symbols if s.bind == GLOBAL and s.type == FUNCTION and s.is_defined}
    return frozenset(found)


# The driver or the linker defines these.
_SYSTEM_FUNCTIONS = frozenset({"vprintf", "malloc", "free", "__assertfail"})
_SYSTEM_PREFIXES = (".nv", "__UDT", "__UFT", "__nv_reserved", "__cuda_syscall_")


@dataclass(frozen=True)
class Symbols:
    """The functions and variables that code defines for other code, and those that it references and does not define;
    each sorted."""

    defined: tuple[str, ...]
    undefined: tuple[str, ...]

    @classmethod
    def of(cls, defined: Iterable[str], referenced: Iterable[str]) -> Symbols:
        """Return the record of these; what the driver or the linker defines is left out."""
        own = set(defined)
        undefined = set(referenced) - own - _SYSTEM_FUNCTIONS
        return cls(tuple(sorted(own)), tuple(sorted(n for n in undefined if not n.startswith(_SYSTEM_PREFIXES))))


_LLVM_FUNCTION = re.compile(r'^(declare|define)\b.*?@(?:"([^"]+)"|([\w.$-]+))\s*\(', re.M)
# NVVM defines these, or numba-cuda does when it hands the IR over.
_COMPILER_PREFIXES = ("llvm.", "__nv", "___numba_")


def undefined_functions(modules: Iterable[str]) -> tuple[str, ...]:
    """Return the functions that *modules* (LLVM IR as text), linked with each other, call and do not define; sorted.

    Those that NVVM, numba-cuda, the driver or the linker defines are left out.
    """
    found: dict[str, set[str]] = {"declare": set(), "define": set()}
    for text in modules:
        for how, quoted, plain in _LLVM_FUNCTION.findall(text):
            found[how].add(quoted or plain)
    undefined = Symbols.of(found["define"], found["declare"]).undefined
    return tuple(name for name in undefined if not name.startswith(_COMPILER_PREFIXES))
