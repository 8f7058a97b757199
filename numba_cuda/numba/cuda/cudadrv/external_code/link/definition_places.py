# SPDX-License-Identifier: BSD-2-Clause
"""Where the CUDA C++ source of a part defines a symbol."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from numba_cuda_autolink.given_sources import find_in_given
from numba_cuda_autolink.mangled_names import base_name
from numba_cuda_autolink.source_locations import shown_file

from ..inputs import kinds
from ..inputs.link_input import LinkInput
from .linker_input import Part

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^<>"\n]+)[>"]', re.MULTILINE)


def find_definition(part: Part, symbol: str) -> str:
    """Return ``" at file:line"``, where the source of a *part*, or a header in its include paths, first names *symbol*
    as what it defines; empty if that is not known."""
    if part.planned is None or part.planned.input.kind is not kinds.CUDA:
        return ""
    pattern = re.compile(rf"[\w>&*]\s+[&*]*(?:\w+::)*{re.escape(base_name(symbol))}\s*[({{;=\[]")
    sources = [each.input for each in part.planned.members or (part.planned,)]
    if found := find_in_given("\n".join(source.text for source in sources), pattern):
        return f" at {shown_file(found[0])}:{found[1]}"
    for path, text in (header for source in sources for header in _own_headers(source)):
        lines = enumerate(text.splitlines(), 1)
        if number := next((number for number, line in lines if pattern.search(line)), 0):
            return f" at {shown_file(path)}:{number}"
    return ""


def _own_headers(source: LinkInput) -> Iterator[tuple[str, str]]:
    """Yield the paths and texts of the headers that a *source* includes, those in its folder and its include paths."""
    waiting, seen = [(source.text, os.path.dirname(source.name))], set[str]()
    while waiting:
        text, folder = waiting.pop(0)
        for name in _INCLUDE.findall(text):
            paths = (os.path.join(each, name) for each in (folder, *source.options.include_paths) if each)
            path = next(filter(os.path.isfile, paths), "")
            if path and path not in seen:
                seen.add(path)
                with open(path, errors="replace") as file:
                    waiting.append((file.read(), os.path.dirname(path)))
                yield path, waiting[-1][0]
