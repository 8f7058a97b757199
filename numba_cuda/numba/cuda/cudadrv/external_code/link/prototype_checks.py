# SPDX-License-Identifier: BSD-2-Clause
"""Whether the parameters of a function, where PTX or machine code shows them, are those that its callers pass.

nvJitLink links them in any case: the callee then reads what nobody wrote.

LTO-IR cannot be read, also in a fatbin, object or archive, nor can compressed pieces of these. A link of such code
alone, in a child process, makes something of it that can be read: PTX without optimisation of LTO-IR, and a relocatable
cubin of the rest. It takes some milliseconds, and is done once for each code on a machine.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numba_cuda_autolink import mangled_names
from numba_cuda_autolink.errors import FormatError
from numba_cuda_autolink.ptx import Parameter, Prototype, ptx_symbols

from ..cache.entry import CacheKey
from ..cache.store import current_store
from ..formats.containers import has_compressed_piece, has_ltoir, readable_pieces
from ..formats.cubin import cubin_prototypes
from ..inputs import kinds
from ..inputs.c_prototypes import CPrototype, CType
from ..plan.link_plan import calls_kernel, link_error
from .linker_input import LinkJob, Part, list_origins, parts_of_key
from .ltoir_symbols import ptx_of_ltoir, relocatable_cubin

Prototypes: TypeAlias = dict[str, Prototype]  # by symbol
_FORMAT = "5"
_Found: TypeAlias = tuple[Prototypes, Prototypes, tuple[str, ...] | None]
# Variables that no program looks up: local ones, and weak ones with a mangled name, which C++ defines in each module
# that includes a header. Some libraries have thousands of them, as tables.
_OF_HEADERS = re.compile(
    rb"^\.(?:weak\s+\.(?:global|const)(?:\s+\.\w+(?:\s+\d+)?)*\s+_Z|(?:global|const)\b)[^;]*;", re.MULTILINE
)


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
        for symbol, own in interface.defined.items():
            calls = [(called, job.kernel_code.referenced_by(symbol))] if part.planned is not None else []
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
                        ' and take a pointer to the result, unless it has abi="c")',
                    )


def check_no_kernel_is_called(job: LinkJob, *kernels: Collection[str]) -> None:
    """Raise `LinkError` if a call in Python calls one of the *kernels*, whose parameters are elsewhere. nvJitLink links
    it, or crashes."""
    names = set().union(*kernels)
    for symbol in job.kernel_code.sites:
        if symbol in names:
            called, linked = job.kernel_code.referenced_by(symbol), list_origins(job.parts)
            raise calls_kernel(job.plan, symbol, f"called: {called}", f"linked: {linked}")


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


def all_interfaces(job: LinkJob) -> list[Interface]:
    """Return the interface of each part that the kernel or a user provides, as far as it can be found out. Of LTO-IR,
    those functions are found that calls in Python reference, that such functions reference, and so on."""
    found = [Interface(part, *prototypes_of(part.kind.name, part.code)) for part in job.provided]
    # The types in what is compiled here are compared by the compiler.
    external = [each for each in found if each.part.planned is not None and each.part.compiled is None]
    for each in external:
        kind, code = each.part.kind, each.part.code
        if kind is not kinds.LTO_IR and has_compressed_piece(kind.name, code):
            _look(job, each, ())
    ltoir = [each for each in external if has_ltoir(each.part.kind.name, each.part.code)]
    names: set[str] = set()
    while ltoir:
        referenced = {*job.kernel_code.sites, *(symbol for each in found for symbol in each.declared)}
        if referenced <= names:
            break
        names |= referenced
        for each in ltoir:
            _look(job, each, names)
    return found


def _look(job: LinkJob, interface: Interface, names: Collection[str]) -> None:
    found = _remember(job, interface.part, names)
    if found is None:
        interface.is_whole = False
        return
    defined, declared, interface.variables = found
    interface.defined.update(defined)
    interface.declared.update(declared)


def _remember(job: LinkJob, part: Part, names: Collection[str]) -> _Found | None:
    key = CacheKey("prototype", f"functions of {part.name}", parts_of_key(_FORMAT, job, part, names))

    def build() -> bytes:
        return json.dumps(_find(job, part, names), default=vars).encode()

    found = json.loads(current_store().fetch(key, build).data)
    if found is None:
        return None
    defined, declared, variables = found
    return _unpack(defined), _unpack(declared), None if variables is None else tuple(variables)


def _find(job: LinkJob, part: Part, names: Collection[str]) -> _Found | None:
    arch = job.plan.target.arch
    if not names:  # compressed machine code or PTX
        cubin = relocatable_cubin(part, arch)
        return None if cubin is None else (*prototypes_of("cubin", cubin), None)
    ptx = ptx_of_ltoir([part], tuple(sorted(names)), arch, optimize=False)
    if ptx is None:
        return None
    defined: Prototypes = {}
    declared: Prototypes = {}
    variables: list[str] = []
    for symbol in ptx_symbols(_OF_HEADERS.sub(b"", ptx)):
        if symbol.prototype is None:
            if symbol.linkage and symbol.is_defined and symbol.space != "entry":
                variables.append(symbol.name)
            continue
        # What other code calls is local after a link, and the link itself declares the names that are not defined.
        if symbol.is_defined and symbol.name in names:
            defined[symbol.name] = symbol.prototype
        elif symbol.linkage == "extern" and symbol.name not in names:
            declared[symbol.name] = symbol.prototype
    return defined, declared, tuple(variables)


def _unpack(described: dict[str, Any]) -> Prototypes:
    found: Prototypes = {}
    for name, each in described.items():
        returns = each["returns"] and Parameter(**each["returns"])
        found[name] = Prototype(returns, tuple(Parameter(**parameter) for parameter in each["parameters"]))
    return found
