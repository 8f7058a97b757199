# SPDX-License-Identifier: BSD-2-Clause
"""An enumerator of C++ that Python uses as an attribute, an argument or a function: the error says how to have its
value, and names the one that is meant."""

from __future__ import annotations

import enum

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


OF_PYTHON = """
namespace n { enum class Mode { linear, cubic }; __device__ int f(Mode x) { return int(x); } }
__device__ int by_reference(const n::Mode& x) { return int(x); }
#define EOF (-1)
enum Old { x = 1, y };
enum class Wide : unsigned long long { top = ~0ull };
enum class Neg : signed char { m = -1, p = 1 };
enum Flags : int { one = 1, two = 2, eight = 8 };
template <int N> struct T { enum class In { p = 3 }; };
__device__ int old(Old x) { return x; }
__device__ int wide(Wide x) { return x == Wide::top; }
__device__ int neg(Neg x) { return int(x); }
__device__ int flags(Flags x) { return x; }
__device__ int in_template(T<3>::In x) { return int(x); }
__device__ int either(Old) { return 1; }
__device__ int either(Neg) { return 2; }
"""
of_python = autolink.cxx(OF_PYTHON)


def pass_member(name, enumeration):
    """The result of a function for the last member of an enumeration."""
    function, member = of_python[name], list(enumeration)[-1]

    @cuda.jit
    def kernel(x):
        x[0] = function(member)

    x = np.zeros(1, np.int64)
    build(kernel, "void(int64[::1])").emulate[1, 1](x)
    return x[0]


@pytest.mark.parametrize(
    ("function", "kind", "members", "result"),
    [
        ("n::f", enum.IntEnum, {"linear": 0, "cubic": 1}, 1),
        ("n::f", enum.Enum, {"any_name": 1}, 1),
        ("by_reference", enum.IntEnum, {"linear": 0, "cubic": 1}, 1),
        ("old", enum.IntEnum, {"y": 2}, 2),
        ("wide", enum.IntEnum, {"top": 2**64 - 1}, 1),
        ("neg", enum.IntEnum, {"p": 1, "m": -1}, -1),
        ("in_template", enum.IntEnum, {"p": 3}, 3),
        ("old", enum.IntEnum, {"int": 1, "EOF": 2}, 2),
        ("either", enum.IntEnum, {"y": 2}, 1),
        ("either", enum.IntEnum, {"m": -1}, 2),
    ],
)
def test_a_member_of_an_enumeration_of_python_whose_numbers_cxx_has(function, kind, members, result):
    assert pass_member(function, kind("Mode", members)) == result


def test_flags_may_have_members_of_several_bits():
    flags = enum.IntFlag("flags", {"a": 1, "b": 2, "ab": 3})

    @cuda.jit
    def kernel(x):
        x[0] = of_python.flags(flags.ab)

    x = np.zeros(1, np.int64)
    build(kernel, "void(int64[::1])").emulate[1, 1](x)
    assert x == 3


@pytest.mark.parametrize(
    ("function", "members", "lacks", "has"),
    [
        ("n::f", {"linear": 0, "cubic": 2}, "n::Mode of C++ lacks cubic = 2 of Mode", "linear = 0, cubic = 1"),
        ("n::f", {"a": 5, "b": 0, "c": 300}, "n::Mode of C++ lacks a = 5, c = 300", "linear = 0, cubic = 1"),
        ("by_reference", {"cubic": 2}, "n::Mode of C++ lacks cubic = 2 of Mode", "linear = 0, cubic = 1"),
        ("old", {"x": 0}, "Old of C++ lacks x = 0", "x = 1, y = 2"),
        ("old", {"x": 300}, "Old of C++ lacks x = 300", "x = 1, y = 2"),
        ("neg", {"m": -2}, "Neg of C++ lacks m = -2", "m = -1, p = 1"),
        ("neg", {"m": 255}, "Neg of C++ lacks m = 255", "m = -1, p = 1"),
        ("flags", {"a": 3}, "Flags of C++ lacks a = 3", "one = 1, two = 2, eight = 8"),
        ("n::f", {"cubic": 0, "linear": 1}, "C++ has cubic = 1, linear = 0, and Python cubic = 0, linear = 1", ""),
        ("n::f", {"cubic": 0}, "n::Mode of C++ and Mode of Python differ: C++ has cubic = 1, and Python cubic = 0", ""),
        ("old", {"y": 1, "EOF": 2}, "Old of C++ and Mode of Python differ: C++ has y = 2, and Python y = 1", ""),
        ("either", {"x": 2, "m": -1}, "no instance of overloaded function", ""),
        ("either", {"x": 2}, "no instance of overloaded function", ""),
    ],
)
def test_a_number_that_an_enumeration_of_cxx_has_not_is_named(function, members, lacks, has):
    """It would compute with another enumerator, or with none."""
    with pytest.raises(TypingError) as caught:
        pass_member(function, enum.IntEnum("Mode", members))
    first = str(caught.value).partition("\n")[0]
    assert lacks in first and first.endswith(f"it has {has}" if has else "")
