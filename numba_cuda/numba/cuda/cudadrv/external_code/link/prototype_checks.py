# SPDX-License-Identifier: BSD-2-Clause
"""Whether the parameters of a function, where PTX or machine code shows them, are those that its callers pass.

nvJitLink links them in any case: the callee then reads what nobody wrote.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from numba_cuda_autolink.errors import FormatError
from numba_cuda_autolink.ptx import Parameter, Prototype, ptx_symbols

from ..formats import mangled_names
from ..formats.containers import readable_pieces
from ..formats.cubin import cubin_prototypes
from ..inputs.c_prototypes import CPrototype, CType
from ..plan.errors import link_error
from ..plan.link_plan import NAMED_EXPLICITLY
from .linker_input import LinkJob, Part, list_origins

Prototypes: TypeAlias = dict[str, Prototype]  # by symbol


@dataclass
class Interface:
    """The functions that a *part* defines for other code, those that it declares only, and the variables that programs
    may look up by name: ``None`` if these were not looked for. There are more functions unless it *is_whole*."""

    part: Part
    defined: Prototypes
    declared: Prototypes
    variables: tuple[str, ...] | None = None
    is_whole: bool = True


def check_signatures(job: LinkJob, interfaces: Sequence[Interface]) -> None:
    """Compare the prototype of each function that a part defines with those that its callers use. Raises `LinkError` if
    two cannot be the same function's."""
    called = {name: prototype_of_call(sites[0].called(name).prototype) for name, sites in job.kernel_code.sites.items()}
    for interface in interfaces:
        part = interface.part
        of_calls = part.planned is not None and part.planned.origins != (NAMED_EXPLICITLY,)
        for symbol, own in interface.defined.items():
            calls = [(called, job.kernel_code.referenced_by(symbol))] if of_calls else []
            for prototypes, caller in (*calls, *((other.declared, other.part.origin) for other in interfaces)):
                if symbol in prototypes and differ(prototypes[symbol], own):
                    raise link_error(
                        job.plan,
                        f"{mangled_names.readable(symbol)!r} is called with the wrong signature",
                        *mangled_names.mangled_lines(symbol),
                        f"defined by: {part.origin}",
                        f"got: a caller whose {symbol!r} {prototypes[symbol]}: {caller}",
                        f"expected: the function {own}",
                        "what to do: make the function's parameters those of the call, or the other way round"
                        " (Extern's args and returns, or declare_device's signature, whose functions return a status"
                        " and take a pointer to the result)",
                    )


def check_no_kernel_is_called(job: LinkJob, *kernels: Collection[str]) -> None:
    """Raise `LinkError` if a call in Python calls one of the *kernels*, whose parameters are elsewhere. nvJitLink links
    it, or crashes."""
    names = set().union(*kernels)
    for symbol in job.kernel_code.sites:
        if symbol in names:
            raise link_error(
                job.plan,
                f"{symbol!r} is called as a function, but it is a kernel",
                f"called: {job.kernel_code.referenced_by(symbol)}",
                f"linked: {list_origins(job.parts)}",
                f"what to do: declare {symbol!r} as __device__, not as __global__ (in PTX: .func, not .entry)",
            )


def prototypes_of(kind: str, code: bytes) -> tuple[Prototypes, Prototypes]:
    """Return the prototypes of the functions that code of *kind* (the name of a `Kind`) defines for other code, and of
    those that it declares only: as far as they can be read, so none of LTO-IR, nor of compressed pieces."""
    defined: Prototypes = {}
    declared: Prototypes = {}
    with contextlib.suppress(FormatError):  # the linker reports what is wrong with it
        for of_piece, content in readable_pieces(kind, code):
            if of_piece == "PTX":
                found = {"visible": defined, "extern": declared}
                for symbol in ptx_symbols(content):
                    if symbol.prototype is not None and symbol.linkage in found:
                        found[symbol.linkage][symbol.name] = symbol.prototype
            elif of_piece == "cubin":
                for name, is_defined, prototype in cubin_prototypes(content):
                    (defined if is_defined else declared)[name] = prototype
    return defined, declared


def differ(one: Prototype, other: Prototype) -> bool:
    """Return whether the two cannot be the same function: by sizes, those that are known."""
    if len(one.parameters) != len(other.parameters):
        return True
    pairs = [(one.returns, other.returns), *zip(one.parameters, other.parameters, strict=True)]
    sizes = [[0 if parameter is None else parameter.size for parameter in pair] for pair in pairs]
    aligned = [[None if parameter is None else parameter.align for parameter in pair] for pair in pairs]
    return any(None not in pair and pair[0] != pair[1] for pair in (*sizes, *aligned))


def prototype_of_call(called: CPrototype) -> Prototype:
    """Return the parameters that a call in Python with these types passes: with the sizes of structs, where the types
    that C sees are known."""
    returns = None if called.returns.kind == "void" else _parameter(called.returns)
    return Prototype(returns, tuple(map(_parameter, called.parameters)))


def _parameter(seen: CType) -> Parameter:
    if seen.kind == "unknown":
        return Parameter(None)
    if seen.kind == "struct":
        return Parameter(seen.size, seen.align)
    return Parameter(max(4, seen.size))  # integers narrower than that are extended
