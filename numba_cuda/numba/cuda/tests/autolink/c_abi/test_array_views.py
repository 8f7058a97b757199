# SPDX-License-Identifier: BSD-2-Clause
"""Arrays as ``cuda::std::span`` and ``cuda::std::mdspan``: the type in C++, and shape and strides in elements."""

import functools

import numpy as np
import pytest
from autolink_support import build
from numba import cuda
from numba.cuda import autolink, types
from numba.cuda.core.errors import TypingError
from numba.cuda.np.numpy_support import from_dtype

F32 = types.float32
READONLY = types.Array(F32, 1, "C", readonly=True)
EXTENTS = "cuda::std::dextents<long long, {}>, cuda::std::layout_{}"
TYPES = [
    (F32[::1], "span", "cuda::std::span<float>"),
    (READONLY, "span", "cuda::std::span<const float>"),
    (types.complex64[:, ::1], "span", "cuda::std::span<float2>"),
    (F32[::1], "mdspan", f"const cuda::std::mdspan<float, {EXTENTS.format(1, 'right')}>&"),
    (READONLY, "mdspan", f"const cuda::std::mdspan<const float, {EXTENTS.format(1, 'right')}>&"),
    (types.int8[::1, :], "mdspan", f"const cuda::std::mdspan<signed char, {EXTENTS.format(2, 'left')}>&"),
    (types.float64[:, :, :], "mdspan", f"const cuda::std::mdspan<double, {EXTENTS.format(3, 'stride')}>&"),
]


class Views(autolink.DeviceCallable):
    """Functions of arrays of float32, all in one source, since most of its compilation is that of the headers."""

    def _extern(self, name, view, *names):
        return autolink.Extern(name, returns="float32", args={"a": view, **dict.fromkeys(names, types.int32)})

    @autolink.device_method
    def of_span(self, a, i):
        return self._extern("of_span", autolink.span, "i")

    @autolink.device_method
    def of_right(self, a, i, j):
        return self._extern("of_right", autolink.mdspan, "i", "j")

    @autolink.device_method
    def of_left(self, a, i, j):
        return self._extern("of_left", autolink.mdspan, "i", "j")

    @autolink.device_method
    def of_stride(self, a, i, j):
        return self._extern("of_stride", autolink.mdspan, "i", "j")

    def __numba_cuda_link__(self, *argtypes):
        span = autolink.cxx_type(F32[::1], autolink.span)
        right, left, stride = (
            autolink.cxx_type(each, autolink.mdspan) for each in (F32[:, ::1], F32[::1, :], F32[:, :])
        )
        element = "return a(i, j) + 1000 * a.extent(0) + 10000 * a.extent(1);"
        return autolink.CUDASource(
            f"""
            #include <cuda/std/mdspan>
            #include <cuda/std/span>
            extern "C" __device__ float of_span({span} a, int i) {{ return a[i] + 1000 * a.size(); }}
            extern "C" __device__ float of_right({right} a, int i, int j) {{ {element} }}
            extern "C" __device__ float of_left({left} a, int i, int j) {{ {element} }}
            extern "C" __device__ float of_stride({stride} a, int i, int j) {{ {element} }}
            """
        )


views = Views()


def kernel(line, c_order, f_order, strided, result):
    result[0] = views.of_span(line, 3)
    result[1] = views.of_right(c_order, 1, 2)
    result[2] = views.of_left(f_order, 1, 2)
    result[3] = views.of_stride(strided, 1, 2)
    result[4] = views.of_stride(strided[::-1, ::2], 1, 1)
    result[5] = views.of_left(c_order.T, 2, 1)
    local = cuda.local.array(4, np.float32)
    for i in range(4):
        local[i] = i
    result[6] = views.of_span(local, 3)


SIGNATURE = types.void(F32[::1], F32[:, ::1], F32[::1, :], F32[:, :], F32[::1])


@pytest.mark.parametrize("array, view, cxx", TYPES)
def test_have_a_type_in_cxx(array, view, cxx):
    assert autolink.cxx_type(array, getattr(autolink, view)) == cxx


def test_are_inlined_under_lto():
    text = build(kernel, SIGNATURE, output="ptx").code.decode()
    assert "call" not in text
    assert ".local" not in text.replace(".local .align 16", "")


@pytest.mark.parametrize(
    "array, view, message",
    [
        (F32[:], "span", r"array\(float32, 1d, A\) has no span: it may be strided(?s:.*)pass it as autolink\.mdspan"),
        (types.Array(F32, 0, "C"), "mdspan", "has no mdspan: it is not an array with elements"),
        (F32, "span", "float32 has no span: it is not an array"),
        (from_dtype(np.dtype([("a", "f4")]))[::1], "span", "has no span: only C"),
        (types.NPDatetime("s")[::1], "mdspan", "has no counterpart in C"),
    ],
)
def test_what_has_no_view(array, view, message):
    class Takes(autolink.DeviceCallable):
        def __numba_cuda_call__(self, a):
            return autolink.Extern("takes", args={"a": getattr(autolink, view)})

    takes = Takes()

    def kernel(a):
        takes(a)

    with pytest.raises(TypingError, match=f"argument 'a': (?s:.*){message}"):
        build(kernel, (array,))
    with pytest.raises(autolink.CABIError, match=message):
        autolink.cxx_type(array, getattr(autolink, view))


STRIDED = "cuda::std::mdspan<float, cuda::std::dextents<long long, 2>, cuda::std::layout_stride>"


def thorough(*values):
    return pytest.param(*values, marks=pytest.mark.thorough)


@pytest.mark.parametrize(
    "view, parameter, fits, headers",
    [
        ("mdspan", f"const {STRIDED.replace('stride', 'right')}&", False, True),
        ("mdspan", "const float*", False, False),
        ("mdspan", "const Own&", True, False),
        ("span", "Own", True, False),
        ("span", "const float*", False, False),
        thorough("mdspan", f"const {STRIDED}&", True, True),
        thorough("mdspan", f"const {STRIDED.replace('float', 'const float')}&", True, True),
        thorough("mdspan", f"const {STRIDED}*", True, True),
        thorough("mdspan", "const void*", True, True),
        thorough("mdspan", "const Own&", True, True),
        thorough("mdspan", STRIDED, False, True),
        thorough("mdspan", "const float*", False, True),
        thorough("mdspan", f"const {STRIDED.replace('float', 'int')}&", False, True),
        thorough("mdspan", f"const {STRIDED.replace('long long', 'int')}&", False, True),
        thorough("span", "cuda::std::span<const float>", True, True),
        thorough("span", "Own", True, True),
        thorough("span", "cuda::std::span<int>", False, True),
    ],
)
def test_the_parameter_in_cxx_is_compared(view, parameter, fits, headers):
    """Where C++ includes no header of views, it has none, and a pointer to numbers does not fit either."""
    included = "#include <cuda/std/mdspan>\n#include <cuda/std/span>\n" if headers else ""

    class Takes(autolink.DeviceCallable):
        def __numba_cuda_call__(self, a):
            return autolink.Extern("takes", args={"a": getattr(autolink, view)})

        def __numba_cuda_link__(self, a):
            own = "struct Own { float* data; unsigned long long size; };"
            return autolink.CUDASource(f'{included}{own}\nextern "C" __device__ void takes({parameter} a) {{}}')

    takes = Takes()

    def kernel(a):
        takes(a)

    signature = (F32[:, :] if view == "mdspan" else F32[::1],)
    if fits:
        assert build(kernel, signature).code
    else:
        with pytest.raises(autolink.LinkError, match="'takes' is called with other types than it has"):
            build(kernel, signature)


@pytest.mark.gpu
@pytest.mark.parametrize("lto", [True, False])
def test_have_the_elements_of_the_array(lto):
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    whole = np.arange(48, dtype=np.float32).reshape(6, 8)
    strided = whole[::2, 1::2]
    f_order = np.asfortranarray(matrix)
    result = np.zeros(7, np.float32)
    jitted = functools.partial(cuda.jit, lto=lto)(SIGNATURE)(kernel)
    arrays = [cuda.to_device(each) for each in (matrix[0].copy(), matrix, f_order)]
    jitted[1, 1](*arrays, cuda.to_device(whole)[::2, 1::2], result)
    sizes = 3 * 1000 + 4 * 10000
    expected = [3 + 4000, matrix[1, 2] + sizes, f_order[1, 2] + sizes, strided[1, 2] + sizes]
    expected += [strided[::-1, ::2][1, 1] + 3000 + 20000, matrix.T[2, 1] + 4000 + 30000, 3 + 4000]
    assert result.tolist() == expected
