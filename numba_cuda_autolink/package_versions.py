# SPDX-License-Identifier: BSD-2-Clause
"""The versions of the packages that matter. Nothing of them is imported."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re

_CUDA_PACKAGES = ("cuda-core", "cuda-bindings", "cuda-pathfinder")
_PACKAGES = ("numba-cuda-autolink", "numba-cuda", "numba", "llvmlite", "numpy", *_CUDA_PACKAGES)
NOT_INSTALLED = "not installed"


def find_distributions(package: str) -> list[importlib.metadata.Distribution]:
    """Return an installed *package*, as its metadata describe it; then any older metadata of it in the same folder.
    Raise `PackageNotFoundError` if it is not installed."""
    found = list(importlib.metadata.distributions(name=package))
    if not found:
        raise importlib.metadata.PackageNotFoundError(package)
    place = os.path.dirname(metadata_folder(found[0]))
    same = [each for each in found if os.path.dirname(metadata_folder(each)) == place]
    return sorted(same, key=lambda each: _numbers(metadata_folder(each)), reverse=True)


def metadata_folder(distribution: importlib.metadata.Distribution) -> str:
    """Return the path of the folder with the metadata of an installed package; empty if they are not in a folder."""
    return str(getattr(distribution, "_path", ""))


def _numbers(folder: str) -> list[int]:
    """Return the numbers of the version in the name of a folder of metadata."""
    version = os.path.basename(folder).removesuffix(".dist-info").rpartition("-")[2]
    return [int(number) for number in re.findall(r"\d+", version)]


@functools.cache
def version_of(package: str) -> str:
    """Return the version of an installed *package*, or ``"not installed"``."""
    try:
        distribution = find_distributions(package)[0]
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
