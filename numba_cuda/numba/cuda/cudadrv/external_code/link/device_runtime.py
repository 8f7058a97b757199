# SPDX-License-Identifier: BSD-2-Clause
"""The CUDA device runtime, ``cudadevrt``, which kernels that launch kernels are linked with.

As with nvcc, nobody has to name it: it is linked if something calls it.
"""

from __future__ import annotations

import re

from cuda import pathfinder

from ..inputs.link_input import LinkInput, from_item

_UNDEFINED = re.compile(r"(?:Unresolved extern function|Undefined reference to) '(?:__cudaCDP2|cuda)\w*'")


def is_missing(log: str) -> bool:
    """Return whether the linker's *log* names an undefined function that the device runtime may define."""
    return _UNDEFINED.search(log) is not None


def archive() -> LinkInput | None:
    """Return the library, from the installed packages or the system's toolkit; ``None`` if there is none."""
    try:
        path = pathfinder.find_static_lib("cudadevrt")
    except (pathfinder.StaticLibNotFoundError, RuntimeError):
        return None
    return from_item(path)
