# SPDX-License-Identifier: BSD-2-Clause
"""Symbols that link inputs define, read from PTX and cubins, and probed for in LTO-IR."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable

from cuda.core import Linker, LinkerOptions, ObjectCode

_PTX_FUNCTION = re.compile(r"^\s*\.visible\s+\.(?:func|entry)\s+(?:\([^)]*\)\s*)?([\w$]+)", re.MULTILINE)
_PTX_VARIABLE = re.compile(r"^\s*\.visible\s+\.(?:global|const)\s+(?:\.\w+(?:\s+\d+)?\s+)*([\w$]+)", re.MULTILINE)
_MULTIPLY_DEFINED = re.compile(r"Linking globals named '([^']+)': symbol multiply defined")


def in_ptx(code: bytes) -> frozenset[str]:
    """The functions and variables that PTX defines for others to see; weak ones, which may meet, are left out."""
    text = code.decode("utf-8", "replace")
    return frozenset(_PTX_FUNCTION.findall(text)) | frozenset(_PTX_VARIABLE.findall(text))


def in_cubin(code: bytes) -> frozenset[str]:
    """The functions and variables that a cubin defines for others to see; empty for a file that is no readable ELF."""
    from elftools.elf.elffile import ELFFile

    try:
        table = ELFFile(io.BytesIO(code)).get_section_by_name(".symtab")
        symbols = list(table.iter_symbols()) if table is not None else []
    except Exception:  # a damaged file fails in any way; the linker says what is wrong with it
        return frozenset()
    return frozenset(
        symbol.name
        for symbol in symbols
        if symbol["st_info"]["bind"] == "STB_GLOBAL" and symbol["st_shndx"] != "SHN_UNDEF" and symbol.name
    )


def multiply_defined(log: str) -> str | None:
    """The symbol that a linker's *log* says two LTO-IR inputs define."""
    found = _MULTIPLY_DEFINED.search(log)
    return found[1] if found else None


def clash(one: bytes, other: bytes, arch: str) -> str | None:
    """A symbol that two LTO-IR modules both define, or None. They are linked with each other to find out."""
    codes = [ObjectCode.from_ltoir(code, name=name) for code, name in ((one, "one"), (other, "other"))]
    try:
        linker = Linker(*codes, options=LinkerOptions(arch=arch, link_time_optimization=True))
        linker.link("cubin")
    except Exception as error:
        return multiply_defined(str(error))
    return None


def defined_in_ltoir(code: bytes, symbols: Iterable[str], arch: str) -> str | None:
    """One of *symbols* that an LTO-IR module defines, or None."""
    names = sorted(symbols)
    return clash(code, _defining(names, arch), arch) if names else None


def _defining(symbols: Iterable[str], arch: str) -> bytes:
    """An LTO-IR module that defines *symbols*."""
    from llvmlite import ir
    from numba.cuda.cudadrv import nvvm
    from numba.cuda.descriptor import cuda_target

    module = cuda_target.target_context.create_module("symbols")
    for symbol in symbols:
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), ()), symbol)
        ir.IRBuilder(function.append_basic_block()).ret_void()
    compiled: bytes = nvvm.compile_ir([str(module)], arch=arch.replace("sm_", "compute_"), **{"gen-lto": None})
    return compiled
