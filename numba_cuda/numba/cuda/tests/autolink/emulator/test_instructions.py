# SPDX-License-Identifier: BSD-2-Clause
"""Each form of instruction on random and special operands, against Python's integers and fractions."""

from __future__ import annotations

import pytest
from instruction_cases import FORMS, case_of, emulate, random_operands, width_of
from instruction_reference import FORMATS, decode, float_result, integer_result

CASES = [case for case in map(case_of, FORMS) if case is not None]
THREADS = 256


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.form)
def test_a_form_computes_what_it_says(case):
    operands = random_operands(case, THREADS)
    results = emulate(case, operands)
    checked = 0
    for row, found in zip(operands.tolist(), results[:, 0].tolist(), strict=True):
        expected = integer_result(case, row)
        if expected is None:
            expected = float_result(case, row)
        if expected is None:
            continue
        checked += 1
        if case.results[0] == "f64" and decode(expected, "f64") == "nan":
            assert decode(found, "f64") == "nan", (row, hex(found))
        else:
            assert found == expected, ([hex(v) for v in row], hex(found), hex(expected))
    name, *modifiers = case.form.split(".")
    exact = not {"approx", "cc", "ftz", "NaN", "xorsign"} & set(modifiers) and width_of(case.results[0]) >= 32
    known = name in ("add", "sub", "mul", "fma", "div", "sqrt", "rcp", "min", "max", "shl", "shr", "and", "or", "setp")
    assert checked == THREADS or not (exact and known and modifiers[-1] in ("s32", "u64", *FORMATS))
