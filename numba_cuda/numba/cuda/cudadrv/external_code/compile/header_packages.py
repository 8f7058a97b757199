# SPDX-License-Identifier: BSD-2-Clause
"""The packages of NVIDIA that have a header, for the version of CUDA in use."""

from __future__ import annotations

import difflib
import os

# The headers of libraries that are not among those of the toolkit, which programs include.
_HEADERS = {
    "curand": (
        "curand.h curand_kernel.h curand_discrete.h curand_discrete2.h curand_globals.h curand_lognormal.h"
        " curand_mrg32k3a.h curand_mtgp32.h curand_mtgp32_host.h curand_mtgp32_kernel.h curand_mtgp32dc_p_11213.h"
        " curand_normal.h curand_normal_static.h curand_philox4x32_x.h curand_poisson.h curand_precalc.h"
        " curand_uniform.h"
    ),
    "cublas": "cublas.h cublas_api.h cublas_v2.h cublasLt.h cublasXt.h",
    "cufft": "cufft.h cufftXt.h cufftw.h",
    "cusparse": "cusparse.h cusparse_v2.h",
    "cusolver": "cusolver_common.h cusolverDn.h cusolverMg.h cusolverRf.h cusolverSp.h",
    "nvshmem": "nvshmem.h nvshmemx.h nvshmem_host.h",
}
_LIBRARIES = {header: library for library, headers in _HEADERS.items() for header in headers.split()}


def explain_package(header: str) -> str:
    """Return what to do about a *header* that was not found, of a library of NVIDIA; empty for another one."""
    library = _LIBRARIES.get(header.rpartition("/")[2])
    if library is None:
        return ""
    from cuda import pathfinder
    from numba.cuda.cudadrv import nvrtc

    from numba_cuda_autolink.installed_packages import pip

    major = nvrtc._get_nvrtc_version()[0]
    folder = pathfinder.find_nvidia_header_directory(library)
    given = f'pass include_paths=[pathfinder.find_nvidia_header_directory("{library}")], of cuda.pathfinder'
    if folder is not None and os.path.isfile(os.path.join(folder, header)):
        return given
    suffix = f"-cu{major}" if major == 12 or library == "nvshmem" else ""
    return f"install the package that has it, {pip(f'install nvidia-{library}{suffix}')}; and {given}"


def explain_misspelt(header: str) -> str:
    """Return what to do about a *header* whose name is nearly that of one of a library of NVIDIA; empty for another."""
    near = difflib.get_close_matches(header, _LIBRARIES, n=1, cutoff=0.85)
    return f"did you mean {near[0]}? Then {explain_package(near[0])}" if near else ""
