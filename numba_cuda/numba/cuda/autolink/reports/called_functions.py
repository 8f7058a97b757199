# SPDX-License-Identifier: BSD-2-Clause
"""The functions that a kernel calls in LTO-IR, as PTX without inlining shows them: a digest of each, and the functions
that it leads to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from numba.cuda.cudadrv.external_code.formats.elf import FormatError
from numba.cuda.cudadrv.external_code.link.ltoir_symbols import ptx_of_ltoir

from numba_cuda_autolink.ptx import ptx_bodies

_LINE = re.compile(r"\.loc\b[^\n]*\n")
_NAME = re.compile(r"[A-Za-z_$%][\w$%]*")
_NUMBERED = re.compile(r"(\$L__BB|__local_depot)\d+")  # by the function's place in its module


@dataclass(frozen=True)
class CalledFunctions:
    """Of each called function that can be read, by name: the digest of its content, and the functions and variables
    that it names, directly or by way of others."""

    contents: Mapping[str, str]
    reached: Mapping[str, frozenset[str]]

    @classmethod
    def read(cls, modules: Iterable[bytes], names: Collection[str], arch: str) -> CalledFunctions:
        """Return those with these *names* in LTO-IR *modules*. In a digest, functions and variables that they name
        count by their own content, lines and the names do not. Nothing can be read if the modules do not link for
        *arch*."""
        ptx = ptx_of_ltoir(list(modules), tuple(sorted(names)), arch, optimize=False) if names else None
        try:
            bodies = ptx_bodies(ptx) if ptx is not None else {}
        except FormatError:
            return cls({}, {})
        known = [name for name in sorted(names) if name in bodies]
        found: dict[str, str] = {}
        contents = {name: _digest(name, bodies, found) for name in known}
        return cls(contents, {name: _reached(name, bodies) for name in known})

    def content_of(self, names: Iterable[str]) -> str | None:
        """Return one digest for all functions with these *names*; ``None`` if there are none, or one is not known."""
        digests = [self.contents.get(name) for name in names]
        if not digests or None in digests:
            return None
        return hashlib.sha256(" ".join(sorted(filter(None, digests))).encode()).hexdigest()


def _reached(name: str, bodies: Mapping[str, str]) -> frozenset[str]:
    found, left = {name}, [name]
    while left:
        new = set(_NAME.findall(bodies[left.pop()])).intersection(bodies) - found
        found |= new
        left += new
    return frozenset(found)


def _digest(name: str, bodies: Mapping[str, str], found: dict[str, str]) -> str:
    if name not in found:
        found[name] = "recursive"

        def replaced(match: re.Match[str]) -> str:
            word = match[0]
            if word.startswith(name):
                return "itself" + word[len(name) :]
            return _digest(word, bodies, found) if word in bodies else word

        text = _NUMBERED.sub(r"\1", _LINE.sub("", bodies[name]))
        found[name] = hashlib.sha256(_NAME.sub(replaced, text).encode()).hexdigest()
    return found[name]
