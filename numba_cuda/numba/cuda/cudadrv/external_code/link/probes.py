# SPDX-License-Identifier: BSD-2-Clause
"""Links made only to read LTO-IR, whose symbols are not plain bytes.

A search for definitions ends before code is generated and takes about a millisecond. It fails by design, in the stage
that joins the modules, which leaves the process's later links as they are; a failure of ptxas would not.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Sequence

from ..formats.ptx import ptx_symbols
from ..formats.symbols import Symbols
from ..inputs.kinds import LTO_IR, PTX
from ..inputs.link_input import LinkInput, LinkInputError
from .trial import Linkable, Outcome, TrialError, link_here, link_in_helper, options_for, run_trials

_MULTIPLY_DEFINED = re.compile(r"Linking globals named '([^']+)': symbol multiply defined")
_SYMBOL = re.compile(r"[A-Za-z_$.][\w$.]*", re.ASCII)  # damaged code may have others, which NVVM refuses
_STOP = ("numba_cuda_autolink_stop",)


def multiply_defined(log: str) -> str | None:
    """Return the symbol that a linker's *log* says two LTO-IR inputs define, or ``None``."""
    found = _MULTIPLY_DEFINED.search(log)
    return found[1] if found else None


def duplicate_in_ltoir(modules: Sequence[bytes], arch: str, *, isolated: bool = True) -> str | None:
    """Return a symbol that two of the LTO-IR *modules* define, or ``None``. Unless *isolated*, this process links
    them, so that each must have survived a link."""
    stop = definitions_of(_STOP, arch)  # given twice, it ends a link that would otherwise go on to generate code
    symbol = multiply_defined(_linked([*modules, stop, stop], arch, isolated=isolated).log)
    return None if symbol in _STOP else symbol


def defined_in_ltoir(code: bytes, symbols: Iterable[str], arch: str, *, isolated: bool = True) -> str | None:
    """Return one of *symbols* that an LTO-IR module defines, or ``None``."""
    names = tuple(sorted(symbols))
    return duplicate_in_ltoir((definitions_of(names, arch), code), arch, isolated=isolated) if names else None


def definers_in_ltoir(modules: Sequence[Linkable], symbol: str, arch: str) -> list[int]:
    """Return which of the LTO-IR *modules* define *symbol*, by their indices: each is linked with another definition,
    in one child process. Raises `TrialError` if nothing could be tried."""
    probes = [LinkInput(LTO_IR, definitions_of(names, arch), name="probe") for names in ((symbol,), _STOP, _STOP)]
    trials = [[0, number, 1, 2] for number in range(3, 3 + len(modules))]
    outcomes = run_trials([*probes, *modules], trials, arch)
    return [number for number, outcome in enumerate(outcomes) if multiply_defined(outcome.log) == symbol]


def definitions_of(names: tuple[str, ...], arch: str) -> bytes:
    """Return LTO-IR that defines functions called *names*."""
    return _module(names, arch, is_kernel=False)


def reference_to(names: tuple[str, ...], arch: str) -> LinkInput:
    """Return PTX of a kernel that references functions called *names*: a link with it shows which of them code
    defines."""
    return LinkInput(PTX, _module(names, arch, as_ptx=True), name="probe")


# What LTO-IR is compiled to


def symbols_of_ltoir(code: bytes, candidates: Collection[str], arch: str) -> Symbols | None:
    """Return which functions among *candidates* LTO-IR defines, and what these reference; ``None`` without a link."""
    # In the PTX of a link with a kernel that takes the address of each candidate, those that it defines have a body.
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
    outcome = _linked([_module(names, arch), code], arch, "ptx")
    return outcome.code if outcome.ok else None


def _linked(modules: Sequence[bytes], arch: str, output: str = "cubin", *, isolated: bool = True) -> Outcome:
    """Link LTO-IR *modules*, in a child process if *isolated*."""
    try:
        inputs = [LinkInput(LTO_IR, code, name=f"module {number}") for number, code in enumerate(modules)]
        options = options_for(inputs, arch, ptx=(output == "ptx") or None)
        return (link_in_helper if isolated else link_here)(inputs, options, output)
    except (TrialError, LinkInputError):
        return Outcome(False)


@functools.lru_cache(maxsize=64)
def _module(names: tuple[str, ...], arch: str, *, is_kernel: bool = True, as_ptx: bool = False) -> bytes:
    """Compile, to LTO-IR or PTX, a kernel that stores the addresses of functions called *names*, or else only these
    functions."""
    from llvmlite import ir
    from numba.cuda.cudadrv import nvvm
    from numba.cuda.descriptor import cuda_target

    module = cuda_target.target_context.create_module("probe")
    possible = filter(_SYMBOL.fullmatch, names)
    functions = [ir.Function(module, ir.FunctionType(ir.VoidType(), ()), name) for name in possible]
    if is_kernel:
        address = ir.IntType(8).as_pointer()
        kernel = ir.Function(
            module, ir.FunctionType(ir.VoidType(), [address.as_pointer()]), "numba_cuda_autolink_probe"
        )
        builder = ir.IRBuilder(kernel.append_basic_block())
        for number, function in enumerate(functions):
            place = builder.gep(kernel.args[0], [ir.IntType(32)(number)])
            builder.store(builder.bitcast(function, address), place)
        builder.ret_void()
        nvvm.set_cuda_kernel(kernel)
    else:
        for function in functions:
            ir.IRBuilder(function.append_basic_block()).ret_void()
    options = {} if as_ptx else {"gen-lto": None}
    compiled: bytes = nvvm.compile_ir([str(module)], arch=arch.replace("sm_", "compute_"), **options)
    return compiled
