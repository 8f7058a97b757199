# SPDX-License-Identifier: BSD-2-Clause
"""A fixture for tests that launch kernels.

In conftest.py: ``pytest_plugins = ["numba_cuda_autolink.pytest_plugin"]``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def cuda_device() -> Iterator[str]:
    """A device for numba-cuda: the GPU, or where there is none the emulator, which runs the linked kernels on the CPU.
    The value is ``"gpu"`` or ``"emulator"``."""
    from numba import cuda
    from numba.cuda import autolink

    if cuda.is_available():
        yield "gpu"
        return
    with autolink.emulated():
        yield "emulator"
