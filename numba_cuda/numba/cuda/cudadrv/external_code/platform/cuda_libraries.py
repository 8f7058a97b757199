# SPDX-License-Identifier: BSD-2-Clause
"""The CUDA libraries in use: their versions, what identifies one build of a library, and what to do without it."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import re
import struct
from pathlib import Path

from cuda import pathfinder

from ..diagnostics.signal_handlers import raised_by_signal_handler

Version = tuple[int, int]

# The module of cuda.bindings, its function that returns the version, what the library does, and how its files begin.
_LIBRARIES = {
    "NVRTC": ("nvrtc", "nvrtcVersion", "compiles CUDA C++", "libnvrtc"),
    "nvJitLink": ("nvjitlink", "version", "links kernels with external code", "libnvJitLink"),
    "NVVM": ("nvvm", "version", "compiles kernels", "libnvvm"),
}


def nvrtc_version() -> Version | None:
    """Return ``(major, minor)`` of the NVRTC in this process; ``None`` where there is none."""
    return _load("NVRTC")[0]


def nvjitlink_version() -> Version | None:
    """Return ``(major, minor)`` of the nvJitLink in this process; ``None`` where there is none."""
    return _load("nvJitLink")[0]


def nvvm_version() -> Version | None:
    """Return ``(major, minor)`` of the libNVVM in this process; ``None`` where there is none."""
    return _load("NVVM")[0]


@functools.cache
def versions() -> dict[str, Version | None]:
    return {library: _load(library)[0] for library in ("NVRTC", "NVVM", "nvJitLink")}


def version_texts() -> dict[str, str]:
    return {name: ".".join(map(str, version)) for name, version in versions().items() if version}


def _load(library: str) -> tuple[Version | None, Exception | None]:
    module, function, *_ = _LIBRARIES[library]
    try:
        *_, major, minor = getattr(importlib.import_module(f"cuda.bindings.{module}"), function)()
    except Exception as error:  # each platform and version reports a missing library in its own way
        if raised_by_signal_handler(error):
            raise
        return None, error
    return (major, minor), None


def headers_version(folder: str) -> Version | None:
    """Return ``(major, minor)`` of the CUDA version that the headers in *folder* are of; ``None`` if it is unknown.
    CCCL may have a folder in that of the others."""
    for each in (folder, os.path.dirname(folder)):
        try:
            with open(os.path.join(each, "cuda_runtime_api.h"), encoding="utf-8", errors="replace") as file:
                found = re.search(r"^#define\s+CUDART_VERSION\s+(\d+)", file.read(), re.MULTILINE)
        except OSError:
            continue
        return None if found is None else (int(found[1]) // 1000, int(found[1]) % 1000 // 10)
    return None


def why_missing(library: str) -> tuple[str, Exception] | None:
    """Return a message about a missing *library* (``"NVRTC"`` or ``"nvJitLink"``) and what loading it raised; ``None``
    if the library is there."""
    _, error = _load(library)
    if error is None:
        return None
    from numba_cuda_autolink.installed_packages import repair_of_toolkit  # which nothing needs where it is there
    from numba_cuda_autolink.pip_commands import install_command

    _, _, does, files = _LIBRARIES[library]
    repair = repair_of_toolkit(lambda name: os.path.basename(name).startswith(files))
    if "dlopen" in str(error):
        what, remedy = f"cannot be loaded: {error}", "install it again; numba-cuda-autolink doctor says how"
    else:
        what = "was not found"
        remedy = (
            f"install it with this package: {install_command()}, or install the CUDA toolkit and set CUDA_HOME to its"
            " directory; numba-cuda-autolink doctor checks all packages"
        )
    return f"{library}, which {does}, {what}\n  what to do: {repair or remedy}", error


@functools.cache
def nvrtc_build() -> str:
    """Return what identifies NVRTC's build. Libraries do not report patch levels; their linker's build ID tells them
    apart, wherever and whenever they were installed."""
    return f"{_show(nvrtc_version())} {_library('nvrtc')}"


@functools.cache
def nvjitlink_build() -> str:
    return f"{_show(nvjitlink_version())} {_library('nvJitLink')}"


@functools.cache
def nvvm_build() -> str:
    """Return what identifies the builds of libdevice and of libNVVM, which comes with it. To load libNVVM takes a tenth
    of a second: that is done only where its file is in none of the usual places."""
    try:
        libdevice = Path(pathfinder.locate_bitcode_lib("device").abs_path)
        digest = hashlib.sha256(libdevice.read_bytes()).hexdigest()
    except Exception as error:
        if raised_by_signal_handler(error):
            raise
        return f"{_show(nvvm_version())} {_library('nvvm')}"
    nvvm = libdevice.parents[1]
    folders = (nvvm / "lib64", nvvm / "bin", nvvm.parent / "lib", nvvm.parent / "bin")
    found = sorted(file for folder in folders for file in folder.glob("*nvvm.so*"))
    return f"{_build(str(found[0])) if found else _library('nvvm')}, libdevice sha256 {digest}"


def _library(name: str) -> str:
    try:
        return _build(pathfinder.load_nvidia_dynamic_lib(name).abs_path)
    except Exception as error:
        if raised_by_signal_handler(error):
            raise
        return "not found"


def _build(path: str) -> str:
    status = os.stat(path)
    try:
        return f"build {_build_id(path).hex()}, {status.st_size} bytes"
    except (OSError, ValueError, struct.error):  # not an ELF file, or without a build ID
        return f"{path} ({status.st_size} bytes of {status.st_mtime_ns})"


def _build_id(path: str) -> bytes:
    with open(path, "rb") as file:
        magic, program_headers, size, count = struct.unpack("<4sx27xQ14xHH", file.read(58))
        file.seek(program_headers)
        table = file.read(size * count if magic == b"\x7fELF" else 0)
        for kind, offset, length in struct.iter_unpack(f"<I4xQ16xQ{size - 40}x", table):
            if kind == 4:  # notes
                file.seek(offset)
                _, found, build_id = file.read(min(length, 1 << 16)).partition(b"\x14\0\0\0\3\0\0\0GNU\0")
                if found and len(build_id) >= 20:
                    return build_id[:20]
    raise ValueError("there is no build ID")


def _show(version: Version | None) -> str:
    return "none" if version is None else ".".join(map(str, version))
