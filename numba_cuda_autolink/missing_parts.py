# SPDX-License-Identifier: BSD-2-Clause
"""Parts of the CUDA toolkit that were not found, libraries and headers, and how to install them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from .pip_commands import install_command

#: The libraries that kernels are built with, by the names of cuda.pathfinder.
LIBRARIES = {"nvrtc": "NVRTC", "nvvm": "NVVM", "nvJitLink": "nvJitLink", "cudart": "cudart", "nvfatbin": "nvFatbin"}
OPTIONAL = {"nvfatbin"}  # of them: the command `build` needs it, for files with several kernels, and no kernel does
_FAILED = re.compile(r'Failure finding "(?P<file>(?:lib)?(?P<name>[A-Za-z]+)[^"]*)"')  # of cuda.pathfinder


class Headers(NamedTuple):
    """Headers that one package has, by the start of their *names*, and one of them that all versions have."""

    what: str
    names: re.Pattern[str]
    always: str
    is_found_apart: bool = True  # by cuda.pathfinder; the others are in the same folder


#: By the names of cuda.pathfinder, if it has one. The extras of this project install all of them.
HEADERS = {
    "cudart": Headers(
        "the CUDA runtime",
        re.compile(
            r"cuda(?:_\w+)?\.hp?p?$|cooperative_groups[./]|cuComplex\.h|mma\.h|(?:library|vector|driver|device)_types\.h"
            r"|(?:math|vector|device)_functions\.hp?p?$|math_constants\.h|(?:sm_\d+|device)_(?:atomic_f|i)\w+\.hp?p?$"
            r"|(?:surface|texture)_(?:indirect_functions|types)\.h"
        ),
        "cuda_runtime_api.h",
    ),
    "cccl": Headers("CCCL", re.compile(r"(?:cuda|cub|thrust|nv)/"), "cuda/std/version"),
    "crt": Headers("nvcc", re.compile(r"crt/"), "crt/host_defines.h", is_found_apart=False),
}


def missing_library(text: str) -> tuple[str, str] | None:
    """Return the library that cuda.pathfinder did not find, as the *text* of its error says, in words and with what to
    do; ``None`` for another text."""
    if not (found := _FAILED.search(text)):
        return None
    if name := LIBRARIES.get(found["name"]):
        return f"{name} was not found", install_command()
    return f"{found['file']} was not found", "install the CUDA toolkit, or NVIDIA's package that has it"


def is_optional(package: str) -> bool:
    """Whether no kernel needs an installed *package* of the toolkit."""
    return package.removesuffix("-cu12").removeprefix("nvidia-") in OPTIONAL


def missing_headers(header: str, folders: Iterable[str]) -> str:
    """Return how to install the package that has a *header*, if none of its headers is in the *folders* of the toolkit;
    empty if *header* is in no package of the toolkit, or the package is there."""
    for headers in HEADERS.values():
        if headers.names.match(header) and not any(os.path.isfile(f"{each}/{headers.always}") for each in folders):
            return (
                f"{install_command()} (the headers of {headers.what} were not found); numba-cuda-autolink doctor checks"
                " all packages"
            )
    return ""
