# SPDX-License-Identifier: BSD-2-Clause
"""What to say where a library of the CUDA toolkit is not to be found."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata

_LIBRARIES = {
    "NVRTC": ("nvrtc", "nvrtcVersion", "compiles CUDA C++"),
    "nvJitLink": ("nvjitlink", "version", "links kernels with external code"),
}


@functools.cache
def why_missing(library: str) -> tuple[str, Exception] | None:
    """A message on *library* (``"NVRTC"`` or ``"nvJitLink"``) and what loading it raised; ``None`` if it is there."""
    module, version, purpose = _LIBRARIES[library]
    try:
        getattr(importlib.import_module(f"cuda.bindings.{module}"), version)()
    except Exception as error:  # each platform and version words it differently
        return (
            f"{library}, which {purpose}, is not to be found\n"
            f"  what to do: install it beside this package: pip install 'numba-cuda-autolink[{extra()}]', or install"
            " the CUDA toolkit and set CUDA_HOME to where it is",
            error,
        )
    return None


def extra() -> str:
    """The extra of this package that installs what fits the installed ``cuda-bindings``: ``"cu12"`` or ``"cu13"``."""
    try:
        major = importlib.metadata.version("cuda-bindings").partition(".")[0]
    except importlib.metadata.PackageNotFoundError:
        major = "13"
    return f"cu{major}"
