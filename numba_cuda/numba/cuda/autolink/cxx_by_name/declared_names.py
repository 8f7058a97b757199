# SPDX-License-Identifier: BSD-2-Clause
"""The names that a library declares in its namespace, for completion: as far as they are seen without a compiler.

Headers are read one by one, without `#if` and with those macros alone that open and close namespaces.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from numba.cuda.cudadrv.external_code.cache.entry import CacheKey
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.platform.target import Target

from numba_cuda_autolink.package_versions import version_of

from ..linkables.compiled_source import unit_of_sources
from .library_source import LibrarySource
from .questions import resolve_for

_HIDDEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\\\n]|\\.)*", re.MULTILINE | re.DOTALL)
_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w*NAMESPACE\w*)(?:\((\w*)\))?((?:[^\\\n]|\\.)*)", re.MULTILINE | re.DOTALL
)
_USE = re.compile(r"\b(\w*NAMESPACE\w*)(?:\(([^()]*)\))?")
_MOST_NESTED = 4  # macros that expand to macros
_ENDS = re.compile(r"[{};]")
# A namespace, or a block of declarations for C.
_NAMESPACE = re.compile(r"(\binline\s+)?\bnamespace\b((?:\s|::|\w)*)(?:\([^()]*\)\s*)?\Z|\bextern\s*\Z")
# A class, an alias, and a function after its type.
_DECLARATION = re.compile(
    r"\b(?:struct|class|union|enum)\s+(?:\w+\s+)*?([A-Za-z]\w*)\s*(?:final\s*)?(?::|\Z)"
    r"|\busing\s+([A-Za-z]\w*)\s*=|\busing\s+(?:\w*::)+([A-Za-z]\w*)\s*\Z|\btypedef\b.*\b([A-Za-z]\w*)\s*\Z"
    r"|[\w>&*]\s+[&*]*(?!operator\b|requires\b)([A-Za-z]\w*)\s*\(",
    re.DOTALL,
)
_NOT_A_NAME = re.compile(
    r"[A-Z][A-Z0-9_]{2,}|new|delete|sizeof|static_assert|alignas|decltype|noexcept|struct|union|enum|char"
)


class _Macro(NamedTuple):
    parameter: str
    text: str

    def expand(self, argument: str) -> str:
        return re.sub(rf"\b{self.parameter}\b", argument.strip(), self.text) if self.parameter else self.text


def list_names(source: LibrarySource) -> set[str]:
    """Return the names that a library declares, for completion, which never fails."""
    found = find_names([source.text], source.namespace)
    with contextlib.suppress(Exception), resolve_for(None) as target:
        for unit in map(unit_of_sources, source.list_units()):
            if (names := _names_of_headers(unit, source.namespace, target)) is not None:
                return found | names
            found |= find_names([unit.text], source.namespace)
    return found


def _names_of_headers(unit: LinkInput, namespace: str, target: Target) -> set[str] | None:
    """Return the names that a translation unit declares in *namespace*, in the global one without those of CUDA;
    ``None`` if its headers are not known. They are cached as what follows from its texts."""
    from numba.cuda.cudadrv.external_code.compile import programs

    if (digest := programs.program_digest(unit, target, on_record=False)) is None:
        return None

    def build() -> bytes:
        texts = programs.header_texts(unit, target, with_toolkit=bool(namespace))
        return json.dumps(sorted(find_names(texts, namespace))).encode()

    parts = ("program", digest), ("namespace", namespace), ("by", version_of("numba-cuda-autolink"))
    return set(json.loads(current_store().fetch(CacheKey("declarations", unit.name, parts), build).data))


def find_names(texts: Iterable[str], namespace: str) -> set[str]:
    """Return the names that *texts* seem to declare in *namespace*: of functions, classes, enumerations and aliases;
    no reserved ones, and no macros."""
    texts = list(texts)
    found = (macro for text in texts for macro in _MACRO.findall(text))
    macros = {name: _Macro(parameter, text.replace("\\\n", " ")) for name, parameter, text in found}
    last = namespace.rpartition("::")[2]
    names = (
        name for text in texts if last in text or "NAMESPACE" in text for name in _names_of(text, macros, namespace)
    )
    return {name for name in names if not _NOT_A_NAME.fullmatch(name)}


def _names_of(text: str, macros: Mapping[str, _Macro], namespace: str) -> Iterator[str]:
    code = _DIRECTIVE.sub("", _HIDDEN.sub(" ", text))
    for _ in range(_MOST_NESTED if "NAMESPACE" in code else 0):
        code = _USE.sub(lambda use: macros[use[1]].expand(use[2] or "") if use[1] in macros else " ", code)
    goal = namespace.split("::") if namespace else []
    scopes: list[list[str] | None] = []  # the names of namespaces, and None for other braces
    others = start = 0
    for end in _ENDS.finditer(code):
        if end[0] == "}":
            others -= bool(scopes) and scopes.pop() is None
        elif others:
            opened = end[0] == "{"
            scopes += [None] * opened
            others += opened
        else:
            chunk = code[start : end.start()]
            found = _NAMESPACE.search(chunk) if end[0] == "{" else None
            if found is None and [name for scope in scopes for name in scope or ()] == goal:
                yield from _declared_in(chunk)
            if end[0] == "{":
                scopes.append(None if found is None else [] if found[1] else _path(found[2] or ""))
                others += found is None
        start = end.end()


def _path(names: str) -> list[str]:
    return [name for name in re.findall(r"\w+", names) if name != "inline"]


def _declared_in(chunk: str) -> Iterator[str]:
    if (found := _DECLARATION.search(chunk)) is not None and found.lastindex is not None:
        yield found[found.lastindex]
