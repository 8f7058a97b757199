# SPDX-License-Identifier: BSD-2-Clause
"""The content of single functions of LTO-IR: a digest of what a function does, whatever else its module contains."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping

from numba.cuda.cudadrv.external_code.formats.bounds import FormatError
from numba.cuda.cudadrv.external_code.link.ltoir_probes import ptx_of_ltoir

from numba_cuda_autolink.ptx import ptx_bodies

_LINE = re.compile(r"\.loc\b[^\n]*\n")
_NAME = re.compile(r"[A-Za-z_$%][\w$%]*")
_NUMBERED = re.compile(r"(\$L__BB|__local_depot)\d+")  # by the function's place in its module


def read_contents(modules: Iterable[bytes], names: Collection[str], arch: str) -> dict[str, str]:
    """Return the digests of the functions with these *names* in LTO-IR *modules*. Functions and variables that they
    name count by their own content, lines and the names do not. Empty if the modules do not link for *arch*."""
    ptx = ptx_of_ltoir(list(modules), tuple(sorted(names)), arch, optimize=False) if names else None
    try:
        bodies = ptx_bodies(ptx) if ptx is not None else {}
    except FormatError:
        return {}
    found: dict[str, str] = {}
    return {name: _digest(name, bodies, found) for name in sorted(names) if name in bodies}


def content_of(contents: Mapping[str, str], names: Iterable[str]) -> str | None:
    """Return one digest for all functions with these *names*; ``None`` if there are none, or one has no content."""
    digests = [contents.get(name) for name in names]
    if not digests or None in digests:
        return None
    return hashlib.sha256(" ".join(sorted(filter(None, digests))).encode()).hexdigest()


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
