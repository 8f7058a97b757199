# SPDX-License-Identifier: BSD-2-Clause
"""What several parts define, each for the others too: inline functions, templates, members of classes and inline
variables of C++. The linker takes the first of them for all, so they have to be alike.

LTO-IR cannot be read. A link of each part alone makes PTX of it, without optimisation, in which the same source is the
same text, but for numbers that count in the whole module and for names.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import zlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

from numba_cuda_autolink import mangled_names
from numba_cuda_autolink.ptx import ptx_bodies, ptx_symbols

from ..cache.entry import CacheKey
from ..cache.store import current_store
from ..formats.containers import has_compressed_piece, has_ltoir, read_lto_ir, readable_pieces
from ..formats.elf import FUNCTION, WEAK, content, elf_symbols, read_elf
from ..inputs import kinds
from .duplicate_symbols import DefinedTwiceError, Duplicate
from .linker_input import LinkJob, Part, parts_of_key
from .ltoir_symbols import PROBE_SYMBOLS, ptx_of_ltoir

_FORMAT = "2"
_COUNTED = re.compile(r"(\$L__BB|\b__local_depot|\bprototype_)\d+")
_LINE = re.compile(r"^\s*(?:\.loc\b|\$L__(?:tmp|func)\w*:)[^\n]*", re.MULTILINE)  # of sources
_NAME = re.compile(r"([\w$%]+)")
_DEPTH = 64  # of references; what is deeper than that in both has names of its own


class _Definitions(NamedTuple):
    """By name, digests of what a part *defined*: maybe for itself alone, but for variables that are *shared*; and the
    functions that it refers to, *undefined*."""

    defined: dict[str, str]
    shared: list[str]
    undefined: list[str]


def check_shared_definitions(job: LinkJob) -> list[str]:
    """Raise `DefinedTwiceError` if two parts define a function or variable for each other, and not alike: parts with
    LTO-IR, in PTX, or in machine code. Return notes of what could not be compared."""
    parts = [part for part in job.provided if part.planned is not None and _form(part)]
    names, referenced = frozenset[str](), frozenset(job.kernel_code.sites)
    found: list[_Definitions | None] = []
    while len(parts) > 1 and not referenced <= names:
        names |= referenced
        found = [_remember(job, part, names) for part in parts]
        referenced = frozenset(name for each in found if each is not None for name in each.undefined)
    read = [(part, each) for part, each in zip(parts, found, strict=False) if each is not None]
    notes = [
        f"not checked: whether input {job.parts.index(part) + 1} defines what others do, and differently"
        for part, each in zip(parts, found, strict=False)
        if each is None
    ]
    for pair in itertools.combinations(read, 2):
        (one, _), (other, _) = pair
        if _form(one) == _form(other) and (name := _differing(job, pair)):
            if not _are_of_one_compiler(one, other):
                numbers = " and ".join(f"{job.parts.index(part) + 1}" for part in (one, other))
                notes.append(
                    f"not checked: whether inputs {numbers}, made by other compilers or for other architectures, define"
                    f" {mangled_names.readable(name)} differently"
                )
                continue
            raise DefinedTwiceError(Duplicate(name, one, other), _form(one))
    return notes


def _differing(job: LinkJob, pair: Sequence[tuple[Part, _Definitions]]) -> str | None:
    """Return what the two parts define for each other and have other code for, if anything: of functions that call each
    other, one that is called."""
    first, again = (each.defined for _, each in pair)
    for name in reversed(first):  # callers come before what they call
        if first[name] != again.get(name, first[name]) and all(
            name in each.shared or _defines_for_others(job, part, name) for part, each in pair
        ):
            return name
    return None


def _form(part: Part) -> str:
    """Return the kind of code in which the definitions of *part* are compared; empty if they are not."""
    if part.kind in (kinds.CUBIN, kinds.PTX):
        return part.kind.name
    return kinds.LTO_IR.name if has_ltoir(part.kind.name, part.code) else ""


def _are_of_one_compiler(*parts: Part) -> bool:
    """Return whether the same source would have been the same code in the two *parts*, as far as they tell."""
    if _form(parts[0]) == kinds.CUBIN.name or all(part.compiled is not None for part in parts):
        return True  # no cubin tells its compiler
    if _form(parts[0]) == kinds.PTX.name:
        return len({part.code.partition(b".address_size")[0] for part in parts}) == 1
    made = {
        read_lto_ir(code)
        for part in parts
        for kind, code in readable_pieces(part.kind.name, part.code)
        if kind == "LTO-IR"
    }
    return len(made) == 1 and not any(has_compressed_piece(part.kind.name, part.code) for part in parts)


def _defines_for_others(job: LinkJob, part: Part, name: str) -> bool:
    """Return whether code of another module that refers to *name* gets the definition of *part*."""
    ptx = _ptx_of(job, part, (name,))
    return ptx is not None and any(each.name == name and each.is_defined for each in ptx_symbols(ptx))


def _ptx_of(job: LinkJob, part: Part, names: tuple[str, ...]) -> bytes | None:
    """Return PTX of what *part* defines. What was compiled here has survived the link of the kernel."""
    if part.kind is kinds.PTX:
        return part.code
    is_foreign = part.compiled is None
    return ptx_of_ltoir([part], names, job.plan.target.arch, optimize=False, isolated=is_foreign)


def _remember(job: LinkJob, part: Part, names: Collection[str]) -> _Definitions | None:
    """Return what `_find` does; what takes a link is cached."""
    if _form(part) != kinds.LTO_IR.name:
        return _find(job, part, names)
    key = CacheKey("definitions", f"functions of {part.name}", parts_of_key(_FORMAT, job, part, names))

    def build() -> bytes:
        return zlib.compress(json.dumps(_find(job, part, names)).encode())

    found = json.loads(zlib.decompress(current_store().fetch(key, build).data))
    return None if found is None else _Definitions(*found)


def _find(job: LinkJob, part: Part, names: Collection[str]) -> _Definitions | None:
    if part.kind is kinds.CUBIN:  # what was not inlined
        file = read_elf(part.code)
        shared = [each for each in elf_symbols(part.code, file) if each.bind == WEAK and each.type == FUNCTION]
        defined = {each.name: content(part.code, file.sections[each.section]).hex() for each in shared}
        return _Definitions({name: _digest(code) for name, code in defined.items()}, list(defined), [])
    ptx = _ptx_of(job, part, tuple(sorted(names)))
    if ptx is None:
        return None
    symbols = list(ptx_symbols(ptx))
    variables = {each.name: bool(each.linkage) for each in symbols if each.space not in ("func", "entry")}
    if part.kind is kinds.PTX:  # what others may refer to as well as this part
        variables |= {each.name: each.linkage == "weak" for each in symbols}
    digests = _digests({name: text for name, text in ptx_bodies(ptx).items() if name not in PROBE_SYMBOLS})
    functions = {each.name for each in symbols if not each.is_defined and each.space == "func"}
    undefined = functions - digests.keys() - set(names)
    defined = {name: each for name, each in digests.items() if variables.get(name, True)}
    return _Definitions(defined, [name for name in defined if name in variables], sorted(undefined))


def _digests(definitions: dict[str, str]) -> dict[str, str]:
    """Return by name a digest of each of the *definitions* and of all that it refers to, whatever that is called here:
    other names stand for the same code in modules of other language standards, and of what each module has of its own.
    """
    texts: dict[str, str] = {}
    references: dict[str, list[str]] = {}
    for name, text in definitions.items():
        words = _NAME.split(_LINE.sub("", _COUNTED.sub(r"\1", text)))
        references[name] = [word for word in words if word in definitions and word != name]
        own = f"{name}_param_"
        spelt = ("" if word in definitions else word[len(name) :] if word.startswith(own) else word for word in words)
        texts[name] = " ".join("".join(spelt).split())
    digests = {name: _digest(text) for name, text in texts.items()}
    calling = [name for name in definitions if references[name]]
    for _ in range(_DEPTH):
        digests |= {name: _digest(texts[name], *map(digests.__getitem__, references[name])) for name in calling}
    return digests


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()
