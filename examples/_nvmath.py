# SPDX-License-Identifier: BSD-2-Clause
"""Import what the nvmath-python examples share, or report what is missing and exit."""

from __future__ import annotations

import hashlib
import importlib.metadata
import sys

from numba.cuda import autolink

try:
    from nvmath.device import FFT, CodeType, ComputeCapability, Matmul, compile_blas_execute, compile_fft_execute
except Exception as error:  # nvmath raises exceptions of its own if the driver or libmathdx is missing
    print(
        "This example needs nvmath-python and the NVIDIA driver:"
        f" pip install nvmath-python==1.0.0 nvidia-libmathdx-cu13==0.4.1.15\n({type(error).__name__}: {error})"
    )
    sys.exit(2)

__all__ = ["FFT", "ComputeCapability", "Matmul", "code_type", "compile_blas_execute", "compile_fft_execute", "key_of"]


def code_type(target: autolink.Target) -> CodeType:
    """Return nvmath-python's code type for the LTO-IR of *target*."""
    return CodeType("lto", ComputeCapability(*target.compute_capability, target.suffix))


def key_of(*definition: object) -> str:
    """Return a suffix for C identifiers that identifies nvmath-python's version and a *definition*."""
    return hashlib.sha256(repr((importlib.metadata.version("nvmath-python"), definition)).encode()).hexdigest()[:16]
