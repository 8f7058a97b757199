# SPDX-License-Identifier: BSD-2-Clause
"""The packages of NVIDIA that have a header, for the version of CUDA in use."""

from __future__ import annotations

import os
import re

_LIBRARIES = re.compile(r"(curand|cublas|cufft|cusparse|cusolver|nvshmem)\w*\.h")


def explain_package(header: str) -> str:
    """Return what to do about a *header* that was not found, of a library of NVIDIA; empty for another one."""
    found = _LIBRARIES.fullmatch(header.rpartition("/")[2])
    if found is None:
        return ""
    from cuda import pathfinder
    from numba.cuda.cudadrv import nvrtc

    from numba_cuda_autolink.installed_packages import pip

    library, major = found[1], nvrtc._get_nvrtc_version()[0]
    folder = pathfinder.find_nvidia_header_directory(library)
    given = f'pass include_paths=[pathfinder.find_nvidia_header_directory("{library}")], of cuda.pathfinder'
    if folder is not None and os.path.isfile(os.path.join(folder, header)):
        return given
    suffix = f"-cu{major}" if major == 12 or library == "nvshmem" else ""
    return f"install the package that has it, {pip(f'install nvidia-{library}{suffix}')}; and {given}"
