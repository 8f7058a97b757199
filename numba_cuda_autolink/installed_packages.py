# SPDX-License-Identifier: BSD-2-Clause
"""Installed packages by their metadata: what this project requires of them, and their files. None is imported."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
import os
from collections.abc import Iterator

from .package_versions import NOT_INSTALLED, version_of

_OURS = "numba-cuda-autolink"


def requirements(package: str = _OURS) -> dict[str, str]:
    """Return what *package* requires here, without extras, by the names of the packages: ``{"numpy": "numpy<2.5"}``."""
    from packaging.requirements import Requirement

    try:
        listed = map(Requirement, importlib.metadata.requires(package) or [])
    except importlib.metadata.PackageNotFoundError:
        return {}
    needed = [each for each in listed if each.marker is None or each.marker.evaluate({"extra": ""})]
    return {each.name: f"{each.name}{each.specifier}" for each in needed}


def meets(version: str, requirement: str) -> bool:
    """Whether a *version* is within the bounds of a *requirement*."""
    from packaging.requirements import Requirement

    return Requirement(requirement).specifier.contains(version, prereleases=True)


def unmet_requirements() -> Iterator[str]:
    """Yield each package that does not fit what this project and numba-cuda require, as text."""
    for package in (_OURS, "numba-cuda"):
        for name, needed in requirements(package).items():
            if (text := describe_unmet(name, version_of(name), needed, package)) is not None:
                yield text


def describe_unmet(name: str, version: str, needed: str, package: str = _OURS) -> str | None:
    """Return how the *version* of the package *name* does not meet what *package* needs; ``None`` if it does."""
    if version == NOT_INSTALLED:
        return f"{name} is not installed"
    if meets(version, needed):
        return None
    return f"{name} {version} is installed, and {needed} is needed{f' by {package}' if package != _OURS else ''}"


def install_command() -> str:
    """Return the command of pip that installs what this project requires, all in versions that fit each other."""
    major = version_of("cuda-bindings").partition(".")[0]
    if major in ("12", "13"):
        return f"pip install '{_OURS}[cu{major}]'"
    return f"pip install '{_OURS}[cu13]' or, for a driver of CUDA 12, '{_OURS}[cu12]'"


def damaged_files(package: str) -> Iterator[str]:
    """Yield the files of an installed *package* that are missing, with what is wrong; of NVIDIA's packages, which
    nobody edits, also those whose content has changed."""
    try:
        distribution = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return
    for name, digest, size in csv.reader((distribution.read_text("RECORD") or "").splitlines()):
        if not digest or {"test", "tests"} & {*name.split("/")}:
            continue
        path = str(distribution.locate_file(name))
        if not os.path.exists(path):
            yield f"{name} is missing"
        elif not package.startswith("nvidia-"):
            continue
        elif size and os.path.getsize(path) != int(size):
            yield f"{name} has {os.path.getsize(path)} bytes, and had {size}"
        elif not _has_digest(path, digest):
            yield f"{name} has other content"


def _has_digest(path: str, digest: str) -> bool:
    kind, _, expected = digest.partition("=")
    with open(path, "rb") as file:
        found = hashlib.new(kind)
        while block := file.read(1 << 20):
            found.update(block)
    return base64.urlsafe_b64encode(found.digest()).rstrip(b"=").decode() == expected


def nvidia_packages() -> list[str]:
    """Return the names of the installed packages that have libraries and headers of NVIDIA."""
    names = {each.metadata["Name"] for each in importlib.metadata.distributions()}
    return sorted(name for name in names if name and name.startswith("nvidia-"))
