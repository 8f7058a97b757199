# SPDX-License-Identifier: BSD-2-Clause
"""The symbols that code defines and references: of PTX, cubins and what contains these.

LTO-IR cannot be read: see `link.probes`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from .archive import read_archive
from .bounds import FormatError
from .elf import ELF_MAGIC, FUNCTION, GLOBAL, elf_symbols, read_elf
from .llvm_ir import is_system
from .pieces import pieces
from .ptx import ptx_symbols


@dataclass(frozen=True)
class Symbols:
    """The functions and variables that code defines for other code, and those that it references and does not define;
    each sorted."""

    defined: tuple[str, ...]
    undefined: tuple[str, ...]

    @classmethod
    def of(cls, defined: Iterable[str], referenced: Iterable[str]) -> Symbols:
        """Return the record of these; what the system defines is left out."""
        own = set(defined)
        undefined = (name for name in set(referenced) - own if not is_system(name))
        return cls(tuple(sorted(own)), tuple(sorted(undefined)))


def symbols_of_ptx(code: bytes) -> Symbols:
    """Return the symbols of PTX. Weak definitions, of which there may be several, are left out. Raises `FormatError` if
    it is damaged."""
    found = list(ptx_symbols(code))
    return Symbols.of(
        (
            symbol.name
            for symbol in found
            if symbol.linkage == "visible" and symbol.is_defined and symbol.space != "shared"
        ),
        (symbol.name for symbol in found if symbol.linkage == "extern"),
    )


def symbols_of_cubin(code: bytes) -> Symbols:
    """Return the symbols of a cubin. Weak definitions, of which there may be several, are left out. Raises
    `FormatError` if it is damaged or not a cubin."""
    file = read_elf(code)
    if not file.is_cuda:
        raise FormatError("it is an ELF file for a CPU")
    found = [symbol for symbol in elf_symbols(code, file) if symbol.name]
    return Symbols.of(
        (symbol.name for symbol in found if symbol.bind == GLOBAL and symbol.is_defined),
        (symbol.name for symbol in found if not symbol.is_defined),
    )


_READERS = {"PTX": symbols_of_ptx, "cubin": symbols_of_cubin}


def symbols_of(kind: str, code: bytes) -> Symbols | None:
    """Return the symbols of a single piece of code of *kind* (the name of a `Kind`), ``None`` if it cannot be read."""
    reader = _READERS.get(kind)
    if reader is not None:
        with contextlib.suppress(FormatError):  # the linker reports what is wrong with it
            return reader(code)
    return None


def defined_in(kind: str, code: bytes) -> frozenset[str]:
    """Return the symbols that code of *kind* defines for other code, as far as it can be read: none of LTO-IR, nor of
    compressed pieces."""
    found: set[str] = set()
    with contextlib.suppress(FormatError):
        for piece in pieces(kind, code):
            if piece.code is not None and (symbols := symbols_of(piece.kind, piece.code)) is not None:
                found |= set(symbols.defined)
    return frozenset(found)


def host_functions(kind: str, code: bytes) -> frozenset[str]:
    """Return the functions for the CPU in an object or archive, which include a stub for each function for the GPU."""
    files = []
    found: set[str] = set()
    with contextlib.suppress(FormatError):
        if kind == "object":
            files = [code]
        elif kind == "archive":
            files = [member for _, member in read_archive(code)]
        for file in files:
            if file.startswith(ELF_MAGIC):
                symbols = elf_symbols(file, read_elf(file))
                found |= {s.name for s in symbols if s.bind == GLOBAL and s.type == FUNCTION and s.is_defined}
    return frozenset(found)
