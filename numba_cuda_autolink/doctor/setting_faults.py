# SPDX-License-Identifier: BSD-2-Clause
"""Environment variables that are wrong, that nothing reads, or that turn something off."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

from ..settings import wrong_settings
from .finding import VARIABLES, Finding
from .trial_runs import Trials

# Settings of Numba, and what they do.
_OFF = {
    "NUMBA_ENABLE_CUDASIM": "Numba's simulator runs kernels; nothing is compiled or linked",
    "NUMBA_DISABLE_CUDA": "Numba uses no GPU",
    "NUMBA_DISABLE_JIT": "numba.njit compiles nothing, and kernels cannot call its functions",
}
# Settings that Numba's own CUDA target or an older numba-cuda has read.
_OLD_SETTINGS = (
    "NUMBA_CUDA_DRIVER",
    "NUMBA_CUDA_ENABLE_MINOR_VERSION_COMPATIBILITY",
    "NUMBA_CUDA_ENABLE_PYNVJITLINK",
    "NUMBA_CUDA_USE_NVIDIA_BINDING",
)


def setting_faults(trials: Trials) -> Iterator[Finding]:
    """Yield the variables with which no kernel can be built, and those of this project that are wrong."""
    if names := trials.results.get("variables"):
        it = "it" if len(names) == 1 else "them"
        what = f"with {', '.join(names)} a small kernel cannot be built, and without {it} it can"
        yield Finding(what, f"correct {it}, or: unset {' '.join(names)}", frozenset({VARIABLES}))
    yield from itertools.starmap(Finding, wrong_settings(os.environ))
    if isinstance(result := trials.results.get("cache"), list):
        yield from itertools.starmap(Finding, result)


def setting_remarks(trials: Trials) -> Iterator[Finding]:
    """Yield the variables that turn this project, GPUs or compilers off, that an older numba-cuda has read, or that
    Numba cannot read."""
    if os.environ.get("NUMBA_CUDA_AUTOLINK") == "0":
        yield Finding("NUMBA_CUDA_AUTOLINK=0 turns this project off", "unset NUMBA_CUDA_AUTOLINK")
    for name, what in _OFF.items():
        if os.environ.get(name, "0").strip() not in ("", "0"):
            yield Finding(f"{name}={os.environ[name]}: {what}", f"unset {name}")
    for name in _OLD_SETTINGS:
        if value := os.environ.get(name, ""):
            is_missing = name == "NUMBA_CUDA_DRIVER" and not os.path.exists(value)
            missing = ", and there is no such file" if is_missing else ""
            what = f"{name} is {value!r}{missing}: a setting of an older numba-cuda, which does nothing here"
            yield Finding(what, f"unset {name}")
    settings = trials.results.get("settings")
    for name, value, why in settings if isinstance(settings, list) else ():
        yield Finding(f"{name} is {value!r}, which Numba ignores: {why}", f"correct the value, or: unset {name}")
