# SPDX-License-Identifier: BSD-2-Clause
"""``doctor``: prints what is installed, where libraries were found, and known conflicts.

This module imports nothing of Numba, which may be broken, and is run by its path where Numba cannot be imported.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from numba_cuda_autolink.package_versions import package_versions

_LIBRARIES = ("nvrtc", "nvvm", "nvJitLink", "cudart", "nvfatbin")
_HEADERS = ("cudart", "cccl")


class Conflict(NamedTuple):
    """A combination that is known not to work, and how to fix it."""

    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what}\n    fix: {self.fix}"


def add_to(commands: Any) -> None:
    """Add the command to a parser's *commands*."""
    parser = commands.add_parser(
        "doctor",
        help="show versions, libraries, and known conflicts with their fixes",
        description="Print the versions of all packages, where libraries were found, and known conflicts. The exit code"
        " is 1 if there are conflicts.",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace | None = None) -> int:
    """Print the diagnosis. Return 1 if there are conflicts, else 0."""
    python = f"Python {platform.python_version()} in {sys.prefix}, {platform.system()} {platform.machine()}"
    installed, import_error = package_versions(), _import_error()
    sections = {python: installed, "CUDA libraries": _libraries(), "numba-cuda": _state(import_error)}
    for title, states in sections.items():
        print(title, *(f"  {name:20} {state}" for name, state in states.items()), sep="\n")
    found = list(conflicts(installed, import_error))
    count = f"{len(found)} conflict{'s'[: len(found) != 1]}" if found else "no known conflicts"
    print(count, *(f"  {conflict}" for conflict in found), sep="\n")
    return int(bool(found))


def _libraries() -> dict[str, str]:
    """Return where each library and header directory of the CUDA toolkit is, and what the driver is for."""
    try:
        from cuda import pathfinder
    except ImportError as error:
        return {"cuda.pathfinder": f"cannot be imported: {error}"}
    found = {name: _found(pathfinder.load_nvidia_dynamic_lib, name) for name in _LIBRARIES}
    for name in _HEADERS:
        found[f"{name} headers"] = _found(pathfinder.locate_nvidia_header_directory, name)
    driver = _driver_version()
    found["driver"] = f"for CUDA {_dotted(driver)}" if driver else "not found"
    return found


def conflicts(installed: dict[str, str], import_error: str = "") -> Iterator[Conflict]:
    """Yield the known conflicts among the *installed* versions and in the environment."""
    numba_cuda, numba, numpy = (_parsed(installed.get(name, "")) for name in ("numba-cuda", "numba", "numpy"))
    if not numba_cuda:
        yield Conflict("numba-cuda is not installed", "pip install 'numba-cuda-autolink[cu13]' (or cu12)")
    else:
        named = f"numba-cuda {installed['numba-cuda']}"
        if numpy >= (2, 5) and numba_cuda < (0, 31):
            what = f"NumPy {installed['numpy']} with {named}, which uses np.row_stack"
            yield Conflict(what, "pip install 'numpy<2.5'")
        if numba >= (0, 66) and numba_cuda < (0, 30, 4):
            what = f"Numba {installed['numba']} with {named}, which needs an older one"
            yield Conflict(what, "pip install 'numba<0.66', or a newer numba-cuda")
        if numba_cuda < (0, 30, 2):
            yield Conflict(f"{named} is older than 0.30.2", "pip install -U numba-cuda")
    if os.environ.get("NUMBA_CUDA_AUTOLINK") == "0":
        yield Conflict("NUMBA_CUDA_AUTOLINK=0 turns this project off", "unset it")
    if os.environ.get("NUMBA_CUDA_USE_NVIDIA_BINDING") == "0":
        yield Conflict("NUMBA_CUDA_USE_NVIDIA_BINDING=0 is a setting of an older numba-cuda", "unset it")
    if import_error:
        fix = "fix the other conflicts; if there are none, reinstall it"
        yield Conflict(f"numba.cuda cannot be imported: {import_error}", fix)
    yield from _toolkit_conflicts(_parsed(installed.get("cuda-bindings", "")))


def _toolkit_conflicts(bindings: tuple[int, ...]) -> Iterator[Conflict]:
    nvrtc, nvjitlink, driver = _version("nvrtc", "nvrtcVersion"), _version("nvjitlink", "version"), _driver_version()
    for name, version in (("NVRTC", nvrtc), ("nvJitLink", nvjitlink)):
        if version is None and bindings:
            yield Conflict(f"{name} was not found", f"pip install 'numba-cuda-autolink[cu{bindings[0]}]'")
    if nvrtc and nvjitlink and nvrtc > nvjitlink:
        what = f"NVRTC {_dotted(nvrtc)} is newer than nvJitLink {_dotted(nvjitlink)}, which rejects its LTO-IR"
        yield Conflict(what, "install both for one CUDA version (pip install -U nvidia-nvjitlink)")
    if driver and nvrtc and nvrtc[0] > driver[0]:
        what = f"the driver is for CUDA {_dotted(driver)}, the libraries are for CUDA {_dotted(nvrtc)}"
        extra = f"numba-cuda-autolink[cu{driver[0]}]"
        yield Conflict(what, f"update the driver, or install the CUDA {driver[0]} libraries ({extra})")


def _state(import_error: str) -> dict[str, str]:
    """Return the state of numba-cuda with this project."""
    if import_error:
        return {"import": f"failed: {import_error}"}
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM:
        return {"simulator": "on (NUMBA_ENABLE_CUDASIM): nothing is compiled or linked"}
    from numba import cuda

    from .. import cache
    from ..frontends import numba_cuda

    gpus = list(cuda.gpus) if cuda.is_available() else []
    named = (f"{os.fsdecode(gpu.name)}, compute capability {_dotted(gpu.compute_capability)}" for gpu in gpus)
    return {
        "autolink": "active" if numba_cuda.active() else "not active",
        "GPU": ", ".join(named) or "none, or no driver",
        "cache": str(cache.info()).splitlines()[0].removeprefix("cache in "),
    }


def _import_error() -> str:
    try:
        import numba.cuda  # noqa: F401
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _found(find: Callable[..., Any], *name: str) -> str:
    try:
        found = find(*name)
        return str(getattr(found, "abs_path", found))
    except Exception as error:  # each library and platform raises another one
        return f"not found ({type(error).__name__})"


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


def _parsed(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; empty if there are none."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", version)[0])))


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
