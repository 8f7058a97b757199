# SPDX-License-Identifier: BSD-2-Clause
"""Installed packages by their metadata: what this project requires of them, and their files. None is imported."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .library_files import find_fault, is_library
from .package_versions import (
    NOT_INSTALLED,
    find_distributions,
    metadata_folder,
    read_metadata,
    read_record,
    version_in,
    version_of,
)
from .pip_commands import (
    has_record,
    install_command,
    install_version,
    installer_of,
    pip,
    reinstall_command,
    toolkit_packages,
)

_OURS = "numba-cuda-autolink"
IS_DAMAGED = "is not as it was installed: "
# In cuda-core, by the major version of cuda-bindings.
_FOLDER_OF_OTHER_CUDA = {"12": "cu13", "13": "cu12"}
_FIRST = (_OURS, "numba-cuda")
_LEFT_OUT = {"test", "tests", "doc", "docs", "examples", "benchmarks", "stubs"}


def requirements(package: str = _OURS) -> dict[str, str]:
    """Return what *package* requires here, without extras, by the names of the packages: ``{"numpy": "numpy<2.5"}``."""
    try:
        distribution = find_distributions(package)[0]
    except importlib.metadata.PackageNotFoundError:
        return {}
    if not read_metadata(distribution, "METADATA"):
        return {}
    found = {}
    for text in distribution.requires or []:
        with contextlib.suppress(ValueError):  # of a line in damaged metadata
            each = _requirement(text)
            if each.marker is None or each.marker.evaluate({"extra": ""}):
                found[each.name] = f"{each.name}{each.specifier}"
    return found


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
    for package in required_packages():
        for name, needed in requirements(package).items():
            if (text := describe_unmet(name, version_of(name), needed, package)) is not None:
                # pip takes the versions of what both require from this project.
                is_ours = package in _FIRST or name in _FIRST
                yield UnmetRequirement(name, text, install_command() if is_ours else install_version(needed))


def required_packages(*first: str) -> list[str]:
    """Return the packages *first*, by default this project and numba-cuda, and all that they require, also through
    others. Raise `ImportError` without packaging."""
    packages = list(first or _FIRST)
    for package in packages:
        packages += [name for name in requirements(package) if name not in packages]
    return packages


def top_level_paths(package: str) -> dict[str, str]:
    """Return where the modules and the folders of modules of an installed *package* are, by the names under which
    Python imports them: ``{"numpy": "/…/site-packages/numpy"}``."""
    found = {}
    for file, _, _, path in _files(package):
        top, _, below = file.partition("/")
        name = top.removesuffix(".py")
        if file.endswith(".py") and name.isidentifier():
            found[name] = path.removesuffix(f"/{below}") if below else path
    if package == _OURS:  # which has files in Numba's folders, too
        return {name: path for name, path in found.items() if name == "numba_cuda_autolink"}
    return found


def stale_metadata() -> Iterator[tuple[str, str]]:
    """Yield each package of which older metadata are in the folder of those in use, as after an installation that was
    interrupted, and the path of the older ones."""
    for package in required_packages():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            _, *older = find_distributions(package)
            yield from ((package, folder) for each in older if (folder := metadata_folder(each)))


def describe_unmet(name: str, version: str, needed: str, package: str = _OURS) -> str | None:
    """Return how the *version* of the package *name* does not meet what *package* needs; ``None`` if it does."""
    if version == NOT_INSTALLED:
        return f"{name} is not installed"
    if meets(version, needed):
        return None
    return f"{name} {version} is installed, and {needed} is needed{f' by {package}' if package != _OURS else ''}"


def dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def describe_older_nvjitlink(nvrtc: tuple[int, ...], nvjitlink: tuple[int, ...]) -> tuple[str, str]:
    """Return that the version of NVRTC, ``(major, minor)``, is newer than that of nvJitLink, and what to do."""
    made, links = dotted(nvrtc), dotted(nvjitlink)
    package = f"nvidia-nvjitlink{'-cu12' if nvrtc[0] == 12 else ''}"
    fix = f"{pip('install')} '{package}=={made}.*'"
    return (
        f"NVRTC {made} is newer than nvJitLink {links}, which rejects its LTO-IR",
        fix if version_of(package) != NOT_INSTALLED else install_command(),
    )


def describe_other_headers(folder: str, headers: tuple[int, ...], nvrtc: tuple[int, ...]) -> tuple[str, str]:
    """Return that the headers in *folder* are of another major version of CUDA than NVRTC, and what to do; empty texts
    if they are not. Versions are ``(major, minor)``."""
    if headers[0] == nvrtc[0]:
        return "", ""
    what = f"the headers in {folder} are of CUDA {dotted(headers)}, NVRTC is of CUDA {dotted(nvrtc)}"
    return what, install_command()


def has_file_in(package: str, folders: Iterable[str]) -> bool:
    """Whether an installed *package* has one of these files, or a file in one of these *folders*."""
    places = [os.path.realpath(each) for each in folders]
    files = [os.path.realpath(path) for *_, path in _files(package)]
    return any(file == place or file.startswith(f"{place}{os.sep}") for file in files for place in places)


def hiding_files(packages: Iterable[str], path: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each module or folder of modules of installed *packages* that Python, on its *path*, finds
    elsewhere, and the file that it finds."""
    places: dict[str, set[str]] = {}
    for package in packages:
        for name, place in top_level_paths(package).items():
            places.setdefault(name, set()).add(os.path.realpath(place))
    places.pop(__name__.partition(".")[0], None)  # in a checkout, that of the working folder runs
    for name, known in sorted(places.items()):
        found = importlib.machinery.PathFinder.find_spec(name, path)
        if found and found.origin and known.isdisjoint(map(os.path.realpath, _searched(found))):
            yield name, found.origin


def _searched(spec: importlib.machinery.ModuleSpec) -> list[str]:
    """Return the folders of a package, or the file of a module."""
    if spec.submodule_search_locations is not None:
        return list(spec.submodule_search_locations)
    return [(spec.origin or "").removesuffix("c")]


def describe_damage(package: str, damage: str) -> str:
    """Return what is wrong with an installed *package*, of which `damaged_files` yields this *damage*."""
    return f"{package} {version_of(package)} {IS_DAMAGED}{damage}"


def damaged_files(package: str, is_counted: Callable[[str], bool] = lambda name: True) -> Iterator[str]:
    """Yield the files of an installed *package* that are missing, or libraries that are not whole, with what is wrong;
    of this project and of NVIDIA's packages, which nobody edits, also those whose content has changed.

    Only files count that are needed to build kernels, and whose names in the package are *counted*.
    """
    if not has_record(package) and is_counted("RECORD"):
        yield _fault_of_record(package)
    for name, digest, size, path in _needed_files(package):
        if not is_counted(name):
            continue
        if not os.path.exists(path):
            if not os.path.exists(f"{path}c"):  # compiled, and then removed
                yield f"{name} is missing"
        elif fault := _fault(name, path) or (_is_never_edited(package) and _change(path, digest, size)):
            yield f"{name} {fault}"


def edited_files(package: str) -> Iterator[str]:
    """Yield the other files of an installed *package* whose content has changed, with how. conda changes libraries: of
    its packages there are none."""
    if _is_never_edited(package) or installer_of(package) == "conda":
        return
    for name, digest, size, path in _needed_files(package):
        if os.path.exists(path) and not _fault(name, path) and (change := _change(path, digest, size)):
            yield f"{name} {change}"


def _is_never_edited(package: str) -> bool:
    return package == _OURS or package.startswith("nvidia-")


def _needed_files(package: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, digest, size and path of each file of an installed *package* that kernels can need."""
    return (each for each in _files(package) if each[1] and _is_needed(package, each[0]))


def _fault_of_record(package: str) -> str:
    try:
        read_record(find_distributions(package)[0])
    except ValueError:
        return "its RECORD is damaged"
    return "its RECORD is missing"


def _fault(name: str, path: str) -> str:
    try:
        if name.endswith(".dist-info/METADATA"):
            with open(path, encoding="utf-8") as file:
                return "" if version_in(file.read()) else "has no version"
        return find_fault(path) if is_library(name) else ""
    except ValueError:
        return "is not UTF-8"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _change(path: str, digest: str, size: str) -> str:
    """Return how the file *path* differs from the one that was installed; empty if it does not."""
    try:
        found = os.path.getsize(path)
        if size and found != int(size):
            return f"has {found} bytes, and had {size}"
        return "" if _has_digest(path, digest) else "has other content"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


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
        distribution = find_distributions(package)[0]
    except importlib.metadata.PackageNotFoundError:
        return
    with contextlib.suppress(ValueError):  # of a damaged RECORD
        for name, digest, size in read_record(distribution):
            yield name, digest, size, str(distribution.locate_file(name))


def _is_needed(package: str, name: str) -> bool:
    """Return whether kernels can need the file *name* of a *package*. Small images leave out others: tests, types for
    editors, licences, programs, static libraries."""
    *folders, base = name.split("/")
    if base == "METADATA":
        return True
    if ".." in folders or _LEFT_OUT.intersection(folders) or any(each.endswith(".dist-info") for each in folders):
        return False
    if is_library(base) and ".alt." not in base:
        return True
    if package == "cuda-core" and _FOLDER_OF_OTHER_CUDA.get(version_of("cuda-bindings").partition(".")[0]) in folders:
        return False
    if package.startswith("nvidia-"):
        return "include" in folders or base.endswith(".bc")
    if package == _OURS and "templates" in folders:
        return True
    return base.endswith((".py", ".pth", ".h", ".hpp", ".cuh"))


def _has_digest(path: str, digest: str) -> bool:
    kind, _, expected = digest.partition("=")
    with open(path, "rb") as file:
        found = hashlib.new(kind)
        while block := file.read(1 << 20):
            found.update(block)
    return base64.urlsafe_b64encode(found.digest()).rstrip(b"=").decode() == expected
