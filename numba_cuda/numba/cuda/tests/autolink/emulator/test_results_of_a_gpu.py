# SPDX-License-Identifier: BSD-2-Clause
"""Operands whose results PTX leaves open, or where GPUs differ from processors, with what an H200 gave (CUDA 13.0)."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support import run
from instruction_cases import case_of, emulate

# Form, operands, results; of atomic operations the old and the new value
MEASURED = [
    ("abs.f16", [0xFC1B], [0x7FFF]),
    ("abs.f32", [0x7FC00000], [0x7FFFFFFF]),
    ("abs.ftz.f32", [0x7FA26C76], [0x7FFFFFFF]),
    ("abs.f64", [0xFFF56EE0C5F0505B], [0xFFFD6EE0C5F0505B]),
    ("neg.f32", [0x7FEA70BD], [0x7FFFFFFF]),
    ("neg.f64", [0x7FF8000000000000], [0x7FF8000000000000]),
    ("rem.s32", [0x7126916A, 0], [0xFFFFFFFF]),
    ("rem.u32", [0x9BEE24DA, 0], [0xFFFFFFFF]),
    ("rem.s64", [0x8000000000000000, 0], [0xFFFFFFFFFFFFFFFF]),
    ("cvt.rzi.s16.f64", [0x7FF8000000000000], [0x8000]),
    ("cvt.rzi.s32.f64", [0x7FF8000000000000], [0x80000000]),
    ("cvt.rni.s32.f64", [0x7FF8000000000000], [0x80000000]),
    ("cvt.rn.f32.f64", [0x7FF8000000000000], [0x7FC00000]),
    ("cvt.rn.f16.f64", [0x7FF8000000000000], [0x7E00]),
    ("bfi.b64", [0x8000000000000000, 0xB950A5738DFF1FE1, 0, 0xF8B75E0C], [0x8000000000000000]),
    ("atom.shared.add.f32", [0x5EE02E43, 0x7FC00000], [0x5EE02E43, 0x7FFFFFFF]),
    ("atom.global.add.f32", [0x803D6327, 0x01831511], [0x803D6327, 0x01831511]),
    ("atom.add.f64", [0x7FF21A8EAAEEBDAC, 0x584762155ECE5691], [0x7FF21A8EAAEEBDAC, 0x7FF21A8EAAEEBDAC]),
    ("mul.rp.f64", [0xFFFFE9F0D02E3D25, 0x7FF8000000000000], [0x7FF8000000000000]),
    ("fma.rz.f64", [0x7FFBAE555205D7BB, 0x7FF8000000000000, 0x4045C9A111D087A4], [0x7FF8000000000000]),
]
# What follows of those and of the machine code of these forms
DERIVED = [
    ("neg.f16", [0xFE01], [0x7FFF]),
    ("neg.bf16x2", [0x7F81_3F80], [0x7FFF_BF80]),
    ("abs.bf16", [0xFF81], [0x7FFF]),
    ("abs.f64", [0x7FF7E6C2EAD16ED8], [0x7FFFE6C2EAD16ED8]),
    ("neg.f64", [0xFFF61243C1DC31A3], [0xFFFE1243C1DC31A3]),
    ("rem.u64", [5, 0], [0xFFFFFFFFFFFFFFFF]),
    ("rem.s16", [5, 0], [0xFFFF]),
    ("cvt.rzi.s8.f64", [0x7FF8000000000000], [0xFF80]),
    ("cvt.rz.f32.f64", [0xFFF3D01CC9EF2F81], [0xFFDE80E6]),
    ("cvt.rn.f16.f64", [0xFFF620DD486CAE76], [0xFF88]),
    ("bfi.b64", [5, 0x1234, 256, 8], [0x1234]),
    ("bfi.b32", [5, 0x1234, 256, 0x104], [0x1235]),
    ("atom.shared.add.f32", [0x803D6327, 0x01831511], [0x803D6327, 0x0167788E]),
    ("atom.global.add.f32", [0x7FC00000, 0x3E9F1C57], [0x7FC00000, 0x7FFFFFFF]),
]


@pytest.mark.parametrize(("form", "operands", "results"), [*MEASURED, *DERIVED])
def test_the_result_is_that_of_a_gpu(form, operands, results):
    found = emulate(case_of(form), np.array([operands], np.uint64))
    assert [hex(v) for v in found[0].tolist()] == [hex(v) for v in results]


@pytest.mark.parametrize(("space", "expected"), [("shared", 0x0167788E), ("global", 0x01831511)])
def test_a_generic_address_adds_as_its_memory_does(space, expected):
    x = np.zeros(1, np.uint32)
    address = "mov.u64 %rd2, w; cvta.shared.u64 %rd1, %rd2;" if space == "shared" else "mov.u64 %rd1, %rd0;"
    run(
        f""".shared .align 4 .b8 w[4]; {address}
        st.u32 [%rd1], 0x803D6327; mov.b32 %f0, 0x01831511; atom.add.f32 %f1, [%rd1], %f0;
        ld.u32 %r1, [%rd1]; st.global.u32 [%rd0], %r1;""",
        1,
        x,
    )
    assert hex(x[0]) == hex(expected)
