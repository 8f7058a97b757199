# SPDX-License-Identifier: BSD-2-Clause
"""Which CUDA libraries are in use: their versions, and what tells one build of a library from another."""

from __future__ import annotations

import functools
import os
from typing import Any

from cuda import pathfinder

Version = tuple[int, int]


@functools.cache
def nvrtc_version() -> Version | None:
    """``(major, minor)`` of the NVRTC in this process, ``None`` where there is none."""
    try:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
    except Exception:  # the library may be missing in ways that each platform words differently
        return None
    return major, minor


@functools.cache
def nvjitlink_version() -> Version | None:
    """``(major, minor)`` of the nvJitLink in this process, ``None`` where there is none."""
    try:
        from cuda.bindings import nvjitlink

        major, minor = nvjitlink.version()
    except Exception:
        return None
    return major, minor


@functools.cache
def nvvm_version() -> Version | None:
    """``(major, minor)`` of the libNVVM in this process, ``None`` where there is none."""
    try:
        from cuda.bindings import nvvm

        major, minor = nvvm.version()
    except Exception:
        return None
    return major, minor


@functools.cache
def nvrtc_build() -> str:
    """Version and file of NVRTC. Libraries do not tell their patch levels, their files do by place, size and time."""
    return f"{_shown(nvrtc_version())} {_library('nvrtc')}"


@functools.cache
def nvjitlink_build() -> str:
    """Version and file of nvJitLink."""
    return f"{_shown(nvjitlink_version())} {_library('nvJitLink')}"


@functools.cache
def nvvm_build() -> str:
    """The file of libdevice, which comes with NVVM; else NVVM's version.

    Not NVVM itself, which takes a tenth of a second to load, and which a cached kernel does not need.
    """
    try:
        return _file(pathfinder.locate_bitcode_lib("device").abs_path)
    except Exception:
        return _shown(nvvm_version())


def _library(name: str) -> str:
    try:
        return _file(pathfinder.load_nvidia_dynamic_lib(name).abs_path)
    except Exception:
        return "not found"


def _file(path: Any) -> str:
    found = os.stat(path)
    return f"{path} ({found.st_size} bytes of {found.st_mtime_ns})"


def _shown(version: Version | None) -> str:
    return "none" if version is None else ".".join(map(str, version))
