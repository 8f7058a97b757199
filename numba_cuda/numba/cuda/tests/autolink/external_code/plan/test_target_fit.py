# SPDX-License-Identifier: BSD-2-Clause
"""Whether inputs fit the target of a link."""

import pytest
from autolink_support import adder, compiled
from code_samples import LINKABLE, fatbin
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item
from numba.cuda.cudadrv.external_code.plan.plan_checks import misfit


@pytest.mark.parametrize(
    ("kind", "arch", "cc", "message"),
    [
        ("cubin", "sm_80", (9, 0), "machine code for sm_80, and the kernel is built for sm_90"),
        ("cubin", "sm_90", (8, 0), "machine code for sm_90, and the kernel is built for sm_80"),
        ("cubin", "sm_80", (8, 6), ""),
        ("cubin", "sm_86", (8, 0), "runs code for sm_80"),
        ("LTO-IR", "sm_100", (9, 0), "LTO-IR for sm_100, which is newer than sm_90"),
        ("LTO-IR", "sm_80", (9, 0), ""),
        ("PTX", "sm_100", (9, 0), "its .target sm_100 is newer than sm_90"),
        ("PTX", "sm_90a", (9, 0), "its .target sm_90a is for that architecture only, not for sm_90"),
        ("PTX", "sm_90a", (10, 0), "its .target sm_90a is for that architecture only"),
        ("PTX", "sm_80", (9, 0), ""),
        ("fatbin", "sm_80", (9, 0), "it holds cubin for sm_80: nothing for sm_90"),
        ("fatbin", "sm_80", (8, 6), ""),
    ],
)
def test_an_input_that_does_not_fit_the_target_is_refused(kind, arch, cc, message):
    how = {"LTO-IR": "ltoir", "PTX": "ptx"}.get(kind, kind)
    code = fatbin(arch) if kind == "fatbin" else compiled(adder("f"), how, arch)
    item = from_item(LINKABLE[kind](code))
    why = misfit(item, autolink.Target(cc))
    assert (message in why) if message else not why
