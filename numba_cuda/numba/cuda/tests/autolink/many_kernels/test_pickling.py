# SPDX-License-Identifier: BSD-2-Clause
"""Jobs are pickled with the modules that no worker could import."""

import sys
import threading
import types

import cloudpickle
import pytest
from numba.cuda.autolink import Job
from numba.cuda.autolink.many_kernels.pickling import pickled_jobs


@pytest.fixture
def made(monkeypatch):
    """A module made at run time."""
    module = types.ModuleType("made_at_run_time")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def by_value(module):
    return module.__name__ in cloudpickle.list_registry_pickle_by_value()


def test_a_module_that_the_user_registered_stays_registered(made):
    cloudpickle.register_pickle_by_value(made)
    pickled_jobs([])
    assert by_value(made)
    cloudpickle.unregister_pickle_by_value(made)


def test_pickling_one_job_may_begin_to_pickle_others_also_in_another_thread(made):
    found, threads = [], []

    class Kernel:
        def __reduce__(self):
            threads.append(threading.Thread(target=pickled_jobs, args=([],)))
            threads[0].start()
            pickled_jobs([])
            found.append((by_value(made), threads[0].is_alive()))
            return int, ()

    pickled_jobs([Job(Kernel(), "void()", (9, 0))])
    threads[0].join()
    assert found == [(True, True)] and not by_value(made)
