# SPDX-License-Identifier: BSD-2-Clause
"""What counts besides a link key: the class's name, and the package that defines it, as it was imported."""

from __future__ import annotations

import textwrap

import pytest
from kernel_cache_support import run_warm

# Prints how often the hook of an object ran, and the constant in the code that it gave.
MAIN = """
import sys
sys.path.insert(0, sys.argv[1])
from numba.cuda import autolink
{imports}
from thing.linked import Linked, calls
linked = Linked()
def kernel(x):
    x[0] = linked(x[0])
built = autolink.build(kernel, "void(int32[::1])", cc=(9, 0))
print(len(calls))
"""
LINKED = """
from numba.cuda import autolink, types
calls = []
class Linked(autolink.DeviceCallable):
    def __numba_cuda_call__(self, x):
        return autolink.Extern("add", returns=types.int32)
    def __numba_cuda_link_key__(self, x):
        return "same"
    def __numba_cuda_link__(self, x):
        calls.append(x)
        return autolink.CUDASource('extern "C" __device__ int add(int x) { return x + 1; }')
"""


@pytest.fixture
def asked(tmp_path, servers):
    """A function that runs the program in a process of its own, and returns how often the hook ran."""
    package = tmp_path / "thing"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "linked.py").write_text(LINKED)
    (package / "other.py").write_text("N = 1")

    def run(imports="import thing.other"):
        (tmp_path / "main.py").write_text(MAIN.format(imports=textwrap.dedent(imports)))
        variables = {"NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_CUDA_AUTOLINK_CACHE": "1"}
        found = run_warm(servers, tmp_path / "main.py", tmp_path, **variables)
        assert not found.returncode, found.stderr
        return int(found.stdout)

    run.package = package
    return run


def test_each_loaded_module_of_its_package_counts(asked):
    assert [asked(), asked()] == [1, 0]
    (asked.package / "other.py").write_text("N = 2")
    assert [asked(), asked()] == [1, 0]
    (asked.package / "unused.py").write_text("N = 2")
    assert asked() == 0


def test_nothing_is_stored_of_a_module_that_is_edited_while_the_process_runs(asked):
    edit = f"""
    import thing.other, time
    time.sleep(0.1)
    open({str(asked.package / "other.py")!r}, "w").write("N = 3")
    """
    assert asked(edit) == 1
    assert asked() == 1
    assert asked() == 0


def test_nothing_is_stored_under_a_key_that_is_equal_only_to_itself(asked):
    linked = asked.package / "linked.py"
    linked.write_text(LINKED.replace('return "same"', "return KEY") + "KEY = object()\n")
    assert [asked(), asked()] == [1, 1]
