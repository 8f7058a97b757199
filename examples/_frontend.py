# SPDX-License-Identifier: BSD-2-Clause
"""The front end that compiles an example's kernels: numba-cuda, or with ``--frontend numba-cuda-mlir`` the other one.

A program imports the one that it uses: ``from numba import cuda`` or ``from numba_cuda_mlir import cuda``. The objects
that its kernels call are the same.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

NAMES = ("numba-cuda", "numba-cuda-mlir")


def chosen() -> str:
    """Return the front end that the command line names."""
    arguments = [part for argument in sys.argv for part in argument.split("=", 1)]
    if "--frontend" not in arguments:
        return NAMES[0]
    name = (arguments[arguments.index("--frontend") + 1 :] or [""])[0]
    if name not in NAMES:
        sys.exit(f"--frontend must be one of {', '.join(NAMES)}, not {name!r}")
    return name


if TYPE_CHECKING or chosen() == "numba-cuda":  # type checkers know its names
    from numba import cuda
else:
    from numba_cuda_mlir import cuda

__all__ = ["NAMES", "chosen", "cuda"]
