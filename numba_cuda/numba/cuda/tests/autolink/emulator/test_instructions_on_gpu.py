# SPDX-License-Identifier: BSD-2-Clause
"""Each form of instruction on 10,240 operands, in the emulator and on a GPU, bit by bit.

Run as a script, it prints the forms that differ, with an example of each, and how much was compared. It fails if a
form differs or was not compared.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "support")]

import numpy as np
import pytest
from instruction_cases import FORMS, Case, case_of, emulate, kernel_text, random_operands

THREADS = 10_240
# The largest relative and absolute errors that PTX's manual states, and the largest operand that they are stated for
_APPROXIMATIONS = (
    (r"ex2\.approx.*f32", 2**-21, 0, None),
    (r"ex2\.approx\.f16(x2)?", 2**-9.9, 2**-24, None),  # the distance of subnormal numbers
    (r"lg2\.approx.*f32", 2**-21, 2**-21, None),
    (r"(sin|cos)\.approx.*f32", 0, 2**-19, 6.28),
    (r"rsqrt\.approx(\.ftz)?\.f32", 2**-22, 0, None),
    (r"(rcp|sqrt|div)\.(approx|full).*f32", 2**-21, 2**-126, 2.0**126),  # which becomes zero or not
    (r"tanh\.approx\.f32", 2**-10, 0, None),
    (r"ex2\.approx\.ftz\.bf16(x2)?", 2**-6, 0, None),
    (r"tanh\.approx\.b?f16(x2)?", 2**-6, 0, None),
    (r"(rcp|rsqrt)\.approx\.ftz\.f64", 2**-19, 0, None),
)
CASES = [case for case in map(case_of, FORMS) if case is not None]


def run_on_gpu(case: Case, operands: np.ndarray) -> np.ndarray:
    """Return the results of *case* on the GPU of the current context."""
    from cuda.bindings import driver
    from numba import cuda

    out = cuda.to_device(np.zeros((len(operands), 3), np.uint64))
    source = cuda.to_device(operands)

    def check(error, *values):
        assert error == driver.CUresult.CUDA_SUCCESS, (case.form, error)
        return values[0] if values else None

    module = check(*driver.cuModuleLoadData(kernel_text(case).encode() + b"\0"))
    function = check(*driver.cuModuleGetFunction(module, b"k"))
    pointers = (source.device_ctypes_pointer.value, out.device_ctypes_pointer.value, len(operands))
    types = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
    grid = -(-len(operands) // 256)
    check(*driver.cuLaunchKernel(function, grid, 1, 1, 256, 1, 1, 0, 0, (pointers, types), 0))
    cuda.synchronize()
    result = out.copy_to_host()[:, : len(case.results)]
    check(*driver.cuModuleUnload(module))
    return result


def _as_numbers(bits: np.ndarray, type: str) -> np.ndarray:
    """Return one column for each number in the *bits*: two for packed types."""
    if type.endswith("x2"):
        return np.hstack([_as_numbers(half, type[:-2]) for half in (bits & 0xFFFF, bits >> 16)])
    bits = bits[:, None]
    if type == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    unsigned, kind = {"f16": ("u2", "f2"), "f32": ("u4", "f4"), "f64": ("u8", "f8")}[type]
    return bits.astype(unsigned).view(kind).astype(np.float64)


def find_differences(case: Case, operands: np.ndarray, emulated: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the threads whose results differ by more than the form may."""
    for pattern, relative, absolute, limit in _APPROXIMATIONS:
        if re.fullmatch(pattern, case.form):
            type = case.results[0]
            with np.errstate(all="ignore"):
                a, b = (_as_numbers(x[:, 0], type) for x in (emulated, expected))
                close = np.abs(a - b) <= np.maximum(absolute, relative * np.abs(b))
            smallest = 2.0**-126 if type == "f32" else 0.0
            close |= (a == b) | (np.isnan(a) & np.isnan(b)) | ((np.abs(a) < smallest) & (np.abs(b) < smallest))
            if limit is not None:
                last = np.abs(_as_numbers(operands[:, len(case.operands) - 1], type))
                close |= ~(last < limit) | (last < smallest)
            return np.flatnonzero(~close.all(1))
    return np.flatnonzero((emulated != expected).any(1))


def describe(case: Case, operands: np.ndarray, emulated: np.ndarray, expected: np.ndarray, different) -> str:
    """Return the line of a table: how many results differ, and the first that does."""
    row, a, b = ([hex(v) for v in x[different[0]].tolist()] for x in (operands, emulated, expected))
    return f"{case.form:32} {len(different):6} differ: {row} emulator {a} GPU {b}"


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.form)
def test_a_form_gives_what_a_gpu_gives(case):
    operands = random_operands(case, THREADS)
    emulated, expected = emulate(case, operands), run_on_gpu(case, operands)
    different = find_differences(case, operands, emulated, expected)
    assert not len(different), describe(case, operands, emulated, expected, different)


@pytest.mark.parametrize("form", ["add.s32", "ex2.approx.f32", "sin.approx.f32", "fma.rn.f16"])
def test_the_comparison_finds_what_differs(form):
    case = case_of(form)
    operands = random_operands(case, 100)
    results = emulate(case, operands)
    assert not len(find_differences(case, operands, results, results))
    assert len(find_differences(case, operands, results ^ np.uint64(0x4000), results)) >= 5


def compare_all() -> bool:
    """Print the forms that differ or could not be compared, and the numbers; return whether there are none."""
    from numba import cuda

    device = cuda.get_current_device()
    lines, failed, differing, operands_that_differ = [], 0, 0, 0
    for case in CASES:
        operands = random_operands(case, THREADS)
        try:
            emulated, expected = emulate(case, operands), run_on_gpu(case, operands)
            different = find_differences(case, operands, emulated, expected)
        except Exception as error:
            failed += 1
            lines.append(f"{case.form:32} not compared: {type(error).__name__}: {str(error)[:200]}")
            continue
        if len(different):
            differing += 1
            operands_that_differ += len(different)
            lines.append(describe(case, operands, emulated, expected, different))
    compared = len(CASES) - failed
    print(*lines, sep="\n")
    print(f"{compared} of {len(CASES)} forms x {THREADS} operands compared with {device.name}")
    print(f"{differing} differ, in {operands_that_differ} of {compared * THREADS} operands; {failed} not compared")
    return not lines


if __name__ == "__main__":
    sys.exit(not compare_all())
