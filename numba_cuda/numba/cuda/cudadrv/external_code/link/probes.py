# SPDX-License-Identifier: BSD-2-Clause
"""Links made only to read LTO-IR, whose symbols are not plain bytes, and what the linker's logs report of symbols.

A search for definitions ends before code is generated and takes about a millisecond. It fails by design, in the stage
that joins the modules, which leaves the process's later links as they are; a failure of ptxas would not.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from cuda.core import Linker, LinkerOptions, ObjectCode

from ..formats.ptx import ptx_symbols
from ..formats.symbols import Symbols
from ..inputs.kinds import LTO_IR
from .trial import TrialError, link_in_helper, options_for

_MULTIPLY_DEFINED = re.compile(r"Linking globals named '([^']+)': symbol multiply defined")
_UNDEFINED = re.compile(r"Undefined reference to '([^']+)'")
_TWICE = re.compile(r"Multiple definition of '([^']+)'")
_STOP = ("numba_cuda_autolink_stop",)


# What logs report


def multiply_defined(log: str) -> str | None:
    """Return the symbol that a linker's *log* says two LTO-IR inputs define, or ``None``."""
    found = _MULTIPLY_DEFINED.search(log)
    return found[1] if found else None


def undefined_in_log(log: str) -> frozenset[str]:
    """Return the symbols that a linker's *log* says are undefined in machine code."""
    return frozenset(_UNDEFINED.findall(log))


def duplicates_in_log(log: str) -> frozenset[str]:
    """Return the symbols that a linker's *log* says are defined several times in machine code."""
    return frozenset(_TWICE.findall(log))


# Which symbols LTO-IR defines


def duplicate_in_ltoir(modules: Sequence[bytes], arch: str, *, isolated: bool = True) -> str | None:
    """Return a symbol that two of the LTO-IR *modules* define, or ``None``. Unless *isolated*, this process links
    them, so that each must have survived a link."""
    stop = definitions_of(_STOP, arch)  # given twice, it ends a link that would otherwise go on to generate code
    log = (_tried if isolated else _linked)([*modules, stop, stop], arch)[1]
    symbol = multiply_defined(log)
    return None if symbol in _STOP else symbol


def defined_in_ltoir(code: bytes, symbols: Iterable[str], arch: str, *, isolated: bool = True) -> str | None:
    """Return one of *symbols* that an LTO-IR module defines, or ``None``."""
    names = tuple(sorted(symbols))
    return duplicate_in_ltoir((definitions_of(names, arch), code), arch, isolated=isolated) if names else None


def definitions_of(names: tuple[str, ...], arch: str) -> bytes:
    """Return LTO-IR that defines functions called *names*."""
    return _module(names, arch, "definitions")


def caller_of(names: tuple[str, ...], arch: str) -> bytes:
    """Return PTX of a kernel that calls functions called *names*: a link with it shows which of them code defines."""
    return _module(names, arch, "calls")


# What LTO-IR is compiled to


def symbols_of_ltoir(code: bytes, candidates: Collection[str], arch: str) -> Symbols | None:
    """Return which functions among *candidates* LTO-IR defines, and what these reference; ``None`` if it does not link.

    It is linked to PTX with a kernel that takes the address of each candidate, in which those that it defines have a
    body.
    """
    names = tuple(sorted(set(candidates)))
    first = ptx_of_ltoir(code, names, arch) if names else None
    if first is None:
        return None
    bodies = {symbol.name for symbol in ptx_symbols(first) if symbol.is_defined and symbol.space == "func"}
    defined = tuple(name for name in names if name in bodies)
    second = ptx_of_ltoir(code, defined, arch) if defined else None
    referenced = [symbol.name for symbol in ptx_symbols(second or b"") if symbol.linkage == "extern"]
    return Symbols.of(defined, referenced)


def ptx_of_ltoir(code: bytes, names: tuple[str, ...], arch: str) -> bytes | None:
    """Return the PTX of LTO-IR, which declares or defines the functions *names*; ``None`` if it does not link."""
    return _tried([_module(names, arch, "addresses"), code], arch, "ptx")[0]


def _tried(modules: Sequence[bytes], arch: str, output: str = "cubin") -> tuple[bytes | None, str]:
    """Link LTO-IR *modules* in a child process: return the result, ``None`` if there is none, and the linker's log."""
    inputs = [(LTO_IR, code, f"module {number}") for number, code in enumerate(modules)]
    options = [*options_for(arch, [LTO_IR]), *(["-ptx"] if output == "ptx" else [])]
    try:
        outcome = link_in_helper(inputs, options, output)
    except TrialError:
        return None, ""
    return (outcome.code if outcome.ok else None), outcome.log


def _linked(modules: Sequence[bytes], arch: str) -> tuple[bytes | None, str]:
    """Do the same in this process."""
    linker: Any = None
    try:
        codes = [ObjectCode.from_ltoir(code, name=f"module {number}") for number, code in enumerate(modules)]
        linker = Linker(*codes, options=LinkerOptions(arch=arch, link_time_optimization=True))
        return bytes(linker.link("cubin").code), ""
    except Exception as error:  # of several types, in the linker's own words
        return None, str(error)
    finally:
        if linker is not None:
            linker.close()


@functools.lru_cache(maxsize=64)
def _module(names: tuple[str, ...], arch: str, content: str) -> bytes:
    """Compile a module that defines functions called *names* (``"definitions"``, to LTO-IR), or whose kernel stores
    their ``"addresses"`` (to LTO-IR) or ``"calls"`` them (to PTX)."""
    from llvmlite import ir
    from numba.cuda.cudadrv import nvvm
    from numba.cuda.descriptor import cuda_target

    module = cuda_target.target_context.create_module("probe")
    nothing = ir.FunctionType(ir.VoidType(), ())
    functions = [ir.Function(module, nothing, name) for name in names]
    if content == "definitions":
        for function in functions:
            ir.IRBuilder(function.append_basic_block()).ret_void()
    else:
        _add_kernel(module, functions, _USES[content])
    options = {} if content == "calls" else {"gen-lto": None}
    compiled: bytes = nvvm.compile_ir([str(module)], arch=arch.replace("sm_", "compute_"), **options)
    return compiled


def _add_kernel(module: Any, functions: Sequence[Any], use: Callable[..., None]) -> None:
    from llvmlite import ir
    from numba.cuda.cudadrv import nvvm

    pointers = ir.IntType(8).as_pointer().as_pointer()
    kernel = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointers]), "numba_cuda_autolink_probe")
    builder = ir.IRBuilder(kernel.append_basic_block())
    for number, function in enumerate(functions):
        use(builder, function, number)
    builder.ret_void()
    nvvm.set_cuda_kernel(kernel)


def _call(builder: Any, function: Any, number: int) -> None:
    builder.call(function, ())


def _store_address(builder: Any, function: Any, number: int) -> None:
    from llvmlite import ir

    place = builder.gep(builder.function.args[0], [ir.IntType(32)(number)])
    builder.store(builder.bitcast(function, place.type.pointee), place)


_USES = {"calls": _call, "addresses": _store_address}
