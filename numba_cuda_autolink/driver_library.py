# SPDX-License-Identifier: BSD-2-Clause
"""Whether the library that the loader finds under the name of CUDA's driver is NVIDIA's."""

from __future__ import annotations

import ctypes
import os
import sys

_NAME = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_IS_STUB = 34  # CUDA_ERROR_STUB_LIBRARY
_LINK_MAP = 2  # RTLD_DI_LINKMAP, of dlinfo


class _LinkMap(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def find_wrong_driver() -> tuple[str, str] | None:
    """Return the file that the loader takes for the driver and that is not NVIDIA's driver, and why; ``None`` if it is
    NVIDIA's, or there is none."""
    try:
        library = ctypes.CDLL(_NAME)
    except OSError as error:
        file, _, why = str(error).partition(": ")
        return (file, why) if os.path.isabs(file) else None  # other errors are about a file that is not there
    if not (hasattr(library, "cuInit") and hasattr(library, "cuDriverGetVersion")):
        return _path(library), "it lacks cuInit or cuDriverGetVersion"
    if library.cuInit(0) == _IS_STUB:
        return _path(library), "it is the toolkit's stub, which programs are linked with"
    return None


def _path(library: ctypes.CDLL) -> str:
    """Return where the loader found a *library*; its name, where the loader does not tell."""
    found = ctypes.POINTER(_LinkMap)()
    try:
        failed = ctypes.CDLL(None).dlinfo(ctypes.c_void_p(library._handle), _LINK_MAP, ctypes.byref(found))
    except (AttributeError, OSError, TypeError):  # of another system than Linux
        return _NAME
    return _NAME if failed else os.fsdecode(found.contents.name or b"") or _NAME
