# SPDX-License-Identifier: BSD-2-Clause
"""The tables of a cubin: whether they fit together (if not, nvJitLink crashes), its prototypes, and what a kernel uses.

NVIDIA's "CUDA Binary Utilities" describes the sections of a cubin only in part. The names here are those that
``cuobjdump --dump-elf`` and ``readelf`` print.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from numba_cuda_autolink.errors import FormatError
from numba_cuda_autolink.ptx import Parameter, Prototype, read_ptx

from .elf import (
    FUNCTION,
    GLOBAL,
    SHT_REL,
    SHT_RELA,
    SHT_SYMTAB,
    Elf,
    ElfSymbol,
    Section,
    content,
    elf_symbols,
    read_elf,
    string_at,
)

_FIRST_RESERVED_SECTION = 0xFF00
_NV_INFO, _NV_CALLGRAPH, _NV_PROTOTYPE = 0x70000000, 0x70000001, 0x70000002
# In .nv.callgraph the highest numbers are not symbols: one stands for an indirect call, for example.
_NO_SYMBOL = 0xFFFFFF00
# Attributes of .nv.info: EIATTR_REGCOUNT, EIATTR_MIN_STACK_SIZE, which includes the functions that it calls, and
# EIATTR_FRAME_SIZE, which does not.
_REGISTERS, _STACK_SIZE, _FRAME_SIZE = 0x2F, 0x12, 0x11
_UNKNOWN_SIZE = 0xFFFFFFFF  # of the stack of a kernel with recursion
# Those that begin with a symbol: also the maximum stack size.
_ATTRIBUTES_OF_SYMBOLS = frozenset({_REGISTERS, _FRAME_SIZE, _STACK_SIZE, 0x23})
_SIZED = 4  # EIFMT_SVAL: a length and that many bytes; every other format takes four bytes in all
# Sections whose info field is not a section: that of machine code holds a symbol and registers, and so does that of
# the notes on it for sm_100, whose second symbol table is a different one.
_WITHOUT_SECTION = (".text", ".nv.capmerc", ".nv.merc.symtab")
_PARAMETER = re.compile(r"([a-z])(\d*)")
_SIZES = {"v": 0, "i": 4, "l": 8}
# From compute capability 9.0 on, a section of shared memory begins with what the system reserves in each block.
_RESERVED_SHARED = 1024
_PARAMETER_BANK = ".nv.constant0."
_FIRST_OF_16_BYTES = 70  # from sm_70 on, an instruction takes 16 bytes
_NOP = 0x7918  # in its low 16 bits, without a predicate
# Their low half: the offset of a branch is in bytes up to sm_90, or has its low byte apart.
_BRANCHES_TO_THEMSELVES = frozenset({0xFFFFFFF000007947, 0xFFFFFFFC00FC7947})
_OF_CUBIN = "registers", "shared", "stack", "constant_memory", "global_memory", "data"
_RESOURCES = *_OF_CUBIN, "spill_stores", "spill_loads"
_NUMBERED = re.compile(r"^\$__internal_\d+_\$")  # before the name of a function that ptxas itself adds
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_SPILLS_OF = re.compile(rf"Function properties for ([\w$]+)\n.*?{_SPILLS.pattern}")
# Of variables: constants, and global memory with and without initial values.
_WITH_VALUES = ".nv.constant3", ".nv.global.init"
_CONSTANTS, _GLOBALS = (".nv.constant3",), (".nv.global", ".nv.global.init")


def check_tables(code: bytes, file: Elf) -> None:
    """Check the symbols and relocations of a cubin, and the toolkit's notes on them. Raises `FormatError` if one refers
    to something that does not exist."""
    symbols = elf_symbols(code, file)
    if file.sm is None:  # made by a future toolkit, whose tables may differ
        return
    for symbol in symbols:
        if len(file.sections) <= symbol.section < _FIRST_RESERVED_SECTION:
            raise FormatError(
                f"a symbol is in section {symbol.section}, and there are {len(file.sections)}: it is damaged"
            )
    for section in file.sections:
        is_of_section = section.type in (SHT_RELA, SHT_REL) or not section.name.startswith(_WITHOUT_SECTION)
        if section.type != SHT_SYMTAB and is_of_section and section.info >= len(file.sections):
            raise FormatError(f"{section.name} is of section {section.info}, and there are {len(file.sections)}")
        if section.type in (SHT_RELA, SHT_REL):
            _check_relocations(code, section, file.sections[section.info], len(symbols))
        elif section.type == _NV_CALLGRAPH:
            for pair in _pairs(code, section):
                _check_symbols(section, pair, len(symbols))
        elif section.type == _NV_PROTOTYPE and file.symbol_table is not None:
            names = file.sections[file.symbol_table.link].size
            for number, name in _pairs(code, section):
                _check_symbols(section, (number,), len(symbols))
                if name >= names:
                    raise FormatError(f"{section.name} refers to name {name}, and there are {names} bytes of names")
        elif section.type == _NV_INFO and section.name == ".nv.info":
            for attribute, value in attributes(content(code, section)):
                if attribute in _ATTRIBUTES_OF_SYMBOLS and len(value) >= 4:
                    _check_symbols(section, struct.unpack_from("<I", value), len(symbols))


def cubin_prototypes(code: bytes) -> Iterator[tuple[str, bool, Prototype]]:
    """Yield the name of each global function of a cubin that has a prototype, whether it is defined, and the prototype.

    The toolkit notes one as text: ``#illb8`` returns 4 bytes and takes twice 8 bytes and a struct of 8. Raises
    `FormatError` if the cubin is damaged.
    """
    file = read_elf(code)
    symbols = elf_symbols(code, file)
    for section in file.sections:
        if section.type != _NV_PROTOTYPE or file.symbol_table is None:
            continue
        names = content(code, file.sections[file.symbol_table.link])
        for number, at in _pairs(code, section):
            _check_symbols(section, (number,), len(symbols))
            if number >= _NO_SYMBOL:
                continue
            text, symbol = string_at(names, at, "a prototype"), symbols[number]
            if symbol.bind == GLOBAL and text.startswith("#"):
                returns, *parameters = [_parameter(*found) for found in _PARAMETER.findall(text)] or [Parameter(None)]
                prototype = Prototype(None if returns.size == 0 else returns, tuple(parameters))
                yield symbol.name, symbol.is_defined, prototype


def kernels_of(cubin: bytes) -> set[str]:
    """Return the names of the kernels in *cubin*: each has a bank of constants for its parameters. Empty if *cubin*
    cannot be read."""
    with contextlib.suppress(FormatError):
        names = [section.name for section in read_elf(cubin).sections]
        return {name.removeprefix(_PARAMETER_BANK) for name in names if name.startswith(_PARAMETER_BANK)}
    return set()


def _parameter(letter: str, size: str) -> Parameter:
    return Parameter(int(size) if letter == "b" and size else _SIZES.get(letter))


def resources(cubin: bytes, entry_name: str, log: str = "") -> dict[str, Any]:
    """Return what the kernel *entry_name* of *cubin* uses: ``registers`` per thread, static ``shared`` memory per block
    and ``stack`` per thread in bytes, the bytes of variables in ``constant_memory`` and in ``global_memory``, a digest
    of their initial values, ``data``, and the bytes that all functions of its link spill, ``spill_stores`` and
    ``spill_loads``; ``None`` for what cannot be read, and for the stack of a kernel with recursion. *log* is what the
    linker printed; no driver is needed."""
    used: tuple[int | str | None, ...] = (None,) * len(_OF_CUBIN)
    with contextlib.suppress(FormatError):  # cubins are not a documented format: a future one may differ
        used = _resources(cubin, entry_name)
    spills = [sum(map(int, sizes)) for sizes in zip(*_SPILLS.findall(log), strict=True)] or (None, None)
    return dict(zip(_RESOURCES, (*used, *spills), strict=True))


def _resources(cubin: bytes, entry_name: str) -> tuple[int | str | None, ...]:
    file = read_elf(cubin)
    names = [symbol.name for symbol in elf_symbols(cubin, file)]
    info = file.section(".nv.info")
    if info is None or file.sm is None or entry_name not in names:
        raise FormatError("the kernel or what the toolkit notes about it is missing")
    number = struct.pack("<I", names.index(entry_name))
    of_kernel = {
        kind: int.from_bytes(value[4:], "little")
        for kind, value in attributes(content(cubin, info))
        if len(value) == 8 and value.startswith(number)
    }
    shared = file.section(f".nv.shared.{entry_name}")
    reserved = _RESERVED_SHARED if file.sm >= 90 else 0
    size = max(shared.size - reserved, 0) if shared is not None else 0
    stack = of_kernel.get(_STACK_SIZE)
    sizes = {section.name: section.size for section in file.sections}
    values = [content(cubin, section) for section in file.sections if section.name in _WITH_VALUES]
    data = hashlib.sha256(b"".join(values)).hexdigest()
    memory = (sum(sizes.get(name, 0) for name in names) for names in (_CONSTANTS, _GLOBALS))
    return of_kernel.get(_REGISTERS), size, None if stack == _UNKNOWN_SIZE else stack, *memory, data


def spills_of_functions(log: str) -> dict[str, tuple[int, int]]:
    """Return the bytes that each function stores and loads as it spills registers, by name, as the *log* of a link has
    them: of functions that ptxas compiled in it."""
    return {name: (int(stores), int(loads)) for name, stores, loads in _SPILLS_OF.findall(log)}


@dataclasses.dataclass(frozen=True)
class FunctionInCubin:
    """The bytes of instructions of a function, without padding, and their digest; its registers and its stack in
    bytes, ``None`` for one that is within another."""

    size: int
    sha256: str
    registers: int | None = None
    stack: int | None = None


def functions_of(cubin: bytes, entry_name: str) -> dict[str, FunctionInCubin]:
    """Return the code of each function in *cubin* without the functions that the linker placed within it, which it
    names after both: ``$kernel$helper``. Empty if that cannot be read."""
    codes: dict[str, list[bytes]] = {}
    noted = dict[str, dict[int, int]]()
    with contextlib.suppress(FormatError):
        file = read_elf(cubin)
        symbols = elf_symbols(cubin, file)
        functions = [each for each in symbols if each.type == FUNCTION and each.is_defined]
        info = file.section(".nv.info")
        for kind, value in attributes(content(cubin, info)) if info is not None else ():
            if kind in (_REGISTERS, _FRAME_SIZE) and len(value) == 8:
                number, amount = struct.unpack("<II", value)
                noted.setdefault(symbols[number].name, {})[kind] = amount
        for symbol in functions:
            name = _NUMBERED.sub("", symbol.name.removeprefix(f"${entry_name}$"))
            within = sorted((each.offset, each.size) for each in functions if _is_within(each, symbol))
            codes.setdefault(name, []).append(_own_code(cubin, file, symbol, within))
    found = {name: b"".join(sorted(some)) for name, some in codes.items()}
    of_none = dict[int, int]()
    return {
        name: FunctionInCubin(
            len(code),
            hashlib.sha256(code).hexdigest(),
            *(noted.get(name, of_none).get(kind) for kind in (_REGISTERS, _FRAME_SIZE)),
        )
        for name, code in found.items()
    }


def _is_within(inner: ElfSymbol, outer: ElfSymbol) -> bool:
    is_in = outer.offset <= inner.offset and inner.offset + inner.size <= outer.offset + outer.size
    return inner.section == outer.section and is_in and inner.size < outer.size


def _own_code(cubin: bytes, file: Elf, function: ElfSymbol, within: Sequence[tuple[int, int]]) -> bytes:
    """Return the code of *function* without that of the functions *within* it, and without padding, for which ptxas
    puts a branch to itself and ``NOP`` after it."""
    if function.section >= len(file.sections):
        return b""
    section, pieces, at = content(cubin, file.sections[function.section]), list[bytes](), function.offset
    for begin, size in within:
        pieces.append(section[at:begin])
        at = max(at, begin + size)
    code = b"".join((*pieces, section[at : function.offset + function.size]))
    if file.sm is None or file.sm < _FIRST_OF_16_BYTES:
        return code
    lines = (code[at : at + 16] for at in range(0, len(code) // 16 * 16, 16))
    return b"".join(line for line in lines if not _is_padding(line))


def _is_padding(line: bytes) -> bool:
    (low,) = struct.unpack_from("<Q", line)
    return low & 0xFFFF == _NOP or low in _BRANCHES_TO_THEMSELVES


def attributes(info: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and value of each attribute in the content of a ``.nv.info`` section that has a sized value."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _SIZED:
            if at + size > len(info):
                raise FormatError("an attribute in .nv.info does not lie within it: it is damaged")
            yield attribute, info[at : at + size]
            at += size


def _pairs(code: bytes, section: Section) -> Iterator[tuple[int, int]]:
    return struct.iter_unpack("<II", content(code, section)[: section.size // 8 * 8])


def _check_symbols(section: Section, numbers: tuple[int, ...], count: int) -> None:
    for number in numbers:
        if count <= number < _NO_SYMBOL:
            raise FormatError(f"{section.name} refers to symbol {number}, and there are {count}: it is damaged")


def _check_relocations(code: bytes, section: Section, of: Section, count: int) -> None:
    size = 24 if section.type == SHT_RELA else 16
    for at in range(0, section.size - size + 1, size):
        offset, info = struct.unpack_from("<QQ", code, section.offset + at)
        _check_symbols(section, (info >> 32,), count)
        if offset >= of.size:
            raise FormatError(
                f"{section.name} refers to byte {offset} of {of.name}, which has {of.size}: it is damaged"
            )


_PARAMETER_NOTE = 0x17  # EIATTR_KPARAM_INFO: index, ordinal, offset, and the size from bit 18 on
_LARGE_PARAMETER_NOTE = 0x45  # index, ordinal, offset, size
_MAX_THREADS = 0x05  # EIATTR_MAX_THREADS: the launch bounds, in three dimensions
_IN_PTX = re.compile(rb"\.param\s+(?:\.align\s+(\d+)\s+)?\.[a-z](\d+)[^\[,]*(?:\[(\d+)\])?")


def cubin_parameters(cubin: bytes, entry_name: str) -> tuple[tuple[int, int], ...]:
    """Return offset and size in bytes of each parameter of the kernel *entry_name*. Raise `FormatError` if *cubin* does
    not have it, or is damaged."""
    found = {}
    for kind, value in _notes(cubin, entry_name):
        if kind == _PARAMETER_NOTE and len(value) == 12:
            _, ordinal, offset, flags = struct.unpack("<IHHI", value)
            found[ordinal] = offset, flags >> 18
        elif kind == _LARGE_PARAMETER_NOTE and len(value) == 12:
            _, ordinal, offset, size, _ = struct.unpack("<IHHHH", value)
            found[ordinal] = offset, size
    if sorted(found) != list(range(len(found))):
        raise FormatError(f"the notes on the parameters of {entry_name} are not complete")
    return tuple(found[ordinal] for ordinal in range(len(found)))


def launch_bounds(cubin: bytes, entry_name: str) -> int | None:
    """Return the most threads per block that the kernel *entry_name* was compiled for; ``None`` without launch bounds.
    Raise `FormatError` if *cubin* does not have it, or is damaged."""
    for kind, value in _notes(cubin, entry_name):
        if kind == _MAX_THREADS and len(value) == 12:
            x, y, z = struct.unpack("<III", value)
            return int(x * y * z)
    return None


def ptx_parameters(ptx: bytes, entry_name: str) -> tuple[tuple[int, int], ...]:
    """Return offset and size in bytes of each parameter of the kernel *entry_name* of *ptx*. Raise `FormatError` if it
    is not there."""
    name = re.escape(entry_name.encode())
    found = re.search(rb"\.entry\s+" + name + rb"\s*(?:\(([^)]*)\))?\s*[.{]", read_ptx(ptx).text)
    if found is None:
        raise FormatError(f"it has no kernel {entry_name}")
    places, end = [], 0
    for align, bits, count in _IN_PTX.findall(found[1] or b""):
        item = int(bits) // 8
        boundary = int(align or item)
        offset = (end + boundary - 1) // boundary * boundary
        places.append((offset, item * int(count or 1)))
        end = sum(places[-1])
    return tuple(places)


def _notes(cubin: bytes, entry_name: str) -> list[tuple[int, bytes]]:
    file = read_elf(cubin)
    section = file.section(f".nv.info.{entry_name}")
    if section is None:
        raise FormatError(f"it has no notes on a kernel {entry_name}")
    return list(attributes(content(cubin, section)))
