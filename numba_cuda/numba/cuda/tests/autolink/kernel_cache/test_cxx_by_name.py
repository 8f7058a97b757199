# SPDX-License-Identifier: BSD-2-Clause
"""``@cuda.jit(cache=True)`` for kernels that call C++ by name."""

from __future__ import annotations

import os
import shutil

import pytest
from kernel_cache_support import KERNEL, Program
from numba.cuda.cudadrv.external_code.cache.changes import fact
from numba.cuda.cudadrv.external_code.cache.entry import describe

LIBRARY = """
import os
lib = autolink.cxx('#include <own.h>', include_paths=[os.path.dirname(os.path.abspath(__file__))])
add = lib.f
"""


@pytest.fixture
def program(tmp_path, servers):
    return Program(tmp_path, servers)


def test_a_kernel_is_loaded_until_a_header_changes(program):
    program.write(LIBRARY)
    header = program.folder / "own.h"
    header.write_text("template <class T> __device__ T f(T x) { return x + 1; }\n")
    built, loaded = program.run(), program.run()
    header.write_text("template <class T> __device__ T f(T x) { return x + 2; }\n")
    changed = program.run()
    header.write_text("template <class T> __device__ float f(T x) { return x + 2; }\n")
    of_other_type = program.run()
    assert [each.status for each in (built, loaded, changed, of_other_type)] == [
        "built",
        "loaded",
        "linked again",
        "built",
    ]
    assert loaded.cubin == built.cubin and len({built.cubin, changed.cubin, of_other_type.cubin}) == 3


def test_a_kernel_is_loaded_in_another_checkout_until_a_header_differs_there(program, tmp_path, servers):
    program.write(LIBRARY)
    (program.folder / "own.h").write_text("template <class T> __device__ T f(T x) { return x + 1; }\n")
    built = program.run()
    other = Program(tmp_path / "elsewhere", servers)
    shutil.copytree(program.folder, other.folder, ignore=shutil.ignore_patterns("cache", "numba", "__pycache__"))
    shared = f"os.environ['NUMBA_CUDA_AUTOLINK_CACHE_DIR'] = {str(program.folder / 'cache')!r}\n"
    loaded = other.run(before=shared)
    (other.folder / "own.h").write_text("template <class T> __device__ T f(T x) { return x + 2; }\n")
    changed, back = other.run(before=shared), program.run()
    assert [each.status for each in (built, loaded, changed, back)] == ["built", "loaded", "linked again", "loaded"]
    assert built.cubin == loaded.cubin == back.cubin != changed.cubin
    entries = [describe(str(each)) for each in (program.folder / "cache" / "entries").rglob("*") if each.is_file()]
    links = sorted((each for each in entries if each.kind == "link"), key=lambda each: each.written)
    folders = [os.path.dirname(fact(each, "path")) for each in links]
    assert folders == [str(program.folder), str(other.folder)]  # each is of the checkout that built it


def test_a_kernel_whose_call_passes_a_function_is_loaded(program):
    program.write("""
        lib = autolink.cxx('template <class F> __device__ int call(F f, int x) { return f(x); }')
        call, minus = lib.call, lib.expr("[](int x) { return -x; }")
        class Add(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x):
                return lambda x: call(minus, x)
        add = Add()
    """)
    built, loaded = program.run(), program.run()
    assert (built.status, loaded.status) == ("built", "loaded")
    assert loaded.cubin == built.cubin


def test_calls_of_one_library_are_looked_up_in_the_unit_of_their_link(program):
    """A new process runs no compiler, though each function alone would be another program."""
    parts = LIBRARY.replace("lib.f", "lib.f\nother = lib.g")
    program.write(
        parts, "from parts import *\n@cuda.jit(cache=True)\ndef kernel(x): x[0] = add(other(x[1])) + other(x[0])"
    )
    (program.folder / "own.h").write_text(
        "template <class T> __device__ T f(T x) { return x + 1; }\n"
        "template <class T> __device__ T g(T x) { return 2 * x; }\n"
    )
    built, loaded = program.run(), program.run()
    assert [built.status, loaded.status] == ["built", "loaded"], loaded.log
    assert loaded.cubin == built.cubin


@pytest.mark.parametrize("expression", ["mylib.lib.f", "mylib.native.lib.f", "mylib.add"])
def test_a_kernel_that_calls_a_library_of_an_installed_package_is_loaded_until_the_library_differs(program, expression):
    (package := program.folder / "site" / "mylib").mkdir(parents=True)
    (package / "__init__.py").write_text("from . import native\nfrom .native import lib\nadd = lib.f\n")
    (package / "f.h").write_text("template <class T> __device__ T f(T x) { return x + 1; }\n")
    native = "import os\nfrom numba.cuda import autolink\nfolder = [os.path.dirname(__file__)]\n"
    native += "lib = autolink.cxx('#include <f.h>', include_paths=folder, defines={'N': 1})\n"
    (package / "native.py").write_text(native)
    program.write("import mylib", KERNEL.replace("add(x[1])", f"{expression}(x[1])"))
    installed = (
        "from numba.cuda.autolink.protocol import loaded_modules\n"
        f"loaded_modules._SITES += ({str(package.parent) + os.sep!r},)\n"
        f"sys.path.insert(0, {str(package.parent)!r})\n"
    )
    built, loaded = program.run(before=installed), program.run(before=installed)
    (package / "f.h").write_text("template <class T> __device__ T f(T x) { return x + 2; }\n")
    changed = program.run(before=installed)
    (package / "native.py").write_text(native.replace("'N': 1", "'N': 2"))
    other = program.run(before=installed)
    assert [each.status for each in (built, loaded, changed)] == ["built", "loaded", "linked again"]
    assert other.status in ("built", "linked again") and built.cubin == loaded.cubin != changed.cubin
