# SPDX-License-Identifier: BSD-2-Clause
"""Operators in Python for the primitives of examples/cub: with state, inlined, and as good as operators in C++."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import cub_operator_cases
import pytest
from autolink_support import build
from cub_cases import cub
from numba import cuda
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.formats.cubin import resources
from repository import BENCHMARKS, SUPPORT, module


@pytest.mark.thorough
def test_every_primitive_inlines_an_operator_with_state():
    built = build(cub_operator_cases.make_kernel(), cub_operator_cases.SIGNATURE, output="ptx")
    assert re.findall(r"\tcall\b.*", built.code.decode()) == []
    names = [planned.input.name for planned in built.inputs]
    assert len([name for name in names if name.startswith("saturating(")]) == 1
    assert len([name for name in names if name.startswith("nearer(")]) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["complex64", "float16"])
def test_operators_of_other_numbers(dtype):
    @cuda.jit(device=True)
    def scaled(a, b, factor):
        return a * factor[0] * b

    reduce = cub.WarpReduce(64)

    def kernel(x, factor):
        x[0] = reduce.reduce(x[0], scaled, state=factor)

    built = build(kernel, f"void({dtype}[::1], {dtype}[::1])", output="ptx")
    assert re.findall(r"\tcall\b.*", built.code.decode()) == []


@pytest.mark.parametrize(
    ("primitive", "call", "message"),
    [
        (cub.BlockReduce(64), "f.reduce(x[0], min, state=x)", "state: got array.*expected None: min has none"),
        (cub.BlockReduce(64), "f.reduce(x[0], compared)", r"op: got compared, which returns .*, expected float32"),
        (cub.BlockMergeSort(64), "f.sort(x[:1], None, min)", "before: got Function.*expected a function decorated"),
        (cub.BlockMergeSort(64), "f.sort(x[:1], state=x)", "state: got array.*without before, expected both"),
    ],
)
def test_what_is_refused(primitive, call, message):
    @cuda.jit(device=True)
    def compared(a, b):
        return a, b

    scope = {"f": primitive, "compared": compared}
    exec(f"def kernel(x):\n    {call}\n", scope)
    with pytest.raises(TypingError, match=message):
        build(scope["kernel"], "void(float32[::1])")


def test_sorts_by_merging_need_a_power_of_two():
    with pytest.raises(ValueError, match="block: got 96 threads, expected a power of two"):
        cub.BlockMergeSort(96)


def registers_of(kernel, signature):
    built = build(kernel, signature)
    return resources(built.code, built.entry_name, "")["registers"]


@pytest.mark.thorough
def test_registers_are_those_of_hand_written_cxx(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)  # NVRTC is of the linker's version; nvcc may not be
    operators = module(BENCHMARKS, "contests.operators")
    native, _ = operators.native_operators(256, 8)

    def native_registers(entry):
        return resources(bytes(native.code), entry, "")["registers"]

    sums = registers_of(operators.make_saturating_sums(256, 8), operators.SUMS_SIGNATURE)
    assert sums <= native_registers("saturating_sums") * 1.02
    sort = registers_of(operators.make_sorted_tiles(256, 8), operators.SORT_SIGNATURE)
    assert sort <= native_registers("sorted_tiles") * 1.02


def test_the_simulator_runs_operators_with_state():
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "cub_operator_cases.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.gpu
def test_results_are_those_of_numpy():
    assert cub_operator_cases.check() == []
