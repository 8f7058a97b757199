# SPDX-License-Identifier: BSD-2-Clause
"""Each form of instruction on random and special operands."""

from __future__ import annotations

import re

import numpy as np
import pytest
from emulator_support import run
from instruction_cases import FORMS, case_of, digest_of, emulate, random_operands

from numba_cuda_autolink import EmulationError

CASES = [case for case in map(case_of, FORMS) if case is not None]
THREADS = 256


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.form)
def test_a_form_computes_what_it_did(case):
    """To the bit. `test_instructions_on_gpu` compares with a GPU, approximations by their bounds."""
    if re.search(r"\.(approx|full)\b", case.form):
        assert not FORMS[case.form]
    else:
        found = digest_of(case, emulate(case, random_operands(case, THREADS)))
        assert found == FORMS[case.form], "if it is what a GPU gives, write this digest beside the form"


ELEMENT = """mov.u32 %r0, %tid.x; mul.wide.u32 %rd8, %r0, 4; add.s64 %rd10, %rd0, %rd8; add.s64 %rd11, %rd1, %rd8;
    ld.global.f32 %f0, [%rd10];"""


class TestFloatsOfEightBits:
    """Values of e4m3 and e5m2 by their codes, which are in the order of the values."""

    def values(self, mantissa_bits: int, bias: int, largest: int) -> np.ndarray:
        codes = np.arange(largest + 1)
        exponents, mantissas = codes >> mantissa_bits, (codes & (1 << mantissa_bits) - 1) / 2.0**mantissa_bits
        return np.where(exponents, (1 + mantissas) * 2.0 ** (exponents - bias), mantissas * 2.0 ** (1 - bias))

    @pytest.mark.parametrize(("name", "format"), [("e4m3", (3, 7, 0x7E)), ("e5m2", (2, 15, 0x7B))])
    def test_the_nearest(self, name, format):
        values = self.values(*format)
        halfway = (values[:-1] + values[1:]) / 2
        near = np.concatenate([values, halfway, np.nextafter(np.float32(halfway), np.float32(9e9)), [1e9, np.inf]])
        x = np.concatenate([near, -near]).astype(np.float32)[:1024]
        r = np.zeros(x.size, np.uint32)
        body = f"cvt.rn.satfinite.{name}x2.f32 %h0, %f0, 0f7FC00000; cvt.u32.u16 %r1, %h0; st.global.u32 [%rd11], %r1;"
        run(ELEMENT + body, x.size, x, r)
        below = np.clip(np.searchsorted(values, np.abs(x), "right") - 1, 0, len(values) - 2)
        distances = np.abs(x).astype(np.float64) - halfway[below]
        codes = np.where((distances > 0) | ((distances == 0) & (below & 1 == 1)), below + 1, below)
        assert ((r >> 8) == codes + 128 * np.signbit(x)).all()
        assert (r & 0xFF == 0x7F).all()

    @pytest.mark.parametrize(("name", "format"), [("e4m3", (3, 7, 0x7E)), ("e5m2", (2, 15, 0x7B))])
    def test_all_codes_as_halves_and_back(self, name, format):
        codes = np.arange(256, dtype=np.uint32)
        x, r = codes.copy(), np.zeros(512, np.uint32)
        body = f"""ld.global.u32 %r1, [%rd10]; cvt.u16.u32 %h0, %r1; cvt.rn.f16x2.{name}x2 %r2, %h0;
            st.global.u32 [%rd11], %r2; cvt.rn.satfinite.{name}x2.f16x2 %h1, %r2; cvt.u32.u16 %r3, %h1;
            st.global.u32 [%rd11+1024], %r3;"""
        run(ELEMENT + body, 256, x, r)
        halves, back, finite = r[:256].astype(np.uint16).view(np.float16), r[256:], codes & 0x7F <= format[2]
        signs = np.where(codes >= 128, -1.0, 1.0)
        assert (
            halves[finite] == (signs * np.resize(np.append(self.values(*format), [0] * 4)[:128], 256))[finite]
        ).all()
        assert (back[finite] == codes[finite]).all()


@pytest.mark.parametrize("form", ["atom.global.add.v4.f32 {%f1, %f2, %f3, %f4},", "red.relaxed.gpu.global.add.v4.f32"])
def test_an_atomic_operation_on_each_element_of_a_vector(form):
    x, old = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    body = f"""mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; {form} [%rd0], {{%f2, %f1, %f1, %f2}};
        st.global.v4.f32 [%rd1], {{%f1, %f2, %f3, %f4}};"""
    run(body, 1, x, old)
    assert x.tolist() == [2, 2, 3, 5]
    assert old.tolist()[:2] == ([0, 1] if form.startswith("atom") else [1, 2])
    with pytest.raises(EmulationError, match="An atomic access of 16 bytes out of bounds"):
        run(body, 1, x[:3], old)
