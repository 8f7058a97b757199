# SPDX-License-Identifier: BSD-2-Clause
"""Where the CUDA C++ source of a part defines a symbol."""

from __future__ import annotations

import re

from numba_cuda_autolink.given_sources import find_in_given
from numba_cuda_autolink.mangled_names import base_name
from numba_cuda_autolink.source_locations import shown_file

from ..compile.programs import included_files
from ..inputs import kinds
from ..platform.target import Target
from .linker_input import Part


def find_definition(part: Part, symbol: str, target: Target) -> str:
    """Return ``" at file:line"``, where the source of a *part* or a header of its own first names *symbol* as what it
    defines; empty if that is not known."""
    if part.planned is None or part.planned.input.kind is not kinds.CUDA:
        return ""
    pattern = re.compile(rf"[\w>&*]\s+[&*]*(?:\w+::)*{re.escape(base_name(symbol))}\s*[({{;=\[]")
    sources = [each.input for each in part.planned.members or (part.planned,)]
    if found := find_in_given("\n".join(source.text for source in sources), pattern):
        return f" at {shown_file(found[0])}:{found[1]}"
    for source in sources:
        for path, text in included_files(source, target, with_toolkit=False):
            number = next((number for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)), 0)
            if number:
                return f" at {shown_file(path)}:{number}"
    return ""
