# SPDX-License-Identifier: BSD-2-Clause
"""Libraries of kernels without code, and a driver that only remembers launches."""

from __future__ import annotations

import pytest
from finished_kernels_support import driver_of, signature, write
from front_ends import mlir  # noqa: F401

import numba_cuda_autolink


@pytest.fixture
def library(tmp_path):
    """Makes the library of a file that has kernels, given by their signatures."""

    def make(**kernels):
        path = tmp_path / "a.kernels"
        write(path, **(kernels or {"scale": [signature()]}))
        return numba_cuda_autolink.load(path)

    return make


@pytest.fixture
def fake():
    with driver_of() as made:
        yield made
