# SPDX-License-Identifier: BSD-2-Clause
"""The compute capability that a build is asked for, checked against the CUDA toolkit."""

from __future__ import annotations

from numba import cuda
from numba.cuda.cudadrv import nvrtc
from numba.cuda.cudadrv.external_code.plan.errors import LinkError
from numba.cuda.cudadrv.external_code.platform.cuda_libraries import why_missing
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, ComputeCapabilityLike


def compute_capability(cc: ComputeCapabilityLike | None) -> tuple[int, int, str]:
    """Return *cc* as major, minor and suffix; without it, what a launch on the current GPU is built for.

    Raise `ValueError` if *cc* is not a compute capability, the CUDA toolkit does not know it, or there is neither *cc*
    nor a GPU; `LinkError` if NVRTC is not installed.
    """
    if cc is None:
        try:
            return ComputeCapability.parse(cuda.get_current_device().compute_capability).as_launched.parts
        except Exception as error:
            raise ValueError(
                "cc is missing, and there is no GPU to build for by default\n"
                "  what to do: pass cc=, for example cc=(9, 0)"
            ) from error
    capability = ComputeCapability.parse(cc)
    require_nvrtc("build() cannot start")
    known = nvrtc.get_supported_ccs()
    if capability.base not in known:
        names = ", ".join(f"{major}.{minor}" for major, minor in known)
        raise ValueError(f"compute capability {capability} is not known to this CUDA toolkit\n  known: {names}")
    return capability.parts


def require_nvrtc(otherwise: str) -> None:
    """Raise a `LinkError` that begins with *otherwise* if NVRTC is not installed."""
    if missing := why_missing("NVRTC"):
        raise LinkError(f"{otherwise}: {missing[0]}", str(missing[1])) from missing[1]
