# SPDX-License-Identifier: BSD-2-Clause
"""Kernels name functions of C++ through their library, ``lib.f(x)`` and ``lib["f<3>"](x)``, as Python does."""

from __future__ import annotations

import numpy as np
import pytest
from autolink_support import build
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink import testing
from numba.cuda.core.errors import TypingError

lib = autolink.cxx("""
    template <class T> __device__ T twice(T x) { return 2 * x; }
    __device__ float split(float x, int& whole) { whole = int(x); return x - whole; }
    namespace inner { __device__ float half(float x) { return x / 2; } }
    struct Pair { float a; int b; };
""")
twice, split = lib.twice, lib.split


def test_a_function_is_the_same_whether_the_library_or_a_variable_names_it():
    def named(x, whole):
        x[0] = twice(split(x[0], whole[0]))

    def through_attributes(x, whole):
        x[0] = lib.twice(lib.split(x[0], whole[0]))

    def through_items(x, whole):
        x[0] = lib["twice"](lib["split"](x[0], whole[0]))

    built = [
        build(kernel, "void(float32[::1], int32[::1])", entry_name="kernel", output="ptx")
        for kernel in (named, through_attributes, through_items)
    ]
    assert [site.callee.obj.__name__ for site in built[1].call_sites] == ["split", "twice"]
    assert len({each.code for each in built}) == 1
    assert built[0].code.count(b"st.global") == 2  # the element of x, and the one that C++ writes


def test_a_cached_kernel_that_names_them_so_is_loaded(monkeypatch):
    @cuda.jit(cache=True)
    def kernel(x):
        x[0] = lib.twice(x[0])

    found = [testing.compile_cached(kernel, "void(float32[::1])", (9, 0)) for _ in range(2)]
    assert [how for _, how in found] == ["built", "loaded"]
    assert found[0][0] == found[1][0]


MISUSES = {
    "lib(x[0])": "a C++ library is not a function",
    "lib.inner.half(x[0])": "'inner' of C++ has no attribute 'half'",
    "lib.thrice(x[0])": 'thrice(float32): identifier "thrice" is undefined',
    "lib.twice(x=x[0])": "twice: the argument x=... has a name, but all are passed by position",
    "lib.Pair(x[0], 1)": "Pair(float32, int64): "
    "it is a class, not a function, and has no constructor of these arguments",
    "lib.eval('1')": "CxxLibrary.eval is a Python method",
}


@pytest.mark.parametrize("call", MISUSES)
def test_the_first_line_says_what_is_wrong(call):
    names = {"lib": lib}
    exec(compile(f"def kernel(x):\n    x[0] = {call}\n", "misused.py", "exec"), names)
    with pytest.raises(TypingError) as caught:
        build(names["kernel"], "void(float32[::1])")
    assert str(caught.value).splitlines()[0] == MISUSES[call]
    assert "misused.py:2 in kernel" in str(caught.value)


def test_what_python_and_numba_look_for_in_any_object_is_not_a_name_of_cxx():
    for name in ("targetoptions", "numba_cuda_link_object", "__cuda_array_interface__"):
        assert not hasattr(lib, name) and not hasattr(twice, name)
    with pytest.raises(AttributeError, match=r"write lib\['inner::half'\]"):
        lib.inner.half  # noqa: B018


def test_libraries_of_one_text_in_other_folders_are_told_apart_in_one_kernel(tmp_path):
    libraries = []
    for factor in (2, 3):
        (folder := tmp_path / str(factor)).mkdir()
        (folder / "factor.h").write_text(f"static __device__ float scaled(float x) {{ return {factor} * x; }}\n")
        libraries.append(autolink.cxx('#include "factor.h"', include_paths=[folder]))
    twice_as_much, thrice = (each.scaled for each in libraries)
    again = autolink.cxx('#include "factor.h"', include_paths=[tmp_path / "2"]).scaled

    def both(x):
        x[0] = twice_as_much(thrice(x[0]))

    def one(x):
        x[0] = twice_as_much(again(-x[0]))

    both_linked, one_linked = (build(each, "void(float32[::1])") for each in (both, one))
    assert len(both_linked.inputs) == 2
    assert len(one_linked.inputs) == 1
    x = np.array([5], np.float32)
    both_linked.emulate[1, 1](x)
    assert x[0] == 30
