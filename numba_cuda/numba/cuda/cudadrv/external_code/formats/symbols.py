# SPDX-License-Identifier: BSD-2-Clause
"""Symbols that a piece of code defines and wants, for reports. What has to be linked to be read costs milliseconds."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cuda.core import Linker, LinkerOptions, ObjectCode

from . import defined_symbols as link_symbols

_PTX_FUNCTION = re.compile(
    r"^\s*((?:\.\w+\s+)*)\.func\s+(?:\([^)]*\)\s*)?([\w$]+)\s*(?:\([^)]*\))?([^;{]*)([;{])", re.M
)
_PTX_WANTED = re.compile(
    r"^\s*\.extern\s+(?:\.func\s+(?:\([^)]*\)\s*)?|\.(?:global|const|shared)\s+(?:\.\w+(?:\s+\d+)?\s+)*)([\w$]+)", re.M
)
_LLVM = re.compile(r'^(declare|define)\b.*?@(?:"([^"]+)"|([\w.$-]+))\s*\(', re.M)
# What every program on a GPU can call: nothing that is linked has to define it.
_SYSTEM = frozenset({"vprintf", "malloc", "free", "__assertfail"})
_OF_THE_SYSTEM = (".nv", "__UDT", "__UFT", "__nv_reserved", "__cuda_syscall_")


@dataclass(frozen=True)
class Symbols:
    """The functions and variables that code defines for others to see, and those that it wants of others.

    LTO-IR cannot be read: of what it defines, only names that somebody is known to want are found.
    """

    defined: tuple[str, ...]
    wanted: tuple[str, ...]


def in_ptx(code: bytes) -> Symbols:
    """The symbols of PTX."""
    text = code.decode("utf-8", "replace")
    return _symbols(link_symbols.in_ptx(code), _PTX_WANTED.findall(text))


def in_elf(code: bytes) -> Symbols | None:
    """The symbols of a cubin; None for a file that is no readable ELF for a GPU."""
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(code))
        table = elf.get_section_by_name(".symtab")
        if elf["e_machine"] != "EM_CUDA" or table is None:
            return None
        undefined = [
            symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name
        ]
    except Exception:  # a damaged file fails in any way
        return None
    return _symbols(link_symbols.in_cubin(code), undefined)


def in_llvm(texts: Iterable[str]) -> Symbols:
    """The functions of LLVM modules that are linked with each other."""
    found: dict[str, set[str]] = {"declare": set(), "define": set()}
    for text in texts:
        for how, quoted, plain in _LLVM.findall(text):
            found[how].add(quoted or plain)
    wanted = {name for name in found["declare"] - found["define"] if not name.startswith(("llvm.", "__nv"))}
    return _symbols((), wanted)


def in_ltoir(code: bytes, candidates: Iterable[str], arch: str) -> Symbols | None:
    """Which of the functions *candidates* LTO-IR defines, and what it wants for them; None if it does not link.

    It is linked to PTX with a kernel that takes the address of each candidate: those that are defined have a body then.
    """
    names = tuple(sorted(set(candidates)))
    first = ptx_with(code, names, arch) if names else None
    if first is None:
        return None
    bodies = {name for _, name, _, end in _PTX_FUNCTION.findall(first) if end == "{"}
    defined = tuple(name for name in names if name in bodies)
    second = ptx_with(code, defined, arch) if defined else None
    return _symbols(defined, _PTX_WANTED.findall(second) if second else ())


def _symbols(defined: Iterable[str], wanted: Iterable[str]) -> Symbols:
    of_others = (name for name in set(wanted) - set(defined) - _SYSTEM if not name.startswith(_OF_THE_SYSTEM))
    return Symbols(tuple(sorted(set(defined))), tuple(sorted(of_others)))


def ptx_with(code: bytes, names: tuple[str, ...], arch: str) -> str | None:
    """The PTX of LTO-IR, with the functions *names* in it as they are declared or defined; None if it does not link."""
    linker: Any = None
    try:
        codes = [
            ObjectCode.from_ltoir(each, name=name) for name, each in (("user", _user(names, arch)), ("code", code))
        ]
        linker = Linker(*codes, options=LinkerOptions(arch=arch, link_time_optimization=True, ptx=True))
        return bytes(linker.link("ptx").code).decode("utf-8", "replace")
    except Exception:  # refused for what the real link will say
        return None
    finally:
        if linker is not None:
            linker.close()


@functools.lru_cache(maxsize=64)
def _user(names: tuple[str, ...], arch: str) -> bytes:
    """LTO-IR of a kernel that takes the addresses of *names*."""
    from llvmlite import ir
    from numba.cuda.cudadrv import nvvm
    from numba.cuda.descriptor import cuda_target

    module = cuda_target.target_context.create_module("user")
    pointer = ir.IntType(8).as_pointer()
    kernel = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer.as_pointer()]), "user_of_all_symbols")
    builder = ir.IRBuilder(kernel.append_basic_block())
    for number, name in enumerate(names):
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), ()), name)
        place = builder.gep(kernel.args[0], [ir.IntType(32)(number)])
        builder.store(builder.bitcast(function, pointer), place)
    builder.ret_void()
    nvvm.set_cuda_kernel(kernel)
    compiled: bytes = nvvm.compile_ir([str(module)], arch=arch.replace("sm_", "compute_"), **{"gen-lto": None})
    return compiled
