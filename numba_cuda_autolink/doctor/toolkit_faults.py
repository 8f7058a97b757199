# SPDX-License-Identifier: BSD-2-Clause
"""What is wrong with the CUDA toolkit and the driver, and between them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..installed_packages import describe_older_nvjitlink, describe_other_headers, dotted, has_file_in
from ..package_versions import parse_version, version_of
from ..pip_commands import command_for_cuda, install_command, toolkit_packages
from .finding import DRIVER, Finding
from .trial_runs import PARTS, Trials
from .trial_script import NOT_USABLE


def toolkit_faults(trials: Trials) -> Iterator[Finding]:
    """Yield what is wrong, whatever the trials failed with."""
    yield from _wrong_driver(trials)
    yield from _versions_of_toolkit(trials)


def toolkit_suspects(trials: Trials) -> Iterator[Finding]:
    """Yield what is wrong where no kernel can be built."""
    yield from _mixed_bindings(trials)
    yield from _missing_toolkits()


def _wrong_driver(trials: Trials) -> Iterator[Finding]:
    """Yield the file that is taken for the driver and is not; or that the driver cannot be used."""
    about = frozenset({DRIVER})
    if isinstance(wrong := trials.results.get("driver"), list):
        file, why = wrong
        folder = os.path.normpath(os.path.dirname(file))
        is_set = folder in map(os.path.normpath, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
        fix = f"take {folder} out of LD_LIBRARY_PATH" if is_set else "remove it, and install NVIDIA's driver for a GPU"
        yield Finding(f"{file} is not NVIDIA's driver: {why}", fix, about)
    elif (gpu := trials.state().get("GPU", "")).startswith(NOT_USABLE):
        yield Finding(f"the GPU {gpu}", "install NVIDIA's driver again", about)


def _versions_of_toolkit(trials: Trials) -> Iterator[Finding]:
    """Yield the parts of the toolkit, and the driver, whose versions do not fit."""
    nvrtc, nvjitlink, driver = (trials.version(name) for name in ("nvrtc", "nvJitLink", "driver"))
    if nvrtc and nvjitlink and nvrtc > nvjitlink:
        yield Finding(*describe_older_nvjitlink(nvrtc, nvjitlink), frozenset({"library nvJitLink"}))
    if driver and nvrtc and nvrtc[0] > driver[0]:
        what = f"the driver is for CUDA {dotted(driver)}, the libraries are for CUDA {dotted(nvrtc)}"
        other = f", or: {command_for_cuda(driver[0])}" if driver[0] >= 12 else ""
        yield Finding(what, f"update the driver{other}", frozenset({DRIVER}))
    for name in ("cudart", "cccl"):
        headers = trials.version(f"{name} headers")
        if nvrtc and headers:
            what, fix = describe_other_headers(f"{trials.results.get(f'headers {name}')}", headers, nvrtc)
            if what:
                yield Finding(what, fix, frozenset({f"headers {name}"}))


def _mixed_bindings(trials: Trials) -> Iterator[Finding]:
    """Yield the libraries that are of another CUDA than cuda-bindings. Kernels may be built all the same."""
    bindings = parse_version(version_of("cuda-bindings"))
    for name, library in (("NVRTC", "nvrtc"), ("nvJitLink", "nvJitLink")):
        version = trials.version(library)
        if version and bindings and version[0] != bindings[0]:
            what = f"{name} {dotted(version)} was found, and cuda-bindings {dotted(bindings)} is for CUDA {bindings[0]}"
            yield Finding(what, install_command(), frozenset({"cuda-bindings"}))


def _missing_toolkits() -> Iterator[Finding]:
    """Yield the variables that name a toolkit that is not there."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if (folder := os.environ.get(name)) and not os.path.isdir(folder):
            yield Finding(f"{name} is {folder!r}, and there is no such folder", f"correct it, or: unset {name}")


def unused_packages(trials: Trials) -> Iterator[Finding]:
    """Yield the packages of the toolkit that are not used, and those in place of which others are."""
    used = [place for name in PARTS if os.path.isabs(place := trials.part(name))]
    ours = toolkit_packages()
    if any(name.startswith("nvidia-cuda-nvrtc") for name in ours):
        for name, package in (("cudart", "nvidia-cuda-runtime"), ("cccl", "nvidia-cuda-cccl")):
            where = trials.part(f"headers {name}")
            if os.path.isabs(where) and not any(each.startswith(package) for each in ours):
                version = trials.version(f"{name} headers")
                cuda = f", of CUDA {dotted(version)}" if version else ""
                what = f"{package} is not installed: its headers come from {where}{cuda}"
                yield Finding(what, install_command())
    if others := [each for each in toolkit_packages(of_other_cuda=True) if not has_file_in(each, used)]:
        yield Finding(
            f"{', '.join(others)}: not used, since the packages for CUDA 13 are found first", "none is needed"
        )
