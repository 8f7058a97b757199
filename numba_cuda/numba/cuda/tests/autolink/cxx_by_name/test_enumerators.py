# SPDX-License-Identifier: BSD-2-Clause
"""An enumerator of C++ that Python uses as an attribute, an argument or a function: the error says how to have its
value, and names the one that is meant."""

from __future__ import annotations

import numpy as np
import pytest
from autolink_support import CC, build
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError

SOURCE = """
enum class Mode { fast, slow };
namespace paint { enum Color : int { red = 2, green }; }
struct Motor { enum class State { idle, busy }; };
__device__ float apply(float x, Mode m) { return m == Mode::slow ? 2 * x : x; }
__device__ float mixed(float x, paint::Color c) { return x + c; }
"""
lib = autolink.cxx(SOURCE)
SLOW = "take its value before the kernel, slow = lib.eval(\"Mode::slow\"), and pass lib['Mode'](slow) in it"
GREEN = "green = lib.eval(\"paint::green\"), and pass lib['paint::Color'](green) in it"


@pytest.mark.parametrize(
    ("call", "diagnosis", "remedy"),
    [
        ("lib.apply(x[0], lib.Mode.slow)", "Mode::slow is an enumerator of C++", SLOW),
        ("lib.apply(x[0], lib['Mode::slow'])", "Mode::slow is an enumerator of C++", SLOW),
        ("lib.apply(x[0], lib['Mode::slow']())", "Mode::slow is an enumerator of C++", SLOW),
        ("lib.mixed(x[0], lib['paint::green'])", "paint::green is an enumerator of C++", GREEN),
        ("lib.apply(x[0], lib.Mode.slwo)", "C++ has no enumerator Mode::slwo", "did you mean Mode::slow?"),
        ("lib.mixed(x[0], lib['paint::grene'])", "C++ has no enumerator paint::grene", "did you mean paint::green?"),
        ("lib.mixed(x[0], lib['Motor::State'].busi)", "no enumerator Motor::State::busi", "Motor::State::busy?"),
    ],
)
def test_what_to_do_about_an_enumerator(call, diagnosis, remedy):
    with pytest.raises(TypingError) as caught:
        build(cuda.jit(eval(f"lambda x: {call}", {"lib": lib})), "void(float32[::1])")
    said = str(caught.value).partition("\n\n")[0]
    assert diagnosis in said.partition("\n")[0]
    assert remedy in said.partition("\n  what to do: ")[2]


def test_the_remedy_works():
    slow, green = lib.eval("Mode::slow"), lib.eval("paint::green")

    @cuda.jit
    def kernel(x):
        x[0] = lib.apply(x[0], lib["Mode"](slow)) + lib.mixed(x[0], lib["paint::Color"](green))

    x = np.full(1, 5, np.float32)
    autolink.build(kernel, "void(float32[::1])", cc=CC).emulate[1, 1](x)
    assert x == 18


@pytest.mark.parametrize(
    ("text", "meant"), [("Mode::slwo", "Mode::slow"), ("Motor::State::idel", "Motor::State::idle")]
)
def test_a_misspelt_enumerator_that_is_evaluated_is_named(text, meant):
    with pytest.raises(autolink.CxxError, match=f"did you mean {meant}\\?"):
        lib.eval(text)
