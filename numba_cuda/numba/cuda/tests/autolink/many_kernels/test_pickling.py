# SPDX-License-Identifier: BSD-2-Clause
"""Jobs are pickled with the modules that no worker could import."""

import json
import pickle
import sys
import threading
import types

import cloudpickle
import pytest
from numba.cuda.autolink import Job
from numba.cuda.autolink.many_kernels.pickling import pickle_jobs


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
    pickle_jobs([])
    assert by_value(made)
    cloudpickle.unregister_pickle_by_value(made)


@pytest.mark.parametrize("keeps_its_name", [True, False], ids=["two names", "another name"])
def test_a_module_may_stand_under_other_names(made, monkeypatch, keeps_its_name):
    monkeypatch.setitem(sys.modules, "alias", made)
    if not keeps_its_name:
        monkeypatch.delitem(sys.modules, made.__name__)
    exec("def f(x):\n    return x + 1", made.__dict__)
    (data,) = pickle_jobs([Job(made.f, "void()", (9, 0))])
    assert not by_value(made)
    monkeypatch.delitem(sys.modules, "alias")
    monkeypatch.delitem(sys.modules, made.__name__, raising=False)
    assert pickle.loads(data).kernel(1) == 2


def test_a_module_that_took_the_name_of_another_leaves_that_one_as_it_is(monkeypatch):
    monkeypatch.setitem(sys.modules, "taken_name", types.ModuleType("json"))
    (data,) = pickle_jobs([Job(json.JSONEncoder, "void()", (9, 0))])
    assert pickle.loads(data).kernel is json.JSONEncoder


def test_jobs_are_built_in_a_jupyter_kernel(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    cell = nbformat.v4.new_code_cell(
        "import plistlib, xml.parsers.expat\n"
        "from numba import cuda\n"
        "from numba.cuda import autolink\n"
        "@cuda.jit\n"
        "def twice(x):\n"
        "    x[0] *= 2\n"
        "(built,) = autolink.build_many([(twice, 'void(float32[::1])', (9, 0))])\n"
        "print('twice' in built.entry_name)"
    )
    nbclient.NotebookClient(
        nbformat.v4.new_notebook(cells=[cell]), resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert "".join(output["text"] for output in cell["outputs"] if output.get("name") == "stdout") == "True\n"


def test_pickling_one_job_may_begin_to_pickle_others_also_in_another_thread(made):
    found, threads = [], []

    class Kernel:
        def __reduce__(self):
            threads.append(threading.Thread(target=pickle_jobs, args=([],)))
            threads[0].start()
            pickle_jobs([])
            found.append((by_value(made), threads[0].is_alive()))
            return int, ()

    pickle_jobs([Job(Kernel(), "void()", (9, 0))])
    threads[0].join()
    assert found == [(True, True)] and not by_value(made)
