# SPDX-License-Identifier: BSD-2-Clause
"""The kernels of benchmarks/contests/lambdas.py: lambdas of Python inside C++ templates, as good as lambdas of C++."""

from __future__ import annotations

import numpy as np
import pytest
from autolink_support import build
from numba.cuda.cudadrv.external_code.formats.cubin import resources
from repository import BENCHMARKS, EXAMPLES, module


@pytest.fixture(scope="module")
def contest():
    return module(BENCHMARKS, "contests.lambdas")


def test_they_are_inlined_and_take_the_registers_and_instructions_of_lambdas_of_cxx(contest, monkeypatch):
    """There are two registers and 16 instructions more at most: for the whole arrays that these kernels get."""
    monkeypatch.setattr("shutil.which", lambda name: None)  # NVRTC is of the linker's version; nvcc may not be
    function_sizes = module(EXAMPLES, "_run").function_sizes
    native = bytes(contest.native_lambdas()[0].code)
    for kernel in contest.make_folds(), contest.make_roots():
        built = build(kernel, contest.SIGNATURE)
        name = kernel.py_func.__name__
        assert [call.inlined for call in built.report.builds[0].calls] == [True]
        own, of_cxx = (resources(*each, "")["registers"] for each in ((built.code, built.entry_name), (native, name)))
        assert own <= of_cxx + 2
        assert function_sizes(built.code)[built.entry_name] <= function_sizes(native)[name] + 16 * 16


def test_they_compute_what_numpy_does(contest):
    folds, roots = (build(make(), contest.SIGNATURE) for make in (contest.make_folds, contest.make_roots))
    x = np.random.default_rng(0).random((8, contest.COUNT), np.float32) - np.float32(0.5)
    r = np.zeros(8, np.float32)
    folds.emulate[1, 8](x.ravel(), r)
    assert (r == x[np.arange(8), np.abs(x).argmax(axis=1)]).all()
    cubes = np.linspace(0.5, 1.5, 8, dtype=np.float32)
    roots.emulate[1, 8](cubes, r)
    assert np.allclose(r, np.cbrt(cubes), rtol=1e-6)
