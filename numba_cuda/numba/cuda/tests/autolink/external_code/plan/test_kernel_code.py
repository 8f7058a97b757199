# SPDX-License-Identifier: BSD-2-Clause
"""A kernel's own side of a link."""

import math

from autolink_support import CC, adder
from numba import cuda
from numba.cuda.autolink.builds.ahead_of_time import prepare
from numba.cuda.cudadrv.external_code.plan.link_plan import SymbolSite


def test_sites_that_differ_in_pointers_only_are_the_same():
    first, second, third = (SymbolSite(text, "") for text in ("i32 (i32*, i8)", "i32 (%pair*, i8)", "i32 (i8, i32*)"))
    assert first.untyped == second.untyped != third.untyped


@cuda.jit(device=True)
def below(x):
    return math.sin(x) + 1


def test_a_kernel_that_defines_all_it_calls_is_linked_by_numba_cuda():
    def kernel(x):
        print(x[0])
        x[0] = below(x[1])
        cuda.atomic.max(x, 0, 1.0)
        if x[1] < 0:
            raise ValueError

    for options in ({"lto": True}, {"lto": False}, {"debug": True, "opt": False}):
        assert prepare(kernel, "void(float64[::1])", CC, "cubin", None, options).request is None


def test_undefined_symbols_and_the_first_of_their_sites():
    one, other = (
        cuda.declare_device(name, "int32(int32)", link=cuda.CUSource(adder(name))) for name in ("one", "other")
    )

    def kernel(x):
        print(x[0])
        x[0] = one(x[0]) + other(one(x[1])) + int(below(x[2]))

    code = prepare(kernel, "void(int32[::1])", CC, "cubin", None, {}).request.kernel_code
    assert code.undefined == ("one", "other") and code.entry and code.inputs
    assert [len(sites) for sites in code.sites.values()] == [1, 1]
    assert "the call with (int32) at" in code.referenced_by("other")
    assert code.referenced_by("g") == "linked code, not by a call in Python"
