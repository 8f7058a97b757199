# SPDX-License-Identifier: BSD-2-Clause
"""Nonuniform points with a window in Python inside a C++ template: inlined, and as good as a window in C++."""

from __future__ import annotations

import re

import numpy as np
import pytest
from autolink_support import build, read_diagnosis
from numba.cuda.autolink.testing import check_linkable
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.formats.cubin import resources
from repository import BENCHMARKS, EXAMPLES, module

SIZES = (1024, 1024)


@pytest.fixture(scope="module")
def example():
    return module(EXAMPLES, "nufft_window")


def kernels(example, window, width):
    """Return the kernels of the example, and their names, signatures and names in CUDA C++."""
    sums = example.WindowSums(SIZES, width, example.window_case(window, width, np.float32)[0])
    for kernel in example.make_kernels(sums):
        name = kernel.py_func.__name__
        yield kernel, example.signature(name, window, np.float32), f"{name}_{window}"


@pytest.mark.parametrize(
    "width", [4, *(pytest.param(width, marks=pytest.mark.thorough) for width in (5, 6, 7, 8, 10, 12))]
)
@pytest.mark.parametrize("window", ["formula", "table"])
def test_registers_and_instructions_are_those_of_a_window_in_cxx(example, window, width, monkeypatch):
    """They are, or fewer. Below a width of 4 the order of instructions differs, and may take one or two more, of the
    same allocation. Nor are there more instructions, but at a width of 5: there one register less takes some moves."""
    monkeypatch.setattr("shutil.which", lambda name: None)  # NVRTC is of the linker's version; nvcc may not be
    function_sizes = module(EXAMPLES, "_run").function_sizes
    native, _ = module(BENCHMARKS, "contests.nufft_window").native_kernels(SIZES, width)
    in_cxx = bytes(native.code)
    for kernel, signature, name in kernels(example, window, width):
        built = build(kernel, signature)
        own = resources(built.code, built.entry_name, "")["registers"]
        assert own <= resources(in_cxx, name, "")["registers"], name
        if width != 5:
            assert function_sizes(built.code)[built.entry_name] <= function_sizes(in_cxx)[name], name


@pytest.mark.parametrize("window", ["formula", "table"])
def test_the_window_is_inlined(example, window):
    for kernel, signature, _ in kernels(example, window, 4):
        ptx = build(kernel, signature, output="ptx").code.decode()
        assert re.findall(r"\tcall\b.*", ptx) == []


def test_double_precision_and_a_window_without_state(example):
    sums = example.WindowSums((64, 48), 6, lambda t: 1 - t * t)
    _, interpolate = example.make_kernels(sums)
    built = build(
        interpolate, "void(float64[::1], float64[::1], complex128[:, ::1], none, complex128[::1])", output="ptx"
    )
    assert "fma.rn.f64" in built.code.decode()
    assert "\tcall" not in built.code.decode()


@pytest.mark.parametrize(
    ("x", "grid", "message"),
    [
        ("float32", "complex64[:, :]", "grid: got array.*, expected a C-contiguous array of two dimensions"),
        ("float32", "complex64[::1]", "grid: got array.*, expected a C-contiguous array of two dimensions"),
        ("float32", "float32[:, ::1]", "grid: got array.*, expected a C-contiguous array of complex64 or complex128"),
        ("float64", "complex64[:, ::1]", "x: got float64, expected float32, as the grid is complex64"),
    ],
)
def test_what_is_refused(example, x, grid, message):
    _, interpolate = example.make_kernels(example.WindowSums((64, 64), 4, example.make_formula(np.float32)))
    with pytest.raises(TypingError) as caught:
        build(interpolate, f"void({x}[::1], {x}[::1], {grid}, float32, complex64[::1])")
    assert re.search(message, read_diagnosis(caught.value))


def test_both_methods_are_linkable(example):
    sums = example.WindowSums((64, 64), 4, example.make_formula(np.float32))
    points = ["float32", "float32"]
    assert check_linkable(sums.interpolate, *points, "complex64[:, ::1]", "float32", lto=True)
    assert check_linkable(sums.spread, *points, "complex64", "complex64[:, ::1]", "float32", lto=True)
