# SPDX-License-Identifier: BSD-2-Clause
"""Installed packages by their metadata: what this project requires of them, and their files. None is imported."""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import importlib.metadata
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .package_versions import NOT_INSTALLED, version_of

_OURS = "numba-cuda-autolink"
# The packages of CUDA 13 are called so, those of CUDA 12 with the suffix -cu12.
_TOOLKIT = (
    *("nvidia-cuda-cccl", "nvidia-cuda-crt", "nvidia-cuda-nvcc", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime"),
    *("nvidia-nvfatbin", "nvidia-nvjitlink", "nvidia-nvvm"),
)
_LEFT_OUT = {"test", "tests", "doc", "docs", "examples", "benchmarks", "stubs"}


def requirements(package: str = _OURS) -> dict[str, str]:
    """Return what *package* requires here, without extras, by the names of the packages: ``{"numpy": "numpy<2.5"}``."""
    try:
        listed = map(_requirement, importlib.metadata.requires(package) or [])
    except importlib.metadata.PackageNotFoundError:
        return {}
    needed = [each for each in listed if each.marker is None or each.marker.evaluate({"extra": ""})]
    return {each.name: f"{each.name}{each.specifier}" for each in needed}


def _requirement(text: str) -> Any:
    """Return the requirement *text*, read by packaging or the copy of it in pip. Raise `ImportError` without both."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        from pip._vendor.packaging.requirements import Requirement  # type: ignore[assignment]
    return Requirement(text)


def meets(version: str, requirement: str) -> bool:
    """Whether a *version* is within the bounds of a *requirement*."""
    return _requirement(requirement).specifier.contains(version, prereleases=True)


class UnmetRequirement(NamedTuple):
    """The *name* of a package that does not fit what an installed package requires, as *text*, with the *fix*."""

    name: str
    text: str
    fix: str


def unmet_requirements() -> Iterator[UnmetRequirement]:
    """Yield each package that does not fit what this project, and each package that it requires, requires."""
    packages = [_OURS, "numba-cuda"]
    for package in packages:
        for name, needed in requirements(package).items():
            if (text := describe_unmet(name, version_of(name), needed, package)) is not None:
                # pip takes the versions of what both require from this project.
                is_ours = package in (_OURS, "numba-cuda") or name in packages[:2]
                yield UnmetRequirement(name, text, install_command() if is_ours else f"pip install {needed!r}")
            if name not in packages:
                packages.append(name)


def describe_missing(*names: str) -> str:
    """Return which of the packages *names* does not fit what is required; empty if all fit, or that is unknown."""
    with contextlib.suppress(ImportError):  # of packaging
        return next((each.text for each in unmet_requirements() if each.name in names), "")
    return ""


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
    return f"pip install '{_OURS}[cu13]'  # or [cu12], for a driver of CUDA 12"


def reinstall_command(*packages: str) -> str:
    """Return the command of pip that installs *packages* again, in their versions, from where they were installed."""
    return f"pip install --force-reinstall --no-deps {' '.join(repr(_installed_as(name)) for name in packages)}"


def _installed_as(package: str) -> str:
    """Return what pip takes for an installed *package*: of one that came from a folder or an address, that one."""
    text = importlib.metadata.distribution(package).read_text("direct_url.json")
    source = json.loads(text) if text else {}
    url = str(source.get("url", ""))
    if "vcs_info" in source:
        return f"{package} @ {source['vcs_info']['vcs']}+{url}@{source['vcs_info']['commit_id']}"
    return url.removeprefix("file://") or f"{package}=={version_of(package)}"


def toolkit_packages() -> list[str]:
    """Return the names of the installed packages with the parts of NVIDIA's toolkit that this project uses."""
    major = version_of("cuda-bindings").partition(".")[0]
    suffixes = {"12": ("-cu12",), "13": ("",)}.get(major, ("", "-cu12"))
    names = (f"{name}{suffix}" for name in _TOOLKIT for suffix in suffixes)
    return [name for name in names if version_of(name) != NOT_INSTALLED]


def damaged_files(package: str, is_counted: Callable[[str], bool] = lambda name: True) -> Iterator[str]:
    """Yield the files of an installed *package* that are missing, with what is wrong; of NVIDIA's packages, which
    nobody edits, also those whose content has changed.

    Only files count that are needed to build kernels, and whose names in the package are *counted*.
    """
    for name, digest, size, path in _files(package):
        if not (digest and _is_needed(package, name) and is_counted(name)):
            continue
        if not os.path.exists(path):
            if not os.path.exists(f"{path}c"):  # compiled, and then removed
                yield f"{name} is missing"
        elif not package.startswith("nvidia-"):
            continue
        elif size and os.path.getsize(path) != int(size):
            yield f"{name} has {os.path.getsize(path)} bytes, and had {size}"
        elif not _has_digest(path, digest):
            yield f"{name} has other content"


def repair_of_toolkit(is_counted: Callable[[str], bool]) -> str:
    """Return the command that installs the first of the `toolkit_packages` again of which a *counted* file is missing
    or damaged, and what is wrong with that file; empty if there is none."""
    for package in toolkit_packages():
        if (damage := next(damaged_files(package, is_counted), None)) is not None:
            return f"{reinstall_command(package)} ({damage}); numba-cuda-autolink doctor checks all packages"
    return ""


def package_of_file(path: str) -> str:
    """Return which of the `toolkit_packages` has the file *path*; empty if it is in none."""
    known = ((package, each) for package in toolkit_packages() for *_, each in _files(package))
    same = (
        package for package, each in known if os.path.basename(each) == os.path.basename(path) and _same(each, path)
    )
    return next(same, "")


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _files(package: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, digest, size and path of each file of an installed *package*."""
    try:
        distribution = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return
    for name, digest, size in csv.reader((distribution.read_text("RECORD") or "").splitlines()):
        yield name, digest, size, str(distribution.locate_file(name))


def _is_needed(package: str, name: str) -> bool:
    """Return whether kernels can need the file *name* of a *package*. Small images leave out others: tests, types for
    editors, licences, programs, static libraries."""
    *folders, base = name.split("/")
    if base == "METADATA":
        return True
    if ".." in folders or _LEFT_OUT.intersection(folders) or any(each.endswith(".dist-info") for each in folders):
        return False
    is_library = ".so" in base and ".alt." not in base
    if package.startswith("nvidia-"):
        return is_library or "include" in folders or base.endswith(".bc")
    return is_library or base.endswith((".py", ".pth", ".h", ".hpp", ".cuh"))


def _has_digest(path: str, digest: str) -> bool:
    kind, _, expected = digest.partition("=")
    with open(path, "rb") as file:
        found = hashlib.new(kind)
        while block := file.read(1 << 20):
            found.update(block)
    return base64.urlsafe_b64encode(found.digest()).rstrip(b"=").decode() == expected
