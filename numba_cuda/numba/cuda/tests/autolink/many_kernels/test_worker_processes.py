# SPDX-License-Identifier: BSD-2-Clause
"""The processes of `build_many`."""

import threading
import time

import pytest
from numba.cuda.autolink.many_kernels.executors import WorkerProcesses


@pytest.mark.thorough
def test_who_is_interrupted_again_does_not_wait_for_the_jobs(monkeypatch):
    """As by a second Ctrl-C. Python would wait at its end for processes that nobody ended."""
    processes = WorkerProcesses(1)
    future = processes.submit(time.sleep, 1000)
    while not future.running():
        time.sleep(0.01)
    manager = processes._executor_manager_thread
    join = threading.Thread.join

    def interrupted(thread, timeout=None):
        monkeypatch.setattr(threading.Thread, "join", join)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt), processes:
        pass
    assert not manager.is_alive()
