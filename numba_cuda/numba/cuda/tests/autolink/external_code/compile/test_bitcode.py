# SPDX-License-Identifier: BSD-2-Clause
"""LLVM bitcode as linkable code: through NVVM to LTO-IR, or through llvmlite's LLVM to PTX."""

import functools
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest
from autolink_support import build
from cuda import pathfinder
from numba import cuda, float32, int32
from numba.cuda import autolink
from numba.cuda.autolink.testing import check_linkable
from numba.cuda.cudadrv.external_code.cache.store import reset_store
from numba.cuda.cudadrv.external_code.compile.bitcode import defined
from numba.cuda.cudadrv.external_code.compile.programs import compiled
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

TARGETS = [autolink.Target((9, 0), lto=True), autolink.Target((9, 0)), autolink.Target((12, 0), lto=True)]

TWICE = """
    target triple = "nvptx64-nvidia-cuda"
    @calls = global i32 7
    declare float @__nv_fast_cosf(float)
    define i32 @twice(i32 %x) {
        %y = call i32 @helper(i32 %x)
        ret i32 %y
    }
    define i32 @helper(i32 %x) noinline {
        %y = shl i32 %x, 1
        ret i32 %y
    }
    define i32 @unused(i32 %x) {
        ret i32 %x
    }
    define float @cosine(float %x) {
        %y = call float @__nv_fast_cosf(float %x)
        ret float %y
    }
    define internal i32 @hidden(i32 %x) {
        ret i32 %x
    }
"""

# libdevice's sine under a name of its own, for which the kernel's compiler has no definition at hand.
SINE = """
.version 7.0
.target sm_75
.address_size 64
.extern .func (.param .b32 y) __nv_fast_sinf(.param .b32 x);
.visible .func (.param .b32 result) sine(.param .b32 angle) {
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [angle];
    {
        .param .b32 x;
        .param .b32 y;
        st.param.b32 [x], %r1;
        call.uni (y), __nv_fast_sinf, (x);
        ld.param.b32 %r2, [y];
    }
    st.param.b32 [result], %r2;
    ret;
}
"""


@functools.cache
def bitcode(text=TWICE):
    return llvm.parse_assembly(text).as_bitcode()


def libdevice():
    return pathfinder.locate_bitcode_lib("device").abs_path


def link_input(data, name="code.bc"):
    from numba.cuda.cudadrv.external_code.inputs.link_input import from_item

    return from_item(autolink.Bitcode(data, name))


class Calls(autolink.DeviceCallable):
    """A call to *symbol*, whose hook returns *answer*."""

    def __init__(self, symbol, answer, returns=int32):
        self.symbol = symbol
        self.answer = answer
        self.returns = returns

    def __numba_cuda_call__(self, x):
        return autolink.Extern(self.symbol, returns=self.returns)

    def __numba_cuda_link__(self, x):
        return self.answer


def kernel_of(function, **options):
    def kernel(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = function(x[i])

    return cuda.jit(kernel, **options)


def twice(symbol="twice", answer=None):
    return Calls(symbol, autolink.Bitcode(bitcode(), "twice.bc") if answer is None else answer)


def sine():
    return Calls("sine", [cuda.PTXSource(SINE, name="sine.ptx"), libdevice()], returns=float32)


class TestLinks:
    @pytest.mark.parametrize(
        "cc", [(7, 5), (12, 0), *(pytest.param(cc, marks=pytest.mark.thorough) for cc in [(9, 0), (10, 0)])]
    )
    @pytest.mark.parametrize("lto", [True, False])
    def test_what_a_hook_returns(self, cc, lto):
        linked = build(kernel_of(twice(), lto=lto), cc=cc)
        (planned,) = linked.inputs
        assert (planned.input.kind.name, planned.input.name) == ("LLVM bitcode", "twice.bc")
        assert linked.code.startswith(b"\x7fELF")

    def test_a_path(self, tmp_path):
        path = tmp_path / "library.bc"
        path.write_bytes(bitcode())
        assert build(kernel_of(twice(answer=path))).inputs[0].input.name == str(path)

    def test_a_file_that_link_names(self, tmp_path):
        path = tmp_path / "library.bc"
        path.write_bytes(bitcode())
        function = cuda.declare_device("function", "int32(int32)")
        text = TWICE + "define i32 @function(i32* %out, i32 %x) { store i32 %x, i32* %out\nret i32 0 }".replace(
            "i32*", "ptr"
        )
        path.write_bytes(bitcode(text))
        assert build(kernel_of(function, link=[str(path)])).code

    def test_numba_cuda_s_own_functions_stay_out_of_it(self):
        """The library and the kernel may both call libdevice's functions."""
        linked = build(kernel_of(Calls("cosine", autolink.Bitcode(bitcode()), float32)), "void(float32[::1])")
        assert linked.inputs[0].input.name == "Calls.bc"

    def test_an_object_that_returns_it_is_linkable(self):
        check_linkable(twice(), int32)

    def test_the_report_shows_it_and_what_it_defines(self):
        report = autolink.report(kernel_of(twice()), "void(int32[::1])", cc=(9, 0))
        assert "LLVM bitcode" in str(report)
        assert "defines: calls, twice" in str(report)


class TestLibdevice:
    @pytest.mark.parametrize("target", TARGETS[:2])
    def test_the_functions_that_are_referenced(self, target):
        with open(libdevice(), "rb") as file:
            item = link_input(file.read())
        program = compiled(item, target, {"__nv_fast_sinf"})
        whole = compiled(item, target)
        assert program.kind.name == whole.kind.name == ("LTO-IR" if target.lto else "PTX")
        assert len(program.code) < 4096 < 100_000 < len(whole.code)
        if not target.lto:
            assert b"__nv_fast_sinf" in program.code
            assert b"__nv_fast_cosf" not in program.code

    @pytest.mark.thorough
    @pytest.mark.parametrize("lto", [True, False])
    def test_all_of_it_for_ptx_that_calls_it(self, lto):
        linked = build(kernel_of(sine(), lto=lto), "void(float32[::1])")
        assert [planned.input.kind.name for planned in linked.inputs] == ["PTX", "LLVM bitcode"]


class TestSelection:
    @pytest.mark.parametrize("lto", [True, False])
    def test_all_of_it_for_ptx_that_calls_it(self, lto):
        own = bitcode('target triple = "nvptx64-nvidia-cuda"\ndefine float @own(float %x) { ret float %x }')
        ptx = cuda.PTXSource(SINE.replace("__nv_fast_sinf", "own"), name="sine.ptx")
        function = Calls("sine", [ptx, autolink.Bitcode(own, "own.bc")], returns=float32)
        linked = build(kernel_of(function, lto=lto), "void(float32[::1])")
        assert [planned.input.kind.name for planned in linked.inputs] == ["PTX", "LLVM bitcode"]

    def test_the_visible_functions_are_its_definitions(self):
        names = defined(link_input(bitcode()))
        assert names == ("twice", "helper", "unused", "cosine")

    @pytest.mark.parametrize("target", TARGETS)
    def test_referenced_functions_and_what_they_need(self, target):
        program = compiled(link_input(bitcode()), target, {"twice"})
        if program.kind.name == "PTX":
            assert b".visible .func  (.param .b32 func_retval0) twice" in program.code
            assert b".visible .func  (.param .b32 func_retval0) helper" not in program.code
            assert b"unused" not in program.code

    def test_variables_stay_for_the_host_to_find(self):
        program = compiled(link_input(bitcode()), TARGETS[1], {"twice"})
        assert program.kind.name == "PTX"
        assert b".visible .global .align 4 .u32 calls = 7;" in program.code

    @pytest.mark.counted
    def test_compiled_once_on_a_machine(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path))
        origins, codes = [], set()
        for new_process in True, False, True:
            if new_process:
                reset_store()
            program = compiled(link_input(bitcode()), TARGETS[0])
            origins.append(program.origin)
            codes.add(program.code)
        reset_store()
        assert origins == ["built", "memory", "disk"]
        assert len(codes) == 1

    def test_other_architectures_and_functions_are_other_programs(self):
        item = link_input(bitcode())
        targets = [autolink.Target(cc, lto=True) for cc in ((8, 0), (12, 0))]
        wanted = [{"twice"}, {"cosine"}]
        codes = {compiled(item, target, names).code for target in targets for names in wanted}
        assert len(codes) == 4


class TestErrors:
    def test_damaged(self):
        code = bitcode()
        damaged = autolink.Bitcode(code[:200] + bytes(200) + code[400:], "damaged.bc")
        with pytest.raises(LinkError) as caught:
            build(kernel_of(twice(answer=damaged)))
        assert "at fault: LLVM bitcode 'damaged.bc' of Calls" in str(caught.value)
        assert "cannot be compiled for sm_90" in str(caught.value)
        assert "NVVM: " in caught.value.log
        assert "of llvmlite: LLVM bitcode parsing error" in caught.value.log

    def test_where_no_process_can_be_started_it_is_not_compiled(self, monkeypatch):
        answer = autolink.Bitcode(bitcode() + bytes(4), "new.bc")
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(LinkError, match="no child process can be started"):
            build(kernel_of(twice(answer=answer)))

    def test_a_missing_function(self):
        with pytest.raises(LinkError, match="'twyce' is called but nothing that is linked defines it") as caught:
            build(kernel_of(twice("twyce")))
        assert "defines 'twice'" in str(caught.value)

    def test_something_else_in_a_bc_file(self, tmp_path):
        path = tmp_path / "x.bc"
        path.write_bytes(b"\x7fELF" + bytes(100))
        with pytest.raises(Exception, match=r"x\.bc' is not LLVM bitcode: it looks like cubin"):
            build(kernel_of(twice(answer=path)))

    def test_text(self):
        with pytest.raises(TypeError, match=r"Bitcode takes the bytes of a \.bc file, got str"):
            autolink.Bitcode("define void @f()")


@pytest.mark.gpu
class TestOnTheGPU:
    @pytest.mark.parametrize("lto", [True, False])
    def test_our_own(self, lto):
        x = cuda.to_device(np.arange(100, dtype=np.int32))
        kernel_of(twice(), lto=lto)[1, 128](x)
        assert (x.copy_to_host() == 2 * np.arange(100)).all()

    @pytest.mark.parametrize("lto", [True, False])
    def test_libdevice(self, lto):
        angles = np.linspace(-3, 3, 100, dtype=np.float32)
        x = cuda.to_device(angles)
        kernel_of(sine(), lto=lto)[1, 128](x)
        assert np.abs(x.copy_to_host() - np.sin(angles)).max() < 2e-6
