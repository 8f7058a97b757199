# SPDX-License-Identifier: BSD-2-Clause
"""CUDA C++ translation units: all that decides on what NVRTC makes of a source."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import Any

from cuda import pathfinder
from numba.cuda import config
from numba.cuda.cuda_paths import get_cuda_paths
from numba.cuda.cudadrv import nvrtc

from ..inputs.link_input import LinkInput
from ..target import Target
from .nvrtc import Compiled, run_nvrtc


@dataclass(frozen=True)
class TranslationUnit:
    """All that NVRTC is given.

    Attributes
    ----------
    code:
        The source.
    name:
        What messages and ``__FILE__`` call it. If it has a directory, quoted includes are looked for there first,
        else in the working directory.
    options:
        Fields of `cuda.core.ProgramOptions` and their values, sorted by name.
    output:
        ``"ltoir"`` or ``"cubin"``.
    """

    code: str
    name: str
    options: tuple[tuple[str, Any], ...]
    output: str

    @classmethod
    def of(cls, source: LinkInput, target: Target) -> TranslationUnit:
        """*source* as it is compiled for *target*, a `Target`: to LTO-IR where that links with
        LTO, to a relocatable cubin elsewhere."""
        asked = source.options
        # A path tells where the source is; other names have no place. NVRTC would look in the working directory first,
        # where sources with a place are looked for last.
        is_file = os.path.isfile(source.name)
        name = source.name if is_file else os.path.basename(source.name)
        fields = {
            "arch": target.arch,
            "relocatable_device_code": True,
            "link_time_optimization": target.lto,
            "gen_opt_lto": target.lto or None,  # what is optimised before it is linked links faster
            "debug": (target.debug and not target.lto) or None,  # full debug information and LTO exclude each other
            "lineinfo": target.lineinfo or None,
            "max_register_count": target.max_registers,
            "include_path": (*asked.include_paths, *toolkit_include_paths(), *((os.curdir,) if is_file else ())),
            "define_macro": asked.defines or None,
            **dict(asked.options),
        }
        options = tuple(sorted((name, value) for name, value in fields.items() if value is not None))
        # A path that tells where the source is; other names have no place.
        name = source.name if os.path.isfile(source.name) else os.path.basename(source.name)
        return cls(source.code.decode(), name, options, "ltoir" if target.lto else "cubin")

    def option(self, name: str) -> Any:
        """The value of an option, ``None`` if it is not set."""
        return dict(self.options).get(name)


def compile_unit(unit: TranslationUnit) -> Compiled:
    """Compile *unit* in this process, where NVRTC compiles one at a time.

    Raises
    ------
    CompileError
        If the code does not compile.
    """
    return run_nvrtc(unit.code, unit.name, dict(unit.options), unit.output)


def toolkit_include_paths() -> tuple[str, ...]:
    """The directories that every source is compiled with: numba-cuda's own headers, the toolkit's, CCCL's, and those
    that numba-cuda's ``CUDA_NVRTC_EXTRA_SEARCH_PATHS`` names."""
    extra = config.CUDA_NVRTC_EXTRA_SEARCH_PATHS or ""
    return fixed_include_paths() + tuple(path for path in extra.split(":") if path)


@functools.cache
def fixed_include_paths() -> tuple[str, ...]:
    """The include directories of installed packages."""
    host = os.path.dirname(os.path.dirname(os.path.abspath(nvrtc.__file__)))
    major = nvrtc._get_nvrtc_version()[0]
    toolkit = get_cuda_paths()["include_dir"].info
    cccl = pathfinder.locate_nvidia_header_directory("cccl")
    paths = (
        os.path.join(host, "include", str(major)),
        toolkit,
        cccl.abs_path if cccl is not None else None,
        _nvcc_headers() if toolkit and not os.path.isdir(os.path.join(toolkit, "crt")) else None,  # for <mma.h>
        os.path.join(host, "memory_management"),
    )
    return tuple(path for path in paths if path)


def _nvcc_headers() -> str | None:
    """nvcc's include directory, where CUDA 12's wheels have ``crt``. Not the system's, which may be of another CUDA."""
    found = pathfinder.locate_nvidia_header_directory("nvcc")
    return found.abs_path if found is not None and found.found_via in ("site-packages", "conda") else None


def messages_outside_toolkit(log: str) -> str:
    """The messages of *log* that are not about the toolkit's own headers, which NVRTC, unlike nvcc, does not know to be
    system headers."""
    toolkit = toolkit_include_paths()
    messages = [message for message in log.split("\n\n") if message.strip()]
    kept = [message for message in messages if not message.lstrip().startswith(toolkit)]
    if all(message.startswith("Remark: ") for message in kept):  # on how to suppress the others
        return ""
    return "\n\n".join(kept).strip()
