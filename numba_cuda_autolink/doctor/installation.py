# SPDX-License-Identifier: BSD-2-Clause
"""What ``doctor`` reads of the installed packages, once, and imports none of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ..hidden_modules import hidden_modules, moved_folders
from ..installed_packages import (
    UnmetRequirement,
    damaged_files,
    edited_files,
    hiding_files,
    required_packages,
    requirements,
    stale_metadata,
    unmet_requirements,
)
from ..package_versions import NOT_INSTALLED, metadata_folder, package_versions, version_of
from ..pip_commands import folder_of_pythonpath, hidden_copy, toolkit_packages

OURS = "numba-cuda-autolink"
_KERNELS = "numba-cuda"  # with what it requires, all that a kernel needs of Python's packages besides this project


@dataclass(frozen=True)
class HiddenCopy:
    """A *folder* of PYTHONPATH has a copy of a package, which hides the *version* in the *other* folder."""

    folder: str
    version: str
    other: str


@dataclass(frozen=True)
class Installation:
    """The installed packages and their files, as they were read.

    The keys of all mappings are names of packages, but of *hiding* and *hiding_python*: names of modules, of which each
    has the file that Python imports in place of it, at least in programs of the working folder.
    """

    versions: dict[str, str]
    unmet: tuple[UnmetRequirement, ...] = ()
    closures: dict[str, frozenset[str]] = field(default_factory=dict)  # a package, and what it requires
    hidden_copies: dict[str, HiddenCopy] = field(default_factory=dict)
    damaged: dict[str, tuple[str, ...]] = field(default_factory=dict)  # files, with what is wrong
    edited: dict[str, tuple[str, ...]] = field(default_factory=dict)
    stale: tuple[tuple[str, str], ...] = ()  # packages, and the folders of older metadata of them
    hiding: dict[str, str] = field(default_factory=dict)
    hiding_python: dict[str, str] = field(default_factory=dict)

    def needed_by(self, package: str) -> frozenset[str]:
        """Return the packages that an import of *package* needs."""
        needed = self.closures.get(_KERNELS if package == OURS else package, frozenset())
        return needed | {package}


def read_installation(versions: dict[str, str] | None = None, checked: Iterable[str] | None = None) -> Installation:
    """Return what is known of the installed packages, or of those of these *versions*. The files of *checked* packages
    are read, by default of all that this project uses."""
    versions = installed_versions() if versions is None else versions
    if checked is None:
        checked = dict.fromkeys((*versions, *_required_packages(), *toolkit_packages()))
    checked = [name for name in checked if version_of(name) != NOT_INSTALLED]
    hidden = {name: each for name in checked if (each := _hidden_copy(name))}
    path = [os.getcwd(), *moved_folders, *sys.path]
    read = Installation(
        versions,
        hidden_copies=hidden,
        damaged={name: files for name in checked if (files := tuple(damaged_files(name)))},
        edited={name: files for name in checked if (files := tuple(edited_files(name)))},
        hiding=dict(hiding_files(_required_packages(), path)),
        hiding_python=hidden_modules(sys.stdlib_module_names, path),
    )
    try:
        closures = {name: frozenset(required_packages(name)) for name in versions if name != OURS}
        return replace(read, unmet=tuple(unmet_requirements()), stale=tuple(stale_metadata()), closures=closures)
    except ImportError:  # of packaging, which reads what packages require
        return read


def installed_versions() -> dict[str, str]:
    """Return the versions of what this project requires and builds on."""
    try:
        required = list(requirements())
    except ImportError:  # of packaging, which reads them
        required = ["packaging"]
    mlir = ("numba-cuda-mlir",) if version_of("numba-cuda-mlir") != NOT_INSTALLED else ()
    return {**package_versions(), **{name: version_of(name) for name in (*required, *mlir)}}


def _required_packages() -> list[str]:
    try:
        return required_packages()
    except ImportError:  # of packaging
        return list(package_versions())


def _hidden_copy(package: str) -> HiddenCopy | None:
    if (hidden := hidden_copy(package)) is None:
        return None
    return HiddenCopy(folder_of_pythonpath(package), hidden.version, os.path.dirname(metadata_folder(hidden)))
