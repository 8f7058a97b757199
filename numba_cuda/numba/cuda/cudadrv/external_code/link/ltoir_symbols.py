# SPDX-License-Identifier: BSD-2-Clause
"""The symbols of LTO-IR modules, whose names cannot be read: found by a few links of many modules at once.

A link to PTX without optimisation shows which of the requested functions have a body, and what the bodies reference,
but not which module a body comes from. Links of some of the modules follow. Each module takes part in a set of its own
of these links, and all sets have the same size: a function that has a body in exactly the links of one set is that
module's, and one that has a body in more links comes from several modules. The number of links grows with the logarithm
of the number of modules.

A search for definitions alone ends before code is generated and takes about a millisecond. It fails by design, in the
stage that joins the modules, which leaves the process's later links as they are; a failure of ptxas would not.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numba_cuda_autolink.ptx import ptx_references, ptx_symbols

from ..formats.symbols import Symbols
from ..inputs.kinds import LTO_IR, PTX
from ..inputs.link_input import LinkInput, LinkInputError
from .linker_input import Linkable, options_for
from .nvjitlink import Outcome, TrialError, link_here, link_in_helper, multiply_defined, run_trials


def symbols_of_ltoir(modules: Sequence[bytes], candidates: Collection[str], arch: str) -> list[Symbols | None]:
    """Return for each of the LTO-IR *modules* which functions it defines, of the *candidates* and of what the other
    *modules* need, and what these functions reference without the module defining it. ``None`` stands for a module
    that does not link for *arch*."""
    names = tuple(sorted(set(candidates)))
    if not names or not modules:
        return [None] * len(modules)
    if (found := _symbols(modules, names, arch)) is not None:
        return list(found)
    if len(modules) == 1:
        return [None]
    half = len(modules) // 2
    return [each for some in (modules[:half], modules[half:]) for each in symbols_of_ltoir(some, names, arch)]


def _symbols(modules: Sequence[bytes], candidates: tuple[str, ...], arch: str) -> list[Symbols] | None:
    """Return the symbols of *modules*; ``None`` if they do not link with each other."""
    if (whole := _Bodies.of(modules, candidates, arch)) is None:
        return None
    homes = _homes(modules, tuple(sorted({*whole.functions, *candidates})), arch)
    if homes is None:
        return None
    owned: list[set[str]] = [set() for _ in modules]
    for name, indices in homes.items():
        for index in indices:
            owned[index].add(name)
    reached = [whole.reached_from(own, homes) for own in owned]
    requested = defaultdict[str, set[int]](set)  # by function, the modules that need it of others
    for index, names in enumerate(reached):
        for name in names - owned[index]:
            requested[name].add(index)
    return [
        Symbols.of((name for name in own if name in candidates or requested[name]), reached[index] - own)
        for index, own in enumerate(owned)
    ]


@dataclass(frozen=True)
class _Bodies:
    """What has a body in a link, functions and variables, and the names that each body contains; and which of them are
    *functions*."""

    references: dict[str, frozenset[str]]
    functions: frozenset[str]

    @classmethod
    def of(cls, modules: Sequence[bytes], names: tuple[str, ...], arch: str) -> _Bodies | None:
        """Link *modules* with references to *names*; return ``None`` if that fails."""
        ptx = ptx_of_ltoir(modules, names, arch, optimize=False)
        if ptx is None:
            return None
        functions = frozenset(each.name for each in ptx_symbols(ptx) if each.space == "func" and each.is_defined)
        return cls({name: used for name, used in ptx_references(ptx).items() if name not in PROBE_SYMBOLS}, functions)

    def reached_from(self, names: Iterable[str], homes: Collection[str]) -> set[str]:
        """Return what is referenced from the bodies of *names*, and of what these reference, as far as it is visible to
        other modules, being one of *homes*, or has no body. Bodies that others cannot see are passed through."""
        found: set[str] = set()
        left, passed = list(names), set(names)
        while left:
            for name in self.references.get(left.pop(), ()):
                if name in homes or name not in self.references:
                    found.add(name)
                elif name not in passed:
                    passed.add(name)
                    left.append(name)
        return found


def _homes(modules: Sequence[bytes], names: tuple[str, ...], arch: str) -> dict[str, list[int]] | None:
    """Return by index the modules that define each of *names* for others; several do of weak definitions. Names that no
    module defines for others are left out. ``None`` stands for links that fail."""
    links, chosen = _memberships(len(modules))
    seen = defaultdict[str, list[int]](list)
    for link in range(links):
        some = [module for module, members in zip(modules, chosen, strict=True) if link in members]
        if (bodies := _Bodies.of(some, names, arch)) is None:
            return None
        for name in bodies.functions.intersection(names):
            seen[name].append(link)
    indices = {members: [index] for index, members in enumerate(chosen)}
    homes = {name: indices.get(tuple(numbers), []) for name, numbers in seen.items()}
    several = tuple(sorted(name for name, found in homes.items() if not found))
    for index, module in enumerate(modules if several else ()):
        alone = _Bodies.of([module], several, arch)
        for name in alone.functions.intersection(several) if alone is not None else ():
            homes[name].append(index)
    return homes


def _memberships(number: int) -> tuple[int, list[tuple[int, ...]]]:
    """Return a number of links, as small as possible, and for each of *number* modules the links with it: a different
    set for each, all of one size."""
    links = next(links for links in itertools.count(1) if math.comb(links, links // 2) >= number)
    size = max(links // 2, 1)
    return links, list(itertools.islice(itertools.combinations(range(links), size), number))


_SYMBOL = re.compile(r"[A-Za-z_$.][\w$.]*", re.ASCII)  # damaged code may have others, which NVVM refuses
_STOP = ("numba_cuda_autolink_stop",)
_KERNEL, _TABLE = PROBE_SYMBOLS = "numba_cuda_autolink_probe", "numba_cuda_autolink_probed"
_GLOBAL = 1  # NVVM's address space of global memory


def duplicate_in_ltoir(modules: Sequence[bytes], arch: str, *, isolated: bool = True) -> str | None:
    """Return a symbol that two of the LTO-IR *modules* define, or ``None``. Unless *isolated*, this process links
    them, so that each must have survived a link."""
    stop = definitions_of(_STOP, arch)  # given twice, it ends a link that would otherwise go on to generate code
    symbol = multiply_defined(_link([*modules, stop, stop], arch, isolated=isolated).log)
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
    return _module(names, arch, is_kernel=False)


def reference_to(names: tuple[str, ...], arch: str) -> LinkInput:
    """Return PTX of a kernel that references functions called *names*: a link with it shows which of them code
    defines."""
    return LinkInput(PTX, _module(names, arch, as_ptx=True), name="probe")


# What LTO-IR is compiled to


def ptx_of_ltoir(
    modules: Sequence[bytes | Linkable],
    names: tuple[str, ...],
    arch: str,
    *,
    optimize: bool = True,
    isolated: bool = True,
) -> bytes | None:
    """Return the PTX of a link of *modules*, LTO-IR or code with pieces of it, which declares or defines the functions
    *names*; ``None`` if they do not link. Without *optimize*, nothing is inlined or left out of a body, and the link
    takes a tenth of the time. Unless *isolated*, this process links them, so that each must have survived a link."""
    how: dict[str, Any] = {"isolated": isolated} if optimize else {"isolated": isolated, "optimization_level": 0}
    return linked_code([_module(names, arch), *modules], arch, "ptx", **how)


def linked_code(modules: Sequence[bytes | Linkable], arch: str, output: str, **how: Any) -> bytes | None:
    """Return the code of a link of *modules*, LTO-IR if they are bytes; ``None`` if they do not link."""
    outcome = _link(modules, arch, output, **how)
    return outcome.code if outcome.ok else None


def relocatable_cubin(code: Linkable, arch: str) -> bytes | None:
    """Return *code* of machine code or PTX as a relocatable cubin, for *arch*; ``None`` if it does not link."""
    try:
        outcome = link_in_helper([code], (*options_for([code], arch), "-r"))
    except TrialError:
        return None
    return outcome.code if outcome.ok else None


def _link(
    modules: Sequence[bytes | Linkable], arch: str, output: str = "cubin", *, isolated: bool = True, **how: Any
) -> Outcome:
    try:
        inputs = [
            LinkInput(LTO_IR, each, name=f"module {number}") if isinstance(each, bytes) else each
            for number, each in enumerate(modules)
        ]
        options = options_for(inputs, arch, ptx=(output == "ptx") or None, **how)
        return (link_in_helper if isolated else link_here)(inputs, options, output)
    except (TrialError, LinkInputError):
        return Outcome(False)


@functools.lru_cache(maxsize=64)
def _module(names: tuple[str, ...], arch: str, *, is_kernel: bool = True, as_ptx: bool = False) -> bytes:
    """Compile, to LTO-IR or PTX, a kernel with a table of the addresses of functions called *names*, or else only these
    functions."""
    from llvmlite import ir
    from numba.cuda.cudadrv import nvvm
    from numba.cuda.descriptor import cuda_target

    module = cuda_target.target_context.create_module("probe")
    possible = filter(_SYMBOL.fullmatch, names)
    function_type = ir.FunctionType(ir.VoidType(), ())
    functions = [ir.Function(module, function_type, name) for name in possible]
    if is_kernel:
        # In a table: code that stores one address after the other would take most of a link's time.
        addresses = ir.ArrayType(function_type.as_pointer(), len(functions))
        table = ir.GlobalVariable(module, addresses, _TABLE, addrspace=_GLOBAL)
        table.initializer = ir.Constant(addresses, functions)
        parameters = [addresses.as_pointer(_GLOBAL).as_pointer()]
        kernel = ir.Function(module, ir.FunctionType(ir.VoidType(), parameters), _KERNEL)
        builder = ir.IRBuilder(kernel.append_basic_block())
        builder.store(table, kernel.args[0])
        builder.ret_void()
        nvvm.set_cuda_kernel(kernel)
    else:
        for function in functions:
            ir.IRBuilder(function.append_basic_block()).ret_void()
    options = {} if as_ptx else {"gen-lto": None}
    return nvvm.compile_ir([str(module)], arch=arch.replace("sm_", "compute_"), **options)
