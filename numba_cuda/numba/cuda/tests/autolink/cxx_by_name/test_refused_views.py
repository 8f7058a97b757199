# SPDX-License-Identifier: BSD-2-Clause
"""An array that C++ does not take as the view that it declares, and a complex number of another type: what the
parameter takes, what was passed and what to do."""

from __future__ import annotations

import pytest
from autolink_support import build
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError

SOURCE = """
#include <cuda/std/complex>
#include <cuda/std/mdspan>
#include <cuda/std/span>
__device__ float of_int(cuda::std::mdspan<float, cuda::std::dextents<int, 2>> a) { return a(0, 0); }
__device__ float of_size(cuda::std::mdspan<const float, cuda::std::dextents<size_t, 2>> a) { return a(0, 0); }
__device__ float fixed(cuda::std::mdspan<float, cuda::std::extents<int, 3, 4>> a) { return a(0, 0); }
__device__ float left(cuda::std::mdspan<float, cuda::std::dextents<long long, 2>, cuda::std::layout_left> a) {
    return a(0, 0);
}
__device__ float spanned(cuda::std::span<const float> a) { return a[0]; }
__device__ float three(cuda::std::span<const float, 3> a) { return a[0]; }
template <class T> __device__ T templated(cuda::std::mdspan<T, cuda::std::dextents<int, 2>> a) { return a(0, 0); }
__device__ float turned(cuda::std::complex<float> z) { return z.imag(); }
"""

LINES_OF_INT = (
    "C++ takes: cuda::std::mdspan<float, dextents<int, 2>>",
    "what to do: declare the parameter with cuda::std::dextents<long long, 2>;",
    "or convert it to that type T: lib.expr('[](cuda::std::mdspan<float, cuda::std::dextents<long long, 2>> a)"
    " { return of_int(T(a)); }')",
)


def message_of(call, argument):
    kernel = eval(f"lambda x: lib.{call}", {"lib": autolink.cxx(SOURCE)})
    with pytest.raises(TypingError) as caught:
        build(cuda.jit(kernel), f"void({argument})")
    return str(caught.value)


@pytest.mark.parametrize(
    ("call", "argument", "diagnosis", "lines"),
    [
        ("of_int(x)", "float32[:, ::1]", "C++ takes an mdspan with int extents, and those of arrays", LINES_OF_INT),
        ("of_int(x)", "float32[::1]", "argument 1 is a 1d array, and C++ takes a 2d mdspan", ("pass a 2d array",)),
        (
            "of_size(x)",
            "float32[:, :]",
            "argument 1 is strided, and C++ takes a contiguous mdspan in C order",
            (
                "C++ takes: cuda::std::mdspan<const float, dextents<unsigned long, 2>>",
                "float32[:, ::1]",
                "layout_stride",
            ),
        ),
        (
            "of_size(x)",
            "float64[:, ::1]",
            "argument 1 is an array of float64, and C++ takes one of float",
            ("np.float32",),
        ),
        ("of_size(x)", "float32[::1, :]", "argument 1 is in F order, and C++ takes a contiguous mdspan in C order", ()),
        ("left(x)", "float32[:, ::1]", "argument 1 is in C order, and C++", ("float32[::1, :]", "layout_left")),
        ("fixed(x)", "float32[:, ::1]", "C++ takes an mdspan of the fixed size 3 x 4", ("extents<int, 3, 4>",)),
        ("spanned(x)", "float32[:]", "argument 1 is strided, and C++ takes a contiguous span", ("span<const float>",)),
        ("spanned(x)", "int32[::1]", "argument 1 is an array of int32, and C++ takes one of float", ("np.float32",)),
        (
            "three(x)",
            "float32[::1]",
            "C++ takes a span of 3 elements",
            ("three(cuda::std::span<const float, 3>(x, 3))",),
        ),
        ("templated(x)", "float32[:, ::1]", "no instance of function template", ("cuda::std::mdspan<T, E, L> x",)),
        ("turned(x[0])", "complex128[::1]", "a complex128 cannot be passed as complex<float>", ("np.complex64(z)",)),
        ("turned(1j)", "float32", "a complex128 cannot be passed as complex<float>", ("np.complex64(z)",)),
    ],
)
def test_what_it_takes_what_was_passed_and_what_to_do(call, argument, diagnosis, lines):
    message = message_of(call, argument)
    assert diagnosis in message.partition("\n")[0]
    assert all(line in message for line in lines)
    assert all(len(line) < 170 for line in message.splitlines())


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        (
            "[](cuda::std::mdspan<float, cuda::std::dextents<long long, 2>> a)"
            " { return of_int(cuda::std::mdspan<float, cuda::std::dextents<int, 2>>(a)); }",
            "float32[:, ::1]",
        ),
        ("[](auto* x) { return three(cuda::std::span<const float, 3>(x, 3)); }", "float32[::1]"),
    ],
)
def test_what_is_advised_compiles(text, argument):
    called = autolink.cxx(SOURCE).expr(text)

    @cuda.jit
    def kernel(result, x):
        result[0] = called(x)

    assert autolink.build(kernel, f"void(float32[::1], {argument})", cc=(9, 0)).code
