# SPDX-License-Identifier: BSD-2-Clause
"""The target for which questions are answered outside of a kernel's compilation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from numba.cuda.cudadrv.external_code.target import ComputeCapability, ComputeCapabilityLike, Target

from ..compilation import asking

# Where no compute capability is given and there is no GPU.
DEFAULT = ComputeCapability(9, 0)


@contextlib.contextmanager
def targeting(cc: ComputeCapabilityLike | None) -> Iterator[Target]:
    """Resolve for *cc* inside the ``with`` block: by default for the current GPU, as a launch would, or for `DEFAULT`
    without one."""
    target = Target(_default() if cc is None else ComputeCapability.parse(cc), lto=True)
    with asking(target):
        yield target


def _default() -> ComputeCapability:
    from numba import cuda

    try:
        return ComputeCapability.parse(cuda.get_current_device().compute_capability).as_launched
    except Exception:
        return DEFAULT
