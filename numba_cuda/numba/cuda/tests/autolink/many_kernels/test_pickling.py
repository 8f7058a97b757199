# SPDX-License-Identifier: BSD-2-Clause
"""Jobs are pickled with the modules that no worker could import."""

import json
import pickle
import subprocess
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


_CELLS = [
    """
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink.many_kernels.jobs import error_text

library = autolink.cxx('''
    __device__ float f(float x) {
        return x + nope;
    }
''')
""",
    """
class Holder(autolink.DeviceCallable):
    def __init__(self, code=None):
        self.code = code
    def __numba_cuda_call__(self, x):
        return autolink.Extern("held", returns=x)
    def __numba_cuda_link__(self, x):
        if self.code is None:
            raise RuntimeError("a fault of the library")
        return self.code

raising = Holder()
broken = Holder(autolink.CUDASource('''
    extern "C" __device__ float held(float x) { return x + missing; }
'''))
""",
    """
def by_name(x):
    x[0] = library.f(x[0])

def by_hook(x):
    x[0] = raising(x[0])

def by_link(x):
    x[0] = broken(x[0])
""",
    """
if __name__ == "__main__":
    jobs = [autolink.Job(each, "void(float32[::1])", (9, 0)) for each in (by_name, by_hook, by_link)]
    for job, error in zip(jobs, autolink.build_many(jobs, on_error="return")):
        try:
            autolink.build(job.kernel, job.signature, cc=job.cc)
        except Exception as alone:
            print(error_text(error) == error_text(alone), type(error).__name__)
            print(error_text(error))
""",
]


def _check_errors(text):
    assert [line for line in text.splitlines() if line.startswith(("True ", "False "))] == [
        "True TypingError",
        "True CallError",
        "True LinkError",
    ], text


def test_errors_in_workers_are_those_of_a_build_alone(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("".join(_CELLS))
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=True)
    _check_errors(run.stdout)
    assert f"  at: {script}:8" in run.stdout


def test_errors_in_workers_of_a_notebook_are_those_of_a_build_alone(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    cells = list(map(nbformat.v4.new_code_cell, _CELLS))
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    text = "".join(output["text"] for output in cells[-1]["outputs"] if output.get("name") == "stdout")
    _check_errors(text)
    assert "called from: Cell In[3]:2 in by_name\n" in text and "  at: Cell In[1]:7" in text


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
