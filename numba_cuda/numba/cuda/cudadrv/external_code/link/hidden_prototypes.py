# SPDX-License-Identifier: BSD-2-Clause
"""The prototypes of functions in code that cannot be read: LTO-IR, also in a fatbin, object or archive, and compressed
pieces of these.

A link of the code alone, in a child process, makes something of it that can be read: PTX without optimisation of
LTO-IR, and a relocatable cubin of the rest. It takes some milliseconds, and is done once for each code on a machine.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from .. import toolkit
from ..cache.key import CacheKey
from ..cache.store import current_store
from ..formats.pieces import has_compressed_piece, has_ltoir
from ..formats.ptx import Parameter, Prototype, ptx_symbols
from ..inputs import kinds
from .parts import LinkJob, Part
from .probes import ptx_of_ltoir, relocatable_cubin
from .signatures import Prototypes, prototypes_of

_FORMAT = "3"


def all_prototypes(job: LinkJob) -> tuple[list[tuple[Part, Prototypes, Prototypes]], list[Part]]:
    """Return for each part that the kernel or a user provides the prototypes of the functions that it defines for other
    code, and of those that it declares only, as far as they can be found out; and the parts with more functions. Of
    LTO-IR, those are found that calls in Python reference, that such functions reference, and so on."""
    found = {id(part): prototypes_of(part.kind.name, part.code) for part in job.provided}
    unseen: dict[int, Part] = {}

    def look(part: Part, names: Collection[str]) -> tuple[Prototypes, Prototypes]:
        if (more := _remembered(job, part, names)) is None:
            unseen[id(part)] = part
        return more or ({}, {})

    for part in job.provided:
        if _is_external(part) and part.kind is not kinds.LTO_IR and has_compressed_piece(part.kind.name, part.code):
            found[id(part)] = look(part, ())
    ltoir = [part for part in job.provided if _is_external(part) and has_ltoir(part.kind.name, part.code)]
    names: set[str] = set()
    while ltoir:
        declared = (symbol for _, others in found.values() for symbol in others)
        referenced = {*job.kernel_code.sites, *declared}
        if referenced <= names:
            break
        names |= referenced
        for part in ltoir:
            for before, more in zip(found[id(part)], look(part, names), strict=True):
                before.update(more)
    return [(part, *found[id(part)]) for part in job.provided], list(unseen.values())


def _is_external(part: Part) -> bool:
    """Whether it comes from outside: the types in what is compiled here are compared by the compiler."""
    return part.planned is not None and part.compiled is None


def _remembered(job: LinkJob, part: Part, names: Collection[str]) -> tuple[Prototypes, Prototypes] | None:
    key = CacheKey(
        "prototype",
        f"functions of {part.name}",
        (
            ("format", _FORMAT),
            ("nvJitLink", toolkit.nvjitlink_build()),
            ("architecture", job.plan.target.arch),
            ("kind", part.kind.name),
            ("names", json.dumps(sorted(names))),
            ("code", part.code),
        ),
    )
    found = json.loads(current_store().fetch(key, lambda: _packed(_found(job, part, names) or ())).data)
    return (_unpacked(found[0]), _unpacked(found[1])) if found else None


def _found(job: LinkJob, part: Part, names: Collection[str]) -> tuple[Prototypes, Prototypes] | None:
    """Return the prototypes in *part*; None if the link that shows them fails."""
    arch = job.plan.target.arch
    if not names:  # compressed machine code or PTX
        cubin = relocatable_cubin(part, arch)
        return None if cubin is None else prototypes_of("cubin", cubin)
    ptx = ptx_of_ltoir([part], tuple(sorted(names)), arch, optimize=False, variables=False)
    if ptx is None:
        return None
    defined: Prototypes = {}
    declared: Prototypes = {}
    for symbol in ptx_symbols(ptx):
        if symbol.prototype is None:
            continue
        # What other code calls is local after a link, and the link itself declares the names that are not defined.
        if symbol.is_defined and symbol.name in names:
            defined[symbol.name] = symbol.prototype
        elif symbol.linkage == "extern" and symbol.name not in names:
            declared[symbol.name] = symbol.prototype
    return defined, declared


def _packed(found: Iterable[Prototypes]) -> bytes:
    return json.dumps([{name: _described(each) for name, each in prototypes.items()} for prototypes in found]).encode()


def _described(prototype: Prototype) -> list[Any]:
    return [each and [each.size, each.align] for each in (prototype.returns, *prototype.parameters)]


def _unpacked(described: dict[str, list[Any]]) -> Prototypes:
    found: Prototypes = {}
    for name, parts in described.items():
        returns, *parameters = [each and Parameter(*each) for each in parts]
        found[name] = Prototype(returns, tuple(parameters))
    return found
