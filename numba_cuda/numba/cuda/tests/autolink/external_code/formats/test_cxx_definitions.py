# SPDX-License-Identifier: BSD-2-Clause
"""What a text of C++ defines: its names, and that a change shows in the name that it is in."""

import pytest
from numba.cuda.cudadrv.external_code.formats.cxx_definitions import definitions

TEXT = r"""
#include "a.h"
#define TWICE(x) do { \
    x; x; } while (0)
// a brace: {
namespace outer { namespace inner { __device__ float g(float x) { return x; } } }
extern "C" { __device__ int in_block(int x) { char brace = '{'; return x + brace; } }
extern "C" __device__ int alone(int x) { if (x) { return 1; } return 1'000; }
template <class T, int N> struct Box : Base<T> { T values[N]; __device__ Box(T x) : value{x} {} };
template <class T> __device__ Boxed<T>::Boxed(T x) : a{x}, b(y) { start(); }
__constant__ float table[3] = {1, 2, 3};
__device__ auto f(int x) -> decltype(x) { auto l = [] { return "}"; }; return x; }
template <> __device__ int f<3>(int x) { return 3; }
__global__ void __launch_bounds__(128) kernel(float *p) { p[0] = 1; }
using Alias = int;
enum class Kind { a, b };
__device__ V operator+(V a, V b) { return a; }
template <typename T, std::enable_if_t<(sizeof(T) > 1), int> = 0> __device__ T z(T x) noexcept(true) { return x; }
static __device__ int counter;
"""


def changed(before, after):
    old, new = dict(definitions(before)), dict(definitions(after))
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))


def test_names():
    names = [name for name, _ in definitions(TEXT)]
    functions = ["Boxed", "alone", "f", "in_block", "kernel", "operator+", "outer::inner::g", "z"]
    assert names == sorted(["", "TWICE", "Box", "Alias", "Kind", "table", "counter", *functions])


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("return x; } } }", "return -x; } } }", ["outer::inner::g"]),
        ("char brace = '{'", "char brace = '}'", ["in_block"]),
        ("x + brace", "x - brace", ["in_block"]),
        ("1'000", "1'001", ["alone"]),
        ("value{x}", "value{-x}", ["Box"]),
        ("start();", "stop();", ["Boxed"]),
        ("{1, 2, 3}", "{1, 2, 4}", ["table"]),
        ('return "}"', 'return "{"', ["f"]),
        ("return 3;", "return 4;", ["f"]),
        ("(128)", "(256)", ["kernel"]),
        ("noexcept(true)", "", ["z"]),
        ("    x; x;", "    x;", ["TWICE"]),
        ('"a.h"', '"b.h"', [""]),
        ("// a brace: {", "/* none */", []),
        ("{ return", "{\n    return", []),
        ("kernel(", "other(", ["kernel", "other"]),
    ],
)
def test_a_change_shows_in_its_name(old, new, names):
    assert changed(TEXT, TEXT.replace(old, new)) == names


@pytest.mark.parametrize(
    "text", ["", "}", "}}} int a; {{{", '"', "/*", "#define", "extern {", "namespace", "\0", "(" * 1000]
)
def test_any_text_is_read(text):
    assert isinstance(definitions(text), tuple)
