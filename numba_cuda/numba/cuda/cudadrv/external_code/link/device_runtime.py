# SPDX-License-Identifier: BSD-2-Clause
"""The CUDA device runtime, ``cudadevrt``: what a kernel that launches kernels is linked with.

As with nvcc nobody has to name it: it is linked when something calls it.
"""

from __future__ import annotations

import re

from cuda import pathfinder

from ..inputs.link_input import LinkInput, from_item

_UNDEFINED = re.compile(r"(?:Unresolved extern function|Undefined reference to) '(?:__cudaCDP2|cuda)\w*'")


def is_wanted(log: str) -> bool:
    """Whether the linker's *log* says that a function is missing which may be the device runtime's."""
    return _UNDEFINED.search(log) is not None


def archive() -> LinkInput | None:
    """The library, of the installed packages or the system's toolkit; ``None`` where there is none."""
    try:
        path = pathfinder.find_static_lib("cudadevrt")
    except (pathfinder.StaticLibNotFoundError, RuntimeError):
        return None
    return from_item(path)
