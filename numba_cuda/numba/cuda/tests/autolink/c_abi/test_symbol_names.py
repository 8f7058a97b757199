# SPDX-License-Identifier: BSD-2-Clause
"""Symbols by content: equal parts have equal symbols in every process, different parts different ones."""

import functools
import re

import numpy as np
import pytest
from autolink_support import build, calling
from kernel_cache_support import run_warm
from numba import cuda
from numba.cuda import autolink, types


class Sum(autolink.DeviceCallable):
    def __init__(self, threads):
        self.threads = threads


def twice(x):
    return 2 * x


@cuda.jit(device=True)
def device_function(x):
    return twice(x)


def scaled(factor):
    return lambda x: factor * x


pytestmark = pytest.mark.filterwarnings("ignore:symbol:DeprecationWarning")

PARTS = [
    (),
    (3,),
    (-3,),
    (3.0,),
    (True,),
    ("3",),
    ("a b",),
    ("a", "b"),
    (("a", "b"),),
    (None,),
    (types.float32,),
    (types.float32[::1],),
    (types.float32[:],),
    (types.literal(3),),
    (np.dtype("f4"),),
    (np.float32,),
    (np.arange(3),),
    (np.arange(4),),
    (twice,),
    (device_function,),
    (scaled(2),),
    (scaled(3),),
    (functools.partial(twice, 1),),
    (Sum(3),),
    (Sum(4),),
    ({"a", "b", "c"},),
]


def test_different_parts_have_different_symbols():
    symbols = [autolink.symbol("f", *parts) for parts in PARTS]
    assert len(set(symbols)) == len(PARTS)
    assert all(re.fullmatch(r"f_\w*[0-9a-f]{16}", symbol) and len(symbol) < 100 for symbol in symbols)
    assert autolink.symbol("g") != autolink.symbol("f")


def test_equal_parts_have_equal_symbols():
    assert autolink.symbol("f", Sum(3), scaled(2), (1, "x")) == autolink.symbol("f", Sum(3), scaled(2), (1, "x"))
    same = [1, 2]
    assert autolink.symbol("f", same, same) == autolink.symbol("f", [1, 2], [1, 2])


def test_other_processes_have_the_same_symbols(servers):
    expression = "autolink.symbol('f', 3, types.float32[::1], {'a', 'b', 'c'}, (1.5, 'x'), len)"
    script = f"from numba.cuda import autolink, types\nprint({expression})"
    for _ in range(2):
        assert run_warm(servers, "-c", script).stdout.strip() == eval(expression)


def test_the_readable_part():
    name = autolink.symbol("reduce", 128, types.float32[::1], twice, scaled(2), Sum(3))
    assert name.startswith("reduce_128_array_float32_1d_C_twice_lambda_Sum_")
    assert len(autolink.symbol("f", *["long" * 100] * 100)) < 100


def test_names_a_function_that_links():
    class Twice(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern(autolink.symbol("twice", self, x), returns=x)

        def __numba_cuda_link__(self, x):
            name, T = autolink.symbol("twice", self, x), autolink.cxx_type(x)
            return autolink.CUDASource(f'extern "C" __device__ {T} {name}({T} x) {{ return 2 * x; }}')

    double = Twice()

    assert "call." not in build(calling(double), output="ptx").code.decode()


def test_what_has_no_value_of_its_own_is_deprecated():
    for part in twice, Sum(3), [1]:
        with pytest.warns(
            DeprecationWarning, match=r"symbol\(\) names a \w+ by its content(.|\n)*what to do: pass what"
        ):
            autolink.symbol("f", part)


def test_an_object_counts_by_its_link_key():
    class Keyed:
        def __init__(self, key, other):
            self.key, self.other = key, other

        def __numba_cuda_link__(self, x): ...

        def __numba_cuda_link_key__(self, x):
            return self.key, x

    one, same, other = (autolink.symbol("f", Keyed(*each), types.int32) for each in ((1, 2), (1, 3), (2, 2)))
    assert one == same != other


@pytest.mark.parametrize("name", ["", "1a", "a b", "a<b>", 3, types.int8])
def test_the_name_is_a_c_identifier(name):
    with pytest.raises(TypeError, match="takes a C identifier as the name, got"):
        autolink.symbol(name)


def test_an_object_that_leaves_its_code_to_others_counts_by_its_link_key():
    class WithoutCode(autolink.DeviceCallable):
        def __init__(self, threads, other):
            self.threads, self.other = threads, other

        def __numba_cuda_call__(self, x):
            return autolink.Extern(autolink.symbol("sum", self, x), returns=x)

        def __numba_cuda_link_key__(self, x):
            return self.threads, x

    one, same, other = (autolink.symbol("f", WithoutCode(*each), types.int32) for each in ((1, 2), (1, 3), (2, 2)))
    assert one == same != other
