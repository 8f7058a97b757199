# SPDX-License-Identifier: BSD-2-Clause
"""``doctor``: prints what is installed, where libraries were found, and known conflicts.

It works where Numba is missing or broken.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import operator
import os
import platform
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..package_versions import package_versions, version_of
from ..printable_texts import number_of
from ..settings import wrong_settings

_CUDA_PACKAGES = ("cuda-core", "cuda-bindings", "cuda-pathfinder")
_LIBRARIES = ("nvrtc", "nvvm", "nvJitLink", "cudart", "nvfatbin")
_HEADERS = ("cudart", "cccl")


# What numba-cuda is built on, in the order of its imports, and the packages that have it.
_IMPORTED = (
    ("numpy", "numpy"),
    ("llvmlite.binding", "llvmlite"),
    ("numba", "numba"),
    ("cuda.pathfinder", "cuda-pathfinder"),
    ("cuda.bindings.driver", "cuda-bindings"),
    ("cuda.core", "cuda-core"),
    ("numba_cuda", "numba-cuda"),
    ("numba.cuda.cudadrv.driver", "numba-cuda"),
    ("numba.cuda.autolink.cache", "numba-cuda-autolink"),
)
_NOT_INSTALLED = "not installed"
_NOT_LOADED = "cannot be loaded"
FORMAT = 1  # of the JSON
_WITH_CUDA = "pip install 'numba-cuda-autolink[cu13]' or, for a driver of CUDA 12, 'numba-cuda-autolink[cu12]'"


class Broken(NamedTuple):
    """A *module* of a *package* that cannot be imported, and the *error*, as text."""

    module: str
    package: str
    error: str


class Conflict(NamedTuple):
    """A combination that is known not to work, and how to fix it."""

    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what}\n    fix: {self.fix}"


def add_to(commands: Any) -> None:
    parser = commands.add_parser("doctor", help="show versions, libraries, and known conflicts with their fixes")
    parser.description = (
        "Print the versions of all packages, where libraries were found, and known conflicts. It works where Numba or"
        " CUDA is missing or broken. The exit code is 1 if there are conflicts."
    )
    parser.add_argument("--json", action="store_true", help="write JSON, for tools")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the diagnosis. Return 1 if there are conflicts, else 0."""
    installed = {**package_versions(), **{name: version_of(name) for name in _requirements()}}
    broken = _first_that_fails()
    found = list(conflicts(installed, broken))
    python = {
        "version": platform.python_version(),
        "prefix": sys.prefix,
        "system": f"{platform.system()} {platform.machine()}",
    }
    libraries, state = _libraries(), _state(broken)
    if options.json:
        diagnosis = {
            "format": FORMAT,
            "python": python,
            "packages": installed,
            "cuda_libraries": libraries,
            "numba_cuda": state,
            "conflicts": [conflict._asdict() for conflict in found],
        }
        print(json.dumps(diagnosis, indent=2))
        return int(bool(found))
    title = "Python {version} in {prefix}, {system}".format(**python)
    for name, states in {title: installed, "CUDA libraries": libraries, "numba-cuda": state}.items():
        print(name, *(f"  {key:20} {value}" for key, value in states.items()), sep="\n")
    count = number_of(len(found), "conflict") if found else "no known conflicts"
    print(count, *(f"  {conflict}" for conflict in found), sep="\n")
    return int(bool(found))


def _libraries() -> dict[str, str]:
    """Return where each library and header directory of the CUDA toolkit is, and what the driver is for."""
    try:
        from cuda import pathfinder
    except ImportError as error:
        return {"cuda.pathfinder": f"cannot be imported: {error}"}
    found = {name: _find(pathfinder.load_nvidia_dynamic_lib, name) for name in _LIBRARIES}
    for name in _HEADERS:
        found[f"{name} headers"] = _find(pathfinder.locate_nvidia_header_directory, name)
    driver = _driver_version()
    found["driver"] = f"for CUDA {_dotted(driver)}" if driver else "not found"
    return found


def conflicts(installed: dict[str, str], broken: Broken | None = None) -> Iterator[Conflict]:
    """Yield the known conflicts among the *installed* versions and in the environment; *broken* is the first module
    that cannot be imported."""
    yield from (others := list(_known_conflicts(installed)))
    if broken is not None and installed.get(broken.package) != _NOT_INSTALLED:
        fix = _reinstall(f"{broken.package}=={installed[broken.package]}")
        if others:
            fix = f"fix what is listed above; if that does not help, {fix}"
        yield Conflict(f"{broken.module} cannot be imported: {broken.error}", fix)
    if broken is None:
        yield from _cache_conflicts()
    if broken is None or broken.package not in _CUDA_PACKAGES:
        yield from _toolkit_conflicts(_parse(installed.get("cuda-bindings", "")))


def _known_conflicts(installed: dict[str, str]) -> Iterator[Conflict]:
    """Yield the conflicts that the *installed* versions and the environment show."""
    numba_cuda, numba = (_parse(installed.get(name, "")) for name in ("numba-cuda", "numba"))
    required = _requirements()
    for name, version in installed.items():
        needed = required.get(name, name)
        if version == _NOT_INSTALLED:
            is_of_cuda = name in ("numba-cuda", *_CUDA_PACKAGES)
            yield Conflict(f"{name} is not installed", _WITH_CUDA if is_of_cuda else f"pip install '{needed}'")
        elif not _meets(version, needed):
            yield Conflict(f"{name} {version} is installed, and {needed} is needed", f"pip install '{needed}'")
        elif missing := _missing_files(name):
            what = f"{name} {version} lacks {number_of(len(missing), 'file')} of its own: {missing[0]}"
            yield Conflict(what, _reinstall(f"{name}=={version}"))
    if numba_cuda and numba >= (0, 66) and numba_cuda < (0, 30, 4):
        what = f"Numba {installed['numba']} with numba-cuda {installed['numba-cuda']}, which needs an older one"
        yield Conflict(what, "pip install 'numba<0.66', or a newer numba-cuda")
    if os.environ.get("NUMBA_CUDA_AUTOLINK") == "0":
        yield Conflict("NUMBA_CUDA_AUTOLINK=0 turns this project off", "unset it")
    yield from itertools.starmap(Conflict, wrong_settings(os.environ))
    if os.environ.get("NUMBA_CUDA_USE_NVIDIA_BINDING") == "0":
        yield Conflict("NUMBA_CUDA_USE_NVIDIA_BINDING=0 is a setting of an older numba-cuda", "unset it")


def _missing_files(package: str) -> list[str]:
    """Return the modules and libraries of an installed *package* that are not there."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    needed = (each for each in files if each.suffix in (".py", ".so") and not {"test", "tests"} & {*each.parts})
    return [str(each) for each in needed if not os.path.exists(each.locate())]


def _reinstall(requirement: str) -> str:
    return f"pip install --force-reinstall --no-deps '{requirement}'"


def _requirements() -> dict[str, str]:
    """Return what this project requires, by the names of the packages: ``{"numpy": "numpy<2.5"}``."""
    try:
        listed = importlib.metadata.requires("numba-cuda-autolink") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    return {re.split(r"[^\w.-]", each)[0]: each for each in listed if ";" not in each}  # those of extras have markers


def _meets(version: str, requirement: str) -> bool:
    """Whether a *version* is within the bounds of a *requirement*."""
    compare = {">=": operator.ge, "<": operator.lt}
    bounds = re.findall(r"(>=|<)([\d.]+)", requirement)
    return all(compare[sign](_parse(version), _parse(bound)) for sign, bound in bounds)


def _cache_conflicts() -> Iterator[Conflict]:
    from numba.cuda.core import config

    if not config.ENABLE_CUDASIM:
        from numba.cuda.autolink import cache

        if not (found := cache.info()).writable:
            fix = "let NUMBA_CUDA_AUTOLINK_CACHE_DIR name a folder that only you can write to"
            yield Conflict(f"the cache {found.directory} cannot be used", fix)


def _toolkit_conflicts(bindings: tuple[int, ...]) -> Iterator[Conflict]:
    nvrtc, nvjitlink, driver = _version("nvrtc", "nvrtcVersion"), _version("nvjitlink", "version"), _driver_version()
    libraries = (("NVRTC", "nvrtc", "cuda-nvrtc", nvrtc), ("nvJitLink", "nvJitLink", "nvjitlink", nvjitlink))
    for name, library, package, version in libraries:
        if version is None and bindings:
            state = _libraries().get(library, "")
            wheel = f"nvidia-{package}{'-cu12' if bindings[0] == 12 else ''}"
            is_damaged = state.startswith(_NOT_LOADED) or version_of(wheel) != _NOT_INSTALLED
            fix = _reinstall(wheel) if is_damaged else f"pip install 'numba-cuda-autolink[cu{bindings[0]}]'"
            yield Conflict(f"{name} {state if state.startswith(_NOT_LOADED) else 'was not found'}", fix)
    if nvrtc and nvjitlink and nvrtc > nvjitlink:
        what = f"NVRTC {_dotted(nvrtc)} is newer than nvJitLink {_dotted(nvjitlink)}, which rejects its LTO-IR"
        yield Conflict(what, "install both for one CUDA version (pip install -U nvidia-nvjitlink)")
    if driver and nvrtc and nvrtc[0] > driver[0]:
        what = f"the driver is for CUDA {_dotted(driver)}, the libraries are for CUDA {_dotted(nvrtc)}"
        extra = f"numba-cuda-autolink[cu{driver[0]}]"
        yield Conflict(what, f"update the driver, or install the CUDA {driver[0]} libraries ({extra})")


def _state(broken: Broken | None) -> dict[str, str]:
    if broken is not None:
        return {"import": f"failed at {broken.module}: {broken.error}"}
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM:
        return {"simulator": "on (NUMBA_ENABLE_CUDASIM): nothing is compiled or linked"}
    from numba import cuda
    from numba.cuda.autolink import cache
    from numba.cuda.autolink.frontends.numba_cuda import activation as numba_cuda

    gpus = list(cuda.gpus) if cuda.is_available() else []
    named = (f"{os.fsdecode(gpu.name)}, compute capability {_dotted(gpu.compute_capability)}" for gpu in gpus)
    return {
        "autolink": "active" if numba_cuda.active() else "not active",
        "GPU": ", ".join(named) or "none, or no driver",
        "cache": str(cache.info()).splitlines()[0].removeprefix("cache in "),
    }


def _first_that_fails() -> Broken | None:
    """Import numba-cuda's dependencies, then numba-cuda. Return the first that cannot be imported."""
    for module, package in _IMPORTED:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy warns of a second attempt
                importlib.import_module(module)
        except Exception as error:
            return Broken(module, package, f"{type(error).__name__}: {error}")
    return None


def _find(find: Callable[..., Any], *name: str) -> str:
    try:
        found = find(*name)
        return str(getattr(found, "abs_path", found))
    except Exception as error:  # each library and platform raises another one
        return "not found" if "NotFound" in type(error).__name__ else f"{_NOT_LOADED}: {error}"


def _driver_version() -> tuple[int, int] | None:
    try:
        from cuda.bindings import driver

        error, version = driver.cuDriverGetVersion()
    except Exception:
        return None
    return None if int(error) else (version // 1000, version % 1000 // 10)


def _version(module: str, function: str) -> tuple[int, int] | None:
    """Return ``(major, minor)`` of a library, or ``None`` if it was not found."""
    try:
        *_, major, minor = getattr(importlib.import_module(f"cuda.bindings.{module}"), function)()
    except Exception:
        return None
    return major, minor


def _parse(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; empty if there are none."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", version)[0])))


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
