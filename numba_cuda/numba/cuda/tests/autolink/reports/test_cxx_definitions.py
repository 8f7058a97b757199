# SPDX-License-Identifier: BSD-2-Clause
"""Which definitions of a text of C++ a function leads to, and which of them an edit changes."""

import pytest
from numba.cuda.autolink.reports.cxx_definitions import definitions, digest_of_text, own_name

TEXT = """
#pragma once
#define SQUARE(x) ((x) * (x))
#include <cstdint>
struct P { float a; float b; };
enum Mode { slow = 1, fast = 2 };
enum class Kind : int { one = 1, two = 2 };
typedef float real;
using vec = float2;
typedef struct { int low, high; } Range;
constexpr float BIAS{0.25f};
__constant__ float table[4] = {1, 2, 3, 4};
template <class T, int N = (3 > 2)> struct Tr { static constexpr int n = 3; };
namespace geo::inner {
struct __align__(16) Q : P {
    int n;
    Q(int m) : P{1, 2}, n{m} { n += 1; }
    __device__ float length() const { return a * n; }
    __device__ float operator()(float x) const { return x * n; }
    __device__ Q& operator+=(const Q& other) { n += other.n; return *this; }
    __device__ float outside() const;
};
__device__ float Q::outside() const { return b; }
}
namespace { __device__ float hidden(float x) { return x; } }
struct Other { __device__ float length() const { return 5; } };
extern "C" { __device__ float plain(float x) { return SQUARE(x) + BIAS; } }
__device__ float of_p(P p) { return p.a + hidden(p.b); }
__device__ float of_q() { geo::inner::Q q(1); q += q; return q.length() + q(2) + q.outside(); }
__device__ float of_mode(float x) { return x * fast + real(2); }
__device__ int of_kind() { return int(Kind::two); }
__device__ int of_range(Range r) { return r.high; }
template <class T> __device__ T of_trait(T x) {
#ifdef EXTRA
    return x * Tr<T>::n;
#else
    return x + Tr<T>::n;
#endif
}
template <class T> __device__ __launch_bounds__(32) auto of_other(T x) -> float { return Other().length() + table[0]; }
"""


def changed(function, old, new):
    """Return the names that *function* leads to and that the edit changes."""
    assert old in TEXT
    sides = [{name: digest for name, _, digest in definitions([function], [("a.cu", text)])} for text in edit(old, new)]
    assert own_name(function) in sides[0]
    return sorted(name for name in sides[0].keys() & sides[1].keys() if sides[0][name] != sides[1][name])


def edit(old, new):
    return TEXT, TEXT.replace(old, new, 1)


@pytest.mark.parametrize(
    ("function", "old", "new", "expected"),
    [
        ("of_p(P)", "float a; float b", "float b; float a", ["P"]),
        ("of_q()", "float a; float b", "float b; float a", ["P"]),
        ("of_mode(float)", "float a; float b", "float b; float a", []),
        ("of_mode(float)", "fast = 2", "fast = 3", ["Mode"]),
        ("of_kind()", "two = 2", "two = 3", ["Kind"]),
        ("of_mode(float)", "typedef float real", "typedef double real", ["real"]),
        ("of_range(Range)", "low, high", "high, low", ["Range"]),
        ("of_trait<float>(float)", "n = 3", "n = 4", ["Tr"]),
        ("of_trait<float>(float)", "ifdef EXTRA", "ifndef EXTRA", ["of_trait"]),
        ("of_trait<float>(float)", "x * Tr", "x / Tr", ["of_trait"]),
        ("plain", "0.25f", "0.5f", ["BIAS"]),
        ("plain", "(x) * (x)", "(x) + (x)", ["SQUARE"]),
        ("of_p(P)", "return x;", "return x + 1;", ["hidden"]),
        ("(anonymous namespace)::hidden(float)", "return x;", "return x + 1;", ["hidden"]),
        ("of_q()", "a * n", "b * n", ["geo::inner::Q::length"]),
        ("of_q()", "n += 1", "n += 2", ["geo::inner::Q::Q"]),
        ("of_q()", "n{m}", "n{m + 1}", ["geo::inner::Q::Q"]),
        ("of_q()", "n += other.n", "n -= other.n", ["geo::inner::Q::operator+="]),
        ("geo::inner::Q::operator()(float) const", "x * n", "x / n", ["geo::inner::Q::operator()"]),
        ("of_q()", "return b;", "return a;", ["geo::inner::Q::outside"]),
        ("of_q()", "int n;", "int n, m;", ["geo::inner::Q"]),
        ("of_q()", "return 5", "return 6", []),  # of another class
        ("of_other<int>(int)", "return 5", "return 6", ["Other::length"]),
        ("of_other<int>(int)", "{1, 2, 3, 4}", "{1, 2, 3, 5}", ["table"]),
        ("of_other<int>(int)", "bounds__(32)", "bounds__(64)", ["of_other"]),
        ("of_q()", "int n;", "int n; // a comment", []),
    ],
)
def test_the_definition_that_an_edit_changes_is_found(function, old, new, expected):
    assert changed(function, old, new) == expected


@pytest.mark.parametrize(
    "text",
    [
        "#if A\n__device__ float f(float x) {\n#else\n__device__ float f(double x) {\n#endif\n return 1; }",
        "DEFINE(f) { return 1; }",
        "__device__ float f(float x) { return 1;",
        "__device__ float f(float x) { return (1; } )",
    ],
)
def test_of_what_is_not_understood_nothing_is_known(text):
    assert not [name for name, _, _ in definitions(["f(float)"], [("a.cu", text)]) if name == "f"]


def test_each_definition_has_its_file():
    header, source = "#define GAIN 2\n__device__ int f(int x);", "__device__ int f(int x) { return x * GAIN; }"
    found = definitions(["f(int)"], [("", source), ("a.cuh", header)])
    assert [(name, file) for name, file, _ in found] == [("GAIN", "a.cuh"), ("f", ""), ("f", "a.cuh")]


def test_comments_white_space_and_line_markers_are_no_part_of_a_text():
    assert digest_of_text("int a; // b\n/* c */ int d;") == digest_of_text('#line 3 "x"\nint a;\n\n int d;')
    assert digest_of_text("int a;") != digest_of_text("int b;")
    assert digest_of_text("#if A\nint a;\n#endif") != digest_of_text("#if B\nint a;\n#endif")
