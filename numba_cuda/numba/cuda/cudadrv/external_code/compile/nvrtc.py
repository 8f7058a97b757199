# SPDX-License-Identifier: BSD-2-Clause
"""Call NVRTC in this process; what it made of a source, or why it made nothing."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cuda import pathfinder

from . import nvrtc_child


class CompileError(RuntimeError):
    """NVRTC rejected a CUDA C++ source; ``log`` is all that NVRTC printed, and the message shows the first part."""

    __module__ = "numba.cuda.autolink"  # as tracebacks show it

    def __init__(self, name: str, log: str):
        from ..diagnostics.messages import shown_log

        self.log = log.replace("\0", "")
        super().__init__(f"{shown_log(name)} does not compile:\n{shown_log(self.log)}")


# What is known of the lookups of a compile in this process, in which other libraries run too.
NOT_NOTED: Mapping[str, Any] = {"unknown": ("NVRTC", "it ran in this process, where what it reads is not noted")}


@dataclass(frozen=True)
class Compiled:
    """A compiled translation unit: its code, NVRTC's log, the lowered names of the expressions that were asked for, and
    what NVRTC looked up, as `nvrtc_lookups.Lookups.report` returns it, with its ``texts``."""

    code: bytes = field(repr=False)
    log: str
    names: dict[str, str] = field(default_factory=dict)
    lookups: Mapping[str, Any] = field(default_factory=lambda: NOT_NOTED, repr=False)


def run_nvrtc(code: bytes, **arguments: Any) -> Compiled:
    """Compile *code* in this process, with the other arguments of `nvrtc_child.run_nvrtc`. Raises what that raises."""
    return Compiled(*nvrtc_child.run_nvrtc(library_path(), code, **arguments))


@functools.cache
def library_path() -> str:
    """Return the path of the NVRTC that this process has, so that children have the same. Raise `RuntimeError` if there
    is none."""
    try:
        path = pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path
    except Exception as error:  # each platform and version reports a missing library in its own way
        raise RuntimeError(f"NVRTC was not found: {error}") from error
    if not path:
        raise RuntimeError("NVRTC was not found: it was loaded from an unknown place")
    return str(path)
