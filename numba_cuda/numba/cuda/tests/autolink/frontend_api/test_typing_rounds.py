# SPDX-License-Identifier: BSD-2-Clause
"""What Numba says of a function is the error, also where another statement fails because of it."""

from __future__ import annotations

import pytest
from autolink_support import build
from front_ends import FrontEndUnderTest, front_end  # noqa: F401
from numba.cuda import autolink

from numba_cuda_autolink.short_tracebacks import message_of

LIBRARY = autolink.cxx("__device__ float add(float x, float y) { return x + y; }")


def lines_of(error):
    return (message_of(error) or str(error)).splitlines()


def test_a_variable_of_two_types_is_shown_where_it_is_assigned(front_end: FrontEndUnderTest):  # noqa: F811
    lib = LIBRARY

    def kernel(d):
        x = lib.add(d[0], d[1])
        if x > 0:
            x = (d[0], x)
        d[0] = lib.add(x[0], d[1])

    _check(front_end, kernel)


def test_a_variable_of_two_types_in_a_device_function(front_end: FrontEndUnderTest):  # noqa: F811
    lib = LIBRARY

    @front_end.cuda.jit
    def device_function(a, b):
        x = lib.add(a, b)
        if x > 0:
            x = (a, x)
        return lib.add(x[0], b)

    def kernel(d):
        d[0] = device_function(d[0], lib.add(d[0], d[1]))

    _check(front_end, kernel)


def _check(tested, kernel):
    with pytest.raises(Exception, match="Cannot unify") as caught:
        build(tested.cuda.jit(kernel), "void(float32[::1])")
    first, at, code, carets, *details = lines_of(caught.value)
    assert first == "Cannot unify float32 and (float32, float32) for 'x'"
    assert at.startswith(f"  at: {__file__}:") and " = (" in code and set(carets.strip()) == {"^"}
    assert any(each.startswith("  assigned in lines: ") for each in details)


def test_an_undefined_name_is_underlined_and_not_the_call(front_end: FrontEndUnderTest):  # noqa: F811
    lib = LIBRARY

    def kernel(d):
        d[0] = lib.add(d[0], unknown)  # noqa: F821

    with pytest.raises(Exception, match="unknown") as caught:
        build(front_end.cuda.jit(kernel), "void(float32[::1])")
    _, _, code, carets, *_ = lines_of(caught.value)
    assert code[carets.index("^") : carets.rindex("^") + 1] == "unknown"
