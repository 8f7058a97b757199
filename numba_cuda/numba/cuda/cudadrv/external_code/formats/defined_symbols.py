# SPDX-License-Identifier: BSD-2-Clause
"""Symbols that link inputs define: read from PTX, cubins and containers of these, and probed for in LTO-IR."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable

from cuda.core import Linker, LinkerOptions, ObjectCode

from . import containers as link_formats

_PTX_FUNCTION = re.compile(r"^\s*\.visible\s+\.(?:func|entry)\s+(?:\([^)]*\)\s*)?([\w$]+)", re.MULTILINE)
_PTX_VARIABLE = re.compile(r"^\s*\.visible\s+\.(?:global|const)\s+(?:\.\w+(?:\s+\d+)?\s+)*([\w$]+)", re.MULTILINE)
_MULTIPLY_DEFINED = re.compile(r"Linking globals named '([^']+)': symbol multiply defined")
_UNDEFINED = re.compile(r"Undefined reference to '([^']+)'")
_TWICE = re.compile(r"Multiple definition of '([^']+)'")
_GLOBAL = 1
_FUNCTION = 2


def in_ptx(code: bytes) -> frozenset[str]:
    """The functions and variables that PTX defines for others to see; weak ones, which may meet, are left out."""
    text = code.decode("utf-8", "replace")
    return frozenset(_PTX_FUNCTION.findall(text)) | frozenset(_PTX_VARIABLE.findall(text))


def in_cubin(code: bytes) -> frozenset[str]:
    """The functions and variables that a cubin defines for others to see; empty for a file that is no readable ELF."""
    try:
        symbols = link_formats.elf_symbols(code, link_formats.elf(code))
    except link_formats.FormatError:  # the linker says what is wrong with it
        return frozenset()
    return frozenset(s.name for s in symbols if s.bind == _GLOBAL and s.is_defined and s.name)


def in_code(kind: str, code: bytes) -> frozenset[str]:
    """What code of *kind* (the name of a `Kind`) defines for others to see, as far as it can be read: nothing of LTO-IR
    and of what is compressed."""
    found: set[str] = set()
    with contextlib.suppress(link_formats.FormatError):
        for piece in link_formats.pieces(kind, code):
            if piece.code is not None and piece.kind == "PTX":
                found |= in_ptx(piece.code)
            elif piece.code is not None and piece.kind == "cubin":
                found |= in_cubin(piece.code)
    return frozenset(found)


def is_compressed(kind: str, code: bytes) -> bool:
    """Whether there is code in it that cannot be read."""
    try:
        return any(piece.code is None for piece in link_formats.pieces(kind, code))
    except link_formats.FormatError:
        return False


def of_host(kind: str, code: bytes) -> frozenset[str]:
    """The functions of the host's part of an object or an archive: among them are stand-ins for those of the GPU's."""
    files = []
    found: set[str] = set()
    with contextlib.suppress(link_formats.FormatError):
        if kind == "object":
            files = [code]
        elif kind == "archive":
            files = [member for _, member in link_formats.archive(code)]
        for file in files:
            if file.startswith(link_formats.ELF_MAGIC):
                symbols = link_formats.elf_symbols(file, link_formats.elf(file))
                found |= {s.name for s in symbols if s.bind == _GLOBAL and s.type == _FUNCTION and s.is_defined}
    return frozenset(found)


def multiply_defined(log: str) -> str | None:
    """The symbol that a linker's *log* says two LTO-IR inputs define."""
    found = _MULTIPLY_DEFINED.search(log)
    return found[1] if found else None


def clash(one: bytes, other: bytes, arch: str) -> str | None:
    """A symbol that two LTO-IR modules both define, or None. They are linked with each other to find out."""
    codes = [ObjectCode.from_ltoir(code, name=name) for code, name in ((one, "one"), (other, "other"))]
    return multiply_defined(_log_of_link(codes, arch))


def defined_in_ltoir(code: bytes, symbols: Iterable[str], arch: str) -> str | None:
    """One of *symbols* that an LTO-IR module defines, or None."""
    names = sorted(symbols)
    return clash(code, _module(names, arch, define=True), arch) if names else None


def reports_of(log: str) -> tuple[frozenset[str], frozenset[str]]:
    """The symbols that a linker's *log* says are undefined, and those that it says are defined more than once."""
    return frozenset(_UNDEFINED.findall(log)), frozenset(_TWICE.findall(log))


def calling(symbols: Iterable[str], arch: str) -> bytes:
    """PTX of a kernel that calls *symbols*: linked with code, it tells which of them the code defines."""
    return _module(symbols, arch, define=False)


def _log_of_link(codes: list[ObjectCode], arch: str) -> str:
    """What is said about a link of *codes*; empty if it succeeds."""
    linker = None
    try:
        linker = Linker(*codes, options=LinkerOptions(arch=arch, link_time_optimization=True))
        linker.link("cubin")
    except Exception as error:
        return str(error)
    finally:
        if linker is not None:
            linker.close()
    return ""


def _module(symbols: Iterable[str], arch: str, *, define: bool) -> bytes:
    """LTO-IR that defines *symbols*, or PTX of a kernel that calls them."""
    from llvmlite import ir
    from numba.cuda.cudadrv import nvvm
    from numba.cuda.descriptor import cuda_target

    module = cuda_target.target_context.create_module("symbols")
    nothing = ir.FunctionType(ir.VoidType(), ())
    functions = [ir.Function(module, nothing, symbol) for symbol in symbols]
    if define:
        for function in functions:
            ir.IRBuilder(function.append_basic_block()).ret_void()
    else:
        kernel = ir.Function(module, nothing, "numba_cuda_autolink_probe")
        builder = ir.IRBuilder(kernel.append_basic_block())
        for function in functions:
            builder.call(function, ())
        builder.ret_void()
        nvvm.set_cuda_kernel(kernel)
    options = {"gen-lto": None} if define else {}
    compiled: bytes = nvvm.compile_ir([str(module)], arch=arch.replace("sm_", "compute_"), **options)
    return compiled
