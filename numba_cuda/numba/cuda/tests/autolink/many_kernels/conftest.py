# SPDX-License-Identifier: BSD-2-Clause
"""Executors that the tests of this folder share: starting one takes seconds."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from numba.cuda.autolink.many_kernels.executors import WorkerProcesses


@pytest.fixture(scope="package")
def thread():
    """An executor that attempts jobs in this process, one at a time."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


@pytest.fixture(scope="package")
def another_machine(tmp_path_factory):
    """Two processes that share a cache directory with each other, and not with the parent."""
    with pytest.MonkeyPatch.context() as patch, WorkerProcesses(2) as executor:
        patch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path_factory.mktemp("another") / "cache"))
        started = [executor.submit(os.getpid) for _ in range(2)]
        assert os.getpid() not in [future.result() for future in started]
        patch.undo()
        yield executor
