# SPDX-License-Identifier: BSD-2-Clause
"""The prototypes of functions, and the variables, in code that cannot be read: LTO-IR, also in a fatbin, object or
archive, and compressed pieces of these.

A link of the code alone, in a child process, makes something of it that can be read: PTX without optimisation of
LTO-IR, and a relocatable cubin of the rest. It takes some milliseconds, and is done once for each code on a machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, TypeAlias

from numba_cuda_autolink.ptx import Parameter, Prototype, ptx_symbols

from ..cache.key import CacheKey
from ..cache.store import current_store
from ..formats.containers import has_compressed_piece, has_ltoir
from ..inputs import kinds
from ..platform import cuda_libraries
from .linker_input import LinkJob, Part
from .ltoir_probes import ptx_of_ltoir, relocatable_cubin
from .prototype_checks import Interface, Prototypes, prototypes_of

_FORMAT = "5"
_Found: TypeAlias = tuple[Prototypes, Prototypes, tuple[str, ...] | None]
# Variables that no program looks up: local ones, and weak ones with a mangled name, which C++ defines in each module
# that includes a header. Some libraries have thousands of them, as tables.
_OF_HEADERS = re.compile(
    rb"^\.(?:weak\s+\.(?:global|const)(?:\s+\.\w+(?:\s+\d+)?)*\s+_Z|(?:global|const)\b)[^;]*;", re.MULTILINE
)


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
    key = CacheKey(
        "prototype",
        f"functions of {part.name}",
        (
            ("format", _FORMAT),
            ("nvJitLink", cuda_libraries.nvjitlink_build()),
            ("architecture", job.plan.target.arch),
            ("kind", part.kind.name),
            ("names", json.dumps(sorted(names))),
            ("code", part.code),
        ),
    )

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
