# SPDX-License-Identifier: BSD-2-Clause
"""The way from a plan to a cubin: one look-up if it was linked before, under a key that stands for all its parts."""

from __future__ import annotations

import sys

import autolink_support
import pytest
from autolink_support import CC, Linked, adder, build
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv import nvvm
from numba.cuda.cudadrv.external_code import pipeline
from numba.cuda.cudadrv.external_code.cache.store import current_store, reset_store
from numba.cuda.cudadrv.external_code.compile import nvrtc_processes
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CPrototype, CType
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link import checked_link
from numba.cuda.cudadrv.external_code.plan.link_plan import (
    NAMED_EXPLICITLY,
    KernelCode,
    LinkPlan,
    LinkRequest,
    LLVMModules,
    SymbolSite,
)

from numba_cuda_autolink.package_versions import package_versions


def calls(function, plus=0):
    def kernel(x):
        x[0] = function(x[1]) + plus

    return kernel


class Looks:
    """The kinds of the entries that the store is asked for."""

    def __init__(self, monkeypatch):
        self.kinds = []
        for name in ("fetch", "get"):
            original = getattr(type(current_store()), name)
            monkeypatch.setattr(type(current_store()), name, self._noting(original))

    def _noting(self, original):
        def noting(store, key, *args, **kwargs):
            self.kinds.append(key.kind)
            return original(store, key, *args, **kwargs)

        return noting


def test_what_nvrtc_warned_of_is_said_each_time():
    """As numba-cuda does: also of a kernel whose link, or whose source, is in the cache."""
    code = 'extern "C" __device__ int unused(int* r, int a) { int never_used; *r = a; return 0; }'
    for source in (autolink.CUDASource(code, include_paths=["."]), cuda.CUSource(code)):
        function = cuda.declare_device("unused", "int32(int32)", link=[source])
        for plus in (0, 0, 1):
            reset_store()
            with pytest.warns(UserWarning, match=r"NVRTC log messages: .*\bnever_used\b") as said:
                build(calls(function, plus))
            assert len(said) == 1 and said[0].filename == autolink_support.__file__


@pytest.mark.parametrize("lineinfo", [False, True])
def test_a_warning_has_its_line_in_python_also_of_a_link_in_the_cache(lineinfo):
    first, second = (
        autolink.cxx(f"""
            __device__ float warned_{name}(float x) {{ int unused_{name}; return x; }}
        """)
        for name in ("a", "b")
    )
    line = sys._getframe().f_lineno - 4

    def kernel(x):
        x[0] = first.warned_a(x[0]) + second.warned_b(x[0])

    for _ in range(2):
        reset_store()
        with pytest.warns(UserWarning) as said:
            build(kernel, "void(float32[::1])", lineinfo=lineinfo)
        for name, warning in zip(("a", "b"), map(str, (each.message for each in said)), strict=True):
            assert warning.startswith(f"NVRTC log messages: {__file__}:{line}: warning #177-D: ")
            assert f"unused_{name}" in warning and "<warning-number>" not in warning
            assert 'options={"diag_suppress": number}' in warning


@pytest.mark.counted
@pytest.mark.parametrize("answer", ["source", "ltoir"])
def test_a_kernel_that_was_linked_is_one_look_up(answer, monkeypatch):
    from autolink_support import compiled

    code = adder(f"looked_up_{answer}")
    function = Linked(
        f"looked_up_{answer}", autolink.CUDASource(code) if answer == "source" else cuda.LTOIR(compiled(code, "ltoir"))
    ).function
    first = build(calls(function))
    reset_store()
    with monkeypatch.context() as patch:
        for owner, name in ((nvrtc_processes, "run_in_child"), (nvvm, "compile_ir"), (checked_link, "link_here")):
            patch.setattr(owner, name, None)
        looks = Looks(patch)
        again = build(calls(function))
    assert again.code == first.code
    assert [kind for kind in looks.kinds if kind != "headers"] == ["link"]  # not the program, and nothing of checks
    records = [each.report.builds[0].link for each in (first, again)]
    assert [record.origin for record in records] == ["built", "disk"]
    assert records[0].inputs[1:] and [each.sha256 for each in records[0].inputs] == [
        each.sha256 for each in records[1].inputs
    ]


def test_a_header_that_is_edited_also_while_it_is_linked_is_noticed(tmp_path, monkeypatch):
    """The key is made before the source is compiled."""
    header = tmp_path / "edited.h"
    header.write_text("#define AMOUNT 1\n")
    text = '#include "edited.h"\n' + adder("edited_meanwhile").replace("x + 1", "x + AMOUNT")
    function = Linked("edited_meanwhile", autolink.CUDASource(text, include_paths=[tmp_path])).function
    first = build(calls(function))
    header.write_text("#define AMOUNT 1234567\n")
    second = build(calls(function))
    header.write_text("#define AMOUNT 1\n")
    assert second.code != first.code == build(calls(function)).code
    current = pipeline.recorded_keys

    def edit_after(plan, **how):
        keys = current(plan, **how)
        header.write_text("#define AMOUNT 7654321\n")
        return keys

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "recorded_keys", edit_after)
        edited = build(calls(function, 1))
    assert build(calls(function, 1)).code == edited.code
    header.write_text("#define AMOUNT 1\n")
    assert build(calls(function, 1)).code != edited.code


TARGET = autolink.Target(CC, lto=True)
SOURCE = LinkInput(kinds.CUDA, adder("f").encode(), name="f.cu")
INT, FLOAT, POINTER = CType("int", "int", 4, 4), CType("float", "float", 4, 4), CType("int*", "pointer", 8, 8)
SITE = SymbolSite("i32 (i32*, i32)", "the call", asked=("an object",))


def key(*, source=SOURCE, origin="an object", target=TARGET, output="cubin", drop=False, runtime=None, **own):
    kernel_code = KernelCode(
        **{
            "inputs": (LLVMModules(("define void @k() { ret void }",), (("opt", 3),), "k"),),
            "entry": "k",
            "undefined": ("f",),
            "sites": {"f": (SITE,)},
            **own,
        }
    )
    request = LinkRequest(LinkPlan.of("kernel 'k'", target, [(origin, source)]), kernel_code, output, drop)
    return pipeline._Link(request, runtime)._key([b"unit"]).digest


OTHER_INPUTS = (LLVMModules(("define void @k() { unreachable }",), (("opt", 3),), "k"),)
OTHER_OPTIONS = (LLVMModules(("define void @k() { ret void }",), (("opt", 0),), "k"),)
PTX = LinkInput(kinds.PTX, b".version 8.0\n.target sm_90\n.address_size 64\n", name="k")
BY_C = SITE._replace(c_prototype=CPrototype(INT, (POINTER, FLOAT)))


@pytest.mark.parametrize(
    "other",
    [
        {"inputs": OTHER_INPUTS},
        {"inputs": OTHER_OPTIONS},
        {"inputs": (PTX,)},
        {"entry": "other"},
        {"undefined": ("f", "g")},
        {"sites": {"f": (BY_C,)}},
        {"sites": {"f": (SITE, BY_C)}},
        {"options": {"optimization_level": 0}},
        {"origin": NAMED_EXPLICITLY},
        {"target": autolink.Target((10, 0), lto=True)},
        {"target": autolink.Target(CC, lto=True, max_registers=32)},
        {"target": autolink.Target(CC, lto=True, lineinfo=True)},
        {"output": "ptx"},
        {"drop": True},
        {"runtime": PTX},
    ],
    ids=str,
)
def test_the_key_differs(other):
    assert key(**other) != key()


@pytest.mark.parametrize(
    "other",
    [
        {"origin": "another object", "sites": {"f": (SITE._replace(asked=("another object",), call="another call"),)}},
        {"inputs": (LLVMModules(("define void @k() { ret void }",), (("opt", 3),), "another name"),)},
    ],
    ids=str,
)
def test_the_key_is_the_same_with_the_same_tools(other, monkeypatch):
    assert key(**other) == (before := key())
    for library in ("nvjitlink_build", "nvvm_build"):
        with monkeypatch.context() as patch:
            patch.setattr(pipeline.cuda_libraries, library, lambda: "another build")
            assert key() != before
    versions = package_versions()
    for package in ("numba-cuda-autolink", "numba-cuda"):
        with monkeypatch.context() as patch:
            patch.setattr(pipeline, "version_of", {**versions, package: "another"}.get)
            assert key() != before
