# SPDX-License-Identifier: BSD-2-Clause
"""Executors that the tests of this folder share: starting one takes seconds."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from numba.cuda.autolink.many_kernels.worker_processes import worker_processes


@pytest.fixture(scope="package")
def thread():
    """An executor that attempts jobs in this process, one at a time."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


@pytest.fixture(scope="package")
def another_machine(tmp_path_factory):
    """Two processes that share a cache directory with each other, and not with the parent."""
    with pytest.MonkeyPatch.context() as patch, worker_processes(2) as executor:
        patch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path_factory.mktemp("another") / "cache"))
        assert all(pid != os.getpid() for pid in executor.map(_process_id, range(4)))  # which starts them
        patch.undo()
        yield executor


def _process_id(_: int) -> int:
    return os.getpid()
