# SPDX-License-Identifier: BSD-2-Clause
"""The versions of the packages that matter. Nothing of them is imported."""

from __future__ import annotations

import contextlib
import importlib.metadata

_CUDA_PACKAGES = ("cuda-core", "cuda-bindings", "cuda-pathfinder")
_PACKAGES = ("numba-cuda-autolink", "numba-cuda", "numba", "llvmlite", "numpy", *_CUDA_PACKAGES)


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that matter, or ``"not installed"``."""
    found = dict.fromkeys(_PACKAGES, "not installed")
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
