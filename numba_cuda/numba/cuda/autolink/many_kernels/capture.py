# SPDX-License-Identifier: BSD-2-Clause
"""Capturing: an application's processes note the kernels that they compile, each in a file of its own.

They capture if ``NUMBA_CUDA_AUTOLINK_CAPTURE`` names a folder, as the command ``capture`` sets it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

from numba.cuda.cudadrv.external_code.platform.child_process import fork_lock

from ..compilation.context import compute_capability
from ..compilation.kernel_events import KernelEvent, listeners
from .job_list import JobList, describe_job
from .jobs import Job, kernel_name

VARIABLE = "NUMBA_CUDA_AUTOLINK_CAPTURE"

_lock = fork_lock()


def start() -> None:
    """Capture from now on, while the variable is set."""
    if _note not in listeners:
        listeners.append(_note)


def _note(event: KernelEvent) -> None:
    if not (folder := os.environ.get(VARIABLE)):
        return
    try:
        job = Job(**{**vars(event), "cc": compute_capability(event.cc)})
        line = json.dumps([sys.path[0], describe_job(job)])
        with _lock, open(os.path.join(folder, f"{os.getpid()}.jsonl"), "a", encoding="utf-8") as file:
            file.write(line + "\n")
    except Exception as error:  # the application runs on
        warnings.warn(
            f"kernel {kernel_name(event.kernel)} is not captured: {type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=2,
        )


def read_captured(folder: str | os.PathLike[str]) -> JobList:
    """Return the list of what processes noted in *folder*."""
    lines = [line for file in sorted(Path(folder).glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    noted = list(map(json.loads, lines))
    return JobList.of((job for _, job in noted), (path for path, _ in noted if path))
