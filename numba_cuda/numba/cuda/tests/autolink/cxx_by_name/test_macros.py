# SPDX-License-Identifier: BSD-2-Clause
"""Macros of a library, whatever their names are, leave the text alone that calls and questions add to its source."""

from __future__ import annotations

import string

import numba
import pytest
from autolink_support import build
from numba.cuda import autolink, types

_WORDS = "all at bits code count data first form give kind list made member of passed plain result same size state tell"
_MACROS = [*string.ascii_letters, "A0", "T0", "a0", "m0", "p0", "s0", *_WORDS.split()]
_DEFINED = "".join(f"#define {name} 3 +\n" for name in _MACROS)
_VIEWS = """
    #include <cuda/std/mdspan>
    #include <cuda/std/array>
    #include <cuda/std/span>
    #include <cuda/std/tuple>
"""
_SOURCE = f"""{_DEFINED}
    struct Point {{ float left; double right; }};
    struct Counter {{ int number; __device__ Counter() : number(0) {{}} }};
    constexpr int lanes = N 1;
    __device__ inline Point moved(const Point& it) {{ return {{it.left * 2, it.right}}; }}
    template <class Fn> __device__ float applied(Fn fn, float number) {{ return fn(number); }}
    __device__ inline float twice(float number) {{ return 2 * number; }}
    __device__ inline float split(float number, int& whole) {{ whole = int(number); return number - whole; }}
"""


@pytest.fixture(scope="module")
def lib():
    return autolink.cxx(_SOURCE)


def test_questions_are_answered(lib):
    assert lib.eval("lanes") == 4
    assert lib.record("Point").names == ("left", "right")
    assert lib.type("Counter").size == 4


def test_calls_pass_all_that_calls_pass(lib):
    point, applied, split = lib.record("Point"), lib.applied, lib.split
    both = lib.expr("[](float number) { struct { float one, two; } it{number, 2 * number}; return it; }")

    class Halved(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            half = autolink.device_function(lambda value: value / 2, x)
            return lambda x: applied(half, x)

    halved = Halved()

    def kernel(points, x, whole):
        points[0] = lib.moved(points[1])
        x[0] = halved(x[1]) + applied(lib.twice, x[2]) + both(x[3])[1]
        x[1] = split(x[4], whole[0])

    of_points = numba.from_dtype(point)[::1]
    build(kernel, (of_points, types.float32[::1], types.int32[::1]))


@pytest.mark.thorough
def test_calls_pass_views():
    lib = autolink.cxx(
        f"{_VIEWS}{_DEFINED}template <class It> __device__ int rank_of(It) {{ return It::rank(); }}\n"
        "__device__ inline int length_of(cuda::std::span<float> it) { return *(&it)->begin(); }"
    )
    rank_of = lib.rank_of.passing("mdspan")

    def kernel(x, views):
        x[0] = rank_of(views) + lib.length_of(x)

    build(kernel, "void(float32[::1], float32[:, :])")
