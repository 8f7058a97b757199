# SPDX-License-Identifier: BSD-2-Clause
"""The versions of the packages that matter. Nothing of them is imported."""

from __future__ import annotations

import functools
import importlib.metadata

_CUDA_PACKAGES = ("cuda-core", "cuda-bindings", "cuda-pathfinder")
_PACKAGES = ("numba-cuda-autolink", "numba-cuda", "numba", "llvmlite", "numpy", *_CUDA_PACKAGES)
NOT_INSTALLED = "not installed"


@functools.cache
def version_of(package: str) -> str:
    """Return the version of an installed *package*, or ``"not installed"``."""
    try:
        distribution = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return NOT_INSTALLED
    if distribution.read_text("METADATA") or distribution.read_text("PKG-INFO"):
        return distribution.version
    # Without METADATA, the name of the folder that holds it has the version.
    folder = (distribution.read_text("RECORD") or "").partition(".dist-info/")[0].rpartition("\n")[2]
    return folder.rpartition("-")[2] or NOT_INSTALLED


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that matter, or ``"not installed"``."""
    return {name: version_of(name) for name in _PACKAGES}
