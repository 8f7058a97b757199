# SPDX-License-Identifier: BSD-2-Clause
"""Instructions that the architecture of the kernel does not have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from autolink_support import build, calling, compiled, ptx, without_place
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.explain.source_errors import unsupported_in
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

SOURCE = """extern "C" __device__ float special(float x) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    return x;
}"""


class Special(autolink.DeviceCallable):
    def __init__(self, item):
        self.item = item

    def __numba_cuda_call__(self, x):
        return autolink.Extern("special", returns=x)

    def __numba_cuda_link__(self, x):
        return self.item


def kernel_with(item):
    special = Special(item)

    def kernel(x):
        x[0] = special(x[1])

    return kernel


ITEMS = {
    "source": lambda: autolink.CUDASource(SOURCE, name="special.cu"),
    "ltoir": lambda: cuda.LTOIR(compiled(SOURCE, "ltoir"), name="special.ltoir"),
    "ptx": lambda: cuda.PTXSource(ptx(SOURCE), name="special.ptx"),
}


@pytest.mark.parametrize("lto", [True, False])
@pytest.mark.parametrize("kind", ITEMS)
def test_the_error_names_the_input_the_architecture_and_the_ptx(kind, lto, capfd):
    with pytest.raises(LinkError) as caught:
        build(kernel_with(ITEMS[kind]()), "void(float32[::1])", lto=lto)
    first, *lines = without_place(caught.value).splitlines()
    assert first.endswith("sm_90 does not have the instruction 'setmaxnreg.inc'")
    assert [line for line in lines if line.startswith("  at fault: ")] == [lines[0]]
    assert "'special." in lines[0] and f"\n  called at: {__file__}:" in str(caught.value)
    assert lines[1:3] == ["  got: an instruction of sm_90a", "  expected: instructions of sm_90"]
    assert "setmaxnreg.inc.sync.aligned.u32 232;" in Path(caught.value.source_path).read_text()
    assert lines[3].startswith(f"  generated PTX: {caught.value.source_path}, line ")
    assert lines[4] == "  linking kernel 'kernel' for sm_90 failed"
    assert lines[5].startswith("  what to do: build the kernel for sm_90a, or ")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("body", "cc", "diagnosis", "wanted"),
    [
        (
            '{ .reg .b8 a; cvt.rn.satfinite.e2m1x2.f32 a, %0, %0; }" :: "f"(x)',
            (9, 0),
            r"sm_90 does not have the (feature 'cvt\.e2m1x2\.f32'|instruction 'cvt with \.e2m1x2')",
            "sm_100a",
        ),
        (
            '{ .reg .b32 a; cvt.rna.tf32.f32 a, %0; }" :: "f"(x)',
            (7, 5),
            "sm_75 does not have the type '.tf32'",
            "sm_80",
        ),
    ],
)
def test_types_of_other_architectures_are_named_with_their_line(body, cc, diagnosis, wanted):
    """ptxas leaves parts of the instruction out of its message."""
    code = f'extern "C" __device__ float special(float x) {{ asm volatile("{body}); return x; }}'
    with pytest.raises(LinkError) as caught:
        build(kernel_with(autolink.CUDASource(code, name="special.cu")), "void(float32[::1])", cc=cc)
    first, *lines = without_place(caught.value).splitlines()
    assert re.search(f"^{diagnosis}$", first) and len(first) < 120
    assert lines[0].startswith("  at fault: CUDA C++ source 'special.cu' of ")
    assert lines[1] == f"  got: an instruction of {wanted}"
    assert "cvt.rn" in lines[3]


WRONG = [
    ("frobnicate.f32 %0, %0;", "Not a name of any known instruction: 'frobnicate'"),
    ("add.f32 %0;", "Arguments mismatch for instruction 'add'"),
]


@pytest.mark.parametrize("lto", [True, False])
@pytest.mark.parametrize(("assembly", "diagnosis"), WRONG)
def test_wrong_assembly_is_named_with_its_line(assembly, diagnosis, lto, tmp_path):
    code = f'extern "C" __device__ float special(float x) {{\n    asm("{assembly}" : "+f"(x));\n    return x;\n}}'
    (tmp_path / "special.cu").write_text(code)
    for function, error, place in (
        (Special(autolink.CUDASource(code, name="special.cu")), LinkError, 'line 2: asm("'),
        (autolink.cxx(tmp_path / "special.cu").special, (LinkError, TypingError), f"{tmp_path / 'special.cu'}:2\n"),
    ):
        with pytest.raises(error) as caught:
            build(calling(function), "void(float32[::1])", lto=lto)
        first, *lines = str(caught.value).split("\n")
        assert first.endswith(diagnosis)
        assert f"\n  in C++: {place}" in "\n".join(lines)
        assert "  what to do: correct that instruction of PTX in asm(...)" in lines


def test_the_architecture_that_has_it_takes_it():
    build(kernel_with(ITEMS["source"]()), "void(float32[::1])", cc=(9, 0, "a"))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Instruction 'wgmma.fence' cannot be compiled for architecture 'sm_100a'", "wgmma.fence"),
        ("Feature '.multicast::cluster' requires .target sm_90 or higher", ".multicast::cluster"),
        ("Modifier '.bf16x2' on 'add' requires .target sm_90 or higher", ".bf16x2"),
        ("Unknown symbol 'x'", None),
    ],
)
def test_what_ptxas_says_of_it(text, what):
    found = unsupported_in(f"ptxas application ptx input, line 7; error   : {text}\n")
    assert (found and found["what"]) == what
