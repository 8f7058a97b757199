# SPDX-License-Identifier: BSD-2-Clause
"""Every kind of linkable code, alone and mixed, in memory and from files."""

import os

import pytest
from autolink_support import Linked, adder, build, compiled, elf, from_nvcc, have_nvcc, read_diagnosis, symbols
from cuda.core import ObjectCode
from numba import cuda
from numba.cuda import autolink
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item

needs_nvcc = pytest.mark.skipif(not have_nvcc(), reason="nvcc makes fatbins, objects and archives, and is not here")

NAMES = ("source", "ltoir", "ptx", "cubin", "fatbin", "object", "archive")
FROM_NVCC = ("fatbin", "object", "archive")
KINDS = [pytest.param(kind, marks=needs_nvcc) if kind in FROM_NVCC else kind for kind in NAMES]
LINKABLE = {
    "source": cuda.CUSource,
    "ltoir": cuda.LTOIR,
    "ptx": cuda.PTXSource,
    "cubin": cuda.Cubin,
    "fatbin": cuda.Fatbin,
    "object": cuda.Object,
    "archive": cuda.Archive,
}
SUFFIX = {"source": ".cu", "object": ".o", "archive": ".a"}


def code_of_kind(kind, source):
    if kind == "source":
        return source
    if kind in ("fatbin", "object", "archive"):
        return from_nvcc((source,), kind)
    return compiled(source, kind)


def kernel_calling(*functions):
    first, *others = functions
    for other in others:
        first = (lambda one, two: cuda.jit(device=True)(lambda x: one(x) + two(x)))(first, other)

    def kernel(x):
        x[0] = first(x[1])

    return kernel


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_links_from_memory_and_from_a_file(kind, tmp_path):
    code = code_of_kind(kind, adder("add_one"))
    item = LINKABLE[kind](code)
    for lto in (True, False):
        linked = build(kernel_calling(Linked("add_one", item).function), lto=lto)
        assert elf(linked.code)["e_machine"] == "EM_CUDA"
        # Inlined where the input takes part in link-time optimisation; else there as a function of its own.
        is_inlined = kind == "ltoir" or (lto and kind == "source")
        assert is_inlined or {linked.entry_name, "add_one"} <= symbols(linked.code)
    file = tmp_path / f"code{SUFFIX.get(kind, '.' + kind)}"
    file.write_bytes(code.encode() if isinstance(code, str) else code)
    others = [file, str(file)]
    if kind in ("ltoir", "ptx", "cubin"):
        others.append(getattr(ObjectCode, f"from_{kind}")(code))
    for other in others:
        assert (from_item(other).kind, from_item(other).code) == (from_item(item).kind, from_item(item).code)


@pytest.mark.parametrize("step", [1, -1])
def test_kinds_mix_in_the_order_of_first_use_after_those_of_link_and_of_declarations(step):
    kinds = [name for name in NAMES if have_nvcc() or name not in FROM_NVCC][::step]
    items = [LINKABLE[kind](code_of_kind(kind, adder(f"of_{kind}"))) for kind in kinds]
    calls = [Linked(f"of_{kind}", item).function for kind, item in zip(kinds, items, strict=True)]
    declared = cuda.declare_device("declared", "int32(int32)", link=cuda.CUSource(adder("declared")))
    named = cuda.declare_device("named", "int32(int32)")
    linked = build(kernel_calling(*calls, declared, named), link=[cuda.CUSource(adder("named"))])
    found = [planned.input.code for planned in linked.inputs]
    asked = [from_item(item).code for item in items]
    assert [code for code in found if code in asked] == asked
    assert {adder("named").encode(), adder("declared").encode(), *asked} == {*found}


def test_a_source_has_its_own_paths_macros_and_options(tmp_path):
    (tmp_path / "amount.cuh").write_text("#define AMOUNT (BASE + FLAG)")
    code = "#include <amount.cuh>\n#if __cplusplus < 202002L\n#error\n#endif\n" + adder("add_amount", "AMOUNT")
    source = autolink.CUDASource(
        code, include_paths=[tmp_path], defines={"BASE": 2, "FLAG": None}, options={"std": "c++20"}
    )
    build(kernel_calling(Linked("add_amount", source).function))


def test_a_source_in_a_file_has_its_folder_and_name_and_options(tmp_path):
    (tmp_path / "amount.cuh").write_text("#define AMOUNT (BASE + 1)")
    file = tmp_path / "amount.cu"
    file.write_text('#include "amount.cuh"\n' + adder("add_amount", "AMOUNT"))
    given = {"include_paths": ["include"], "defines": {"BASE": 2}}
    sources = autolink.CUDASource(file, **given), autolink.CUDASource.from_file(str(file), **given)
    assert sources[0] == sources[1] != autolink.CUDASource(file)
    assert sources[0] != autolink.CUDASource(file.read_text(), **given)
    assert [source.name for source in sources] == [str(file)] * 2
    assert sources[0].compile_options.include_paths == (str(tmp_path), os.path.abspath("include"))
    (planned,) = build(kernel_calling(Linked("add_amount", sources[1]).function)).inputs
    assert (planned.input.name, planned.input.code.decode()) == (str(file), file.read_text())
    assert autolink.CUDASource.from_file(file, name="other.cu").name == "other.cu"
    file.unlink()
    with pytest.raises(TypingError, match=r"amount\.cu not found"):
        build(kernel_calling(Linked("add_amount", sources[0]).function))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"code": b"bytes"}, TypeError, r"takes the source as a str, or a pathlib\.Path, got bytes"),
        ({"options": {"use_fast_mth": True}}, ValueError, "did you mean use_fast_math?"),
        ({"options": {"arch": "sm_90"}}, ValueError, "it follows from the kernel's target"),
        ({"options": {"include_path": "x"}}, ValueError, "use include_paths="),
    ],
)
def test_a_source_refuses_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        autolink.CUDASource(**{"code": "", **arguments})


def test_equal_code_of_two_objects_links_once():
    source = adder("shared") + '\nextern "C" __device__ int other(int *out, int x) { *out = x; return 0; }'
    one = Linked("shared", cuda.LTOIR(compiled(source, "ltoir")))
    two = Linked("other", cuda.LTOIR(compiled(source, "ltoir")))
    linked = build(kernel_calling(one.function, two.function))
    (only,) = linked.inputs
    assert len(only.origins) == 2


WRONG = [
    (lambda tmp: b"bytes", "got: bytes", "wrap the bytes, whose kind is not known: cuda.LTOIR"),
    (lambda tmp: 3, "got: int 3", "expected: a LinkableCode"),
    (lambda tmp: {"a": 1}, "got: dict", "expected: a LinkableCode"),
    (lambda tmp: [cuda.CUSource(""), None], "got: None", "expected: a LinkableCode"),
    (lambda tmp: str(tmp / "missing.ltoir"), "missing.ltoir not found", ""),
    (lambda tmp: tmp / "code.bin", "Don't know how to link file with extension .bin", "known: .cu"),
    (lambda tmp: tmp / "code", "Don't know how to link file with no extension", ""),
    (lambda tmp: tmp, "Don't know how to link file with no extension", ""),
    (
        lambda tmp: "__device__ int f() { return 1; }",
        "a str is the path of a file, got text",
        "autolink.CUDASource(text)",
    ),
    (lambda tmp: cuda.Cubin(b""), "cubin", "is empty"),
    (lambda tmp: cuda.Cubin(compiled(adder("f"), "ltoir")), "is not cubin", "it looks like LTO-IR"),
    (lambda tmp: cuda.LTOIR(compiled(adder("f"), "cubin")), "is not LTO-IR", "it looks like cubin"),
    (lambda tmp: cuda.PTXSource(compiled(adder("f"), "cubin")), "is not PTX", "it looks like cubin"),
    (lambda tmp: cuda.PTXSource(compiled(adder("f"), "ltoir")), "is not PTX", "it looks like LTO-IR"),
    (lambda tmp: cuda.CUSource(compiled(adder("f"), "ltoir")), "is not CUDA C++ source", "it looks like LTO-IR"),
    (lambda tmp: cuda.LTOIR(3.5), "holds float 3.5", "expected bytes or str"),
    (
        lambda tmp: cuda.Archive(b"text"),
        "is not archive",
        "it begins with b'text'",
    ),
    (lambda tmp: cuda.PTXSource(b"__device__ int f();"), "cannot be linked as PTX: ", "autolink.CUDASource(text)"),
    (lambda tmp: cuda.LTOIR(b"__device__ int f();"), "is not LTO-IR: it begins with", "autolink.CUDASource(text)"),
]


@pytest.mark.parametrize(("answer", "message", "hint"), WRONG)
def test_what_cannot_be_linked_is_refused_at_the_call(answer, message, hint, tmp_path):
    spy = Linked("wrong", lambda: answer(tmp_path))
    with pytest.raises(TypingError) as caught:
        build(kernel_calling(spy.function))
    text = str(caught.value)
    assert message in text
    assert hint in read_diagnosis(caught.value)
    assert "__numba_cuda_link__ returned what cannot be linked" in text
    assert f"{__file__}:" in text
    assert "x[0] = first(x[1])" in text
