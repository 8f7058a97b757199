# SPDX-License-Identifier: BSD-2-Clause
"""Modules in the emulator: several texts, variables and their initial values, calls, and the host's part."""

from __future__ import annotations

import gc
import struct

import numpy as np
import pytest
from emulator_support import HEAD, kernel_of, kernel_text, launch, registered, run

from numba_cuda_autolink import EmulationError, PTXSyntaxError, UnsupportedInstruction
from numba_cuda_autolink.emulator import Module, memory

PRINT = ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
ALLOCATE = ".extern .func (.param .b64 r) malloc(.param .b64 a);\n.extern .func free(.param .b64 a);\n"
ASSERT = ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"


def text_variable(name: str, text: str) -> str:
    data = ", ".join(str(c) for c in text.encode() + b"\0")
    return f".global .align 1 .b8 {name}[{len(text) + 1}] = {{{data}}};\n"


BEFORE_ASSERTION = ASSERT + text_variable("what", "x > 0") + text_variable("file", "a.cu")
ASSERTION = """mov.u64 %rd1, what; mov.u64 %rd2, file; { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d;
    .param .b64 e; st.param.b64 [a], %rd1; st.param.b64 [b], %rd2; st.param.b32 [c], 12; st.param.b64 [d], %rd1;
    st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); }"""


class TestTexts:
    caller = kernel_text(
        "ld.param.u64 %rd0, [p0]; { .param .b32 a; .param .b32 r; st.param.b32 [a], 20;"
        "call.uni (r), twice, (a); ld.param.b32 %r1, [r]; } st.global.u32 [%rd0], %r1;",
        "u64",
        before=".extern .func (.param .b32 r) twice(.param .b32 a);",
    )
    callee = (
        HEAD
        + """.func (.param .b32 r) add(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, 1;
        st.param.b32 [r], %x; ret; }
        .visible .func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; mul.lo.u32 %x, %x, 2;
        { .param .b32 b; .param .b32 s; st.param.b32 [b], %x; call (s), add, (b); ld.param.b32 %x, [s]; }
        st.param.b32 [r], %x; ret; }"""
    )

    def test_a_function_of_another_text(self):
        x = np.zeros(1, np.uint32)
        (kernel,) = Module([self.caller, self.callee]).kernels.values()
        launch(kernel, 1, 1, x)
        assert x[0] == 41

    def test_a_function_that_no_text_defines(self):
        with pytest.raises(UnsupportedInstruction, match="nothing that is linked defines the function twice"):
            Module([self.caller])

    def test_what_is_not_visible_belongs_to_its_text(self):
        own = ".func (.param .b32 r) add(.param .b32 a) { st.param.b32 [r], 7; ret; }"
        body = "ld.param.u64 %rd0, [p0]; { .param .b32 a; .param .b32 r; st.param.b32 [a], 1; call (r), add, (a);"
        text = kernel_text(body + "ld.param.b32 %r1, [r]; } st.global.u32 [%rd0], %r1;", "u64", before=own)
        x = np.zeros(1, np.uint32)
        (kernel,) = Module([self.callee, text]).kernels.values()
        launch(kernel, 1, 1, x)
        assert x[0] == 7

    def test_text_that_is_not_ptx(self):
        with pytest.raises(PTXSyntaxError, match="was not understood: int main"):
            Module([HEAD + "int main;"])


class TestVariables:
    def test_initial_values_and_addresses(self):
        before = """.visible .global .align 4 .u32 numbers[4] = {1, 0x10, 3};
            .visible .global .align 8 .u64 pointers[2] = {generic(numbers)+4, numbers};
            .const .align 8 .f64 constant = 0d4000000000000000;"""
        x = np.zeros(4, np.uint64)
        run(
            """ld.global.u64 %rd1, [pointers]; ld.u32 %r1, [%rd1];
            ld.global.u64 %rd2, [pointers+8]; ld.u32 %r2, [%rd2+8];
            ld.const.f64 %fd1, [constant]; cvt.u64.u32 %rd1, %r1; cvt.u64.u32 %rd2, %r2;
            st.global.u64 [%rd0], %rd1; st.global.u64 [%rd0+8], %rd2; st.global.f64 [%rd0+16], %fd1;""",
            1,
            x,
            before=before,
        )
        assert x.tolist() == [16, 3, struct.unpack("<Q", struct.pack("<d", 2.0))[0], 0]

    def test_the_host_sees_variables(self):
        before = ".visible .global .align 4 .u32 counter = 5;"
        module = Module([kernel_text("atom.global.add.u32 %r1, [counter], 3;", before=before)])
        module.kernels["k"].launch((2, 1, 1), (32, 1, 1), b"")
        variable = module.find_variable("counter")
        assert variable.nbytes == 4
        assert np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint32 * 1).from_address(variable.address))[0] == 5 + 3 * 64

    def test_a_module_that_nobody_has_gives_its_memory_back_at_the_next_launch(self):
        """Not before: garbage is collected in the middle of other changes of the table."""
        before = ".visible .global .align 4 .u32 counter = 5;"
        module = Module([kernel_text("atom.global.add.u32 %r1, [counter], 3;", before=before)])
        address = module.find_variable("counter").address
        del module
        gc.collect()
        assert not memory.find(address).freed
        run("", 1, np.zeros(1))
        assert memory.find(address).freed

    def test_the_end_of_a_variable(self):
        with pytest.raises(EmulationError, match="out of bounds") as raised:
            run("mov.u64 %rd1, v; st.global.u32 [%rd1+16], 1;", 1, np.zeros(1), before=".visible .global .b8 v[16];")
        assert "0 bytes after the end of v" in str(raised.value)


class TestControl:
    def test_a_branch_by_index(self):
        x = np.zeros(4, np.uint32)
        run(
            """mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;
            targets: .branchtargets A, B, C;
            brx.idx %r0, targets;
            A: st.global.u32 [%rd1], 10; ret; B: st.global.u32 [%rd1], 11; ret; C: st.global.u32 [%rd1], 12;""",
            3,
            x,
        )
        assert x.tolist() == [10, 11, 12, 0]

    @pytest.mark.parametrize("call", ["", "{ .param .b32 a; st.param.b32 [a], 2; call down, (a); }"])
    def test_calls_through_a_table_of_pointers(self, call):
        """Also next to a function that calls itself."""
        functions = "".join(
            f".func (.param .b32 r) f{k}(.param .b32 a) {{ .reg .b32 %x; ld.param.b32 %x, [a]; {op}.s32 %x, %x, 100;"
            " st.param.b32 [r], %x; ret; }"
            for k, op in enumerate(("add", "sub", "max"))
        )
        functions += (
            ".func down(.param .b32 a) { .reg .b32 %x; .reg .pred %p; ld.param.b32 %x, [a]; setp.eq.u32 %p, %x, 0;"
            " @%p ret; sub.u32 %x, %x, 1; { .param .b32 b; st.param.b32 [b], %x; call down, (b); } ret; }"
        )
        x = np.arange(3, dtype=np.int32)
        run(
            call
            + """mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd2, %rd0, %rd1; ld.global.u32 %r1, [%rd2];
            mul.wide.u32 %rd3, %r0, 8; mov.u64 %rd4, table; add.u64 %rd4, %rd4, %rd3; ld.global.u64 %rd5, [%rd4];
            { .param .b32 a; .param .b32 r; st.param.b32 [a], %r1;
            proto: .callprototype (.param .b32 _) _ (.param .b32 _);
            call (r), %rd5, (a), proto; ld.param.b32 %r1, [r]; } st.global.u32 [%rd2], %r1;""",
            3,
            x,
            before=functions + ".global .align 8 .u64 table[3] = {f0, f1, f2};",
        )
        assert x.tolist() == [100, -99, 100]

    def test_exit_in_a_function(self):
        x = np.zeros(64, np.uint32)
        run(
            """mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;
            { .param .b32 a; st.param.b32 [a], %r0; call leave, (a); } st.global.u32 [%rd1], 1;""",
            64,
            x,
            before=".func leave(.param .b32 a) { .reg .b32 %x; .reg .pred %p; ld.param.b32 %x, [a];"
            " setp.lt.u32 %p, %x, 9; @%p exit; ret; }",
        )
        assert np.array_equal(x, np.arange(64) >= 9)

    def test_labels_and_registers_of_inner_braces(self):
        x = np.zeros(2, np.uint32)
        block = "{ .reg .pred q; .reg .b32 t; mov.u32 t, %s; setp.eq.u32 q, t, 1; @q bra DONE;"
        block += "st.global.u32 [%%rd0+%s], 5; DONE: }"
        run(block % (1, 0) + block % (2, 4), 1, x)
        assert x.tolist() == [0, 5]


class TestHost:
    def test_printing(self, capsys):
        before = PRINT + text_variable("format", "%s %5.2f %d|%lld|%c|%x%%\n") + text_variable("name", "pi")
        run(
            """.local .align 8 .b8 a[48]; mov.u64 %rd1, a; cvta.local.u64 %rd2, %rd1;
            mov.u64 %rd3, name; st.local.u64 [%rd1], %rd3;
            mov.f64 %fd1, 0d400921FB54442D18; st.local.f64 [%rd1+8], %fd1;
            mov.u32 %r0, %tid.x; neg.s32 %r0, %r0; st.local.u32 [%rd1+16], %r0; st.local.u64 [%rd1+24], -7;
            st.local.u32 [%rd1+32], 65; st.local.u32 [%rd1+36], 255; mov.u64 %rd4, format;
            { .param .b64 f; .param .b64 g; .param .b32 r; st.param.b64 [f], %rd4; st.param.b64 [g], %rd2;
            call.uni (r), vprintf, (f, g); }""",
            2,
            np.zeros(1),
            before=before,
        )
        assert capsys.readouterr().out == "pi  3.14 0|-7|A|ff%\npi  3.14 -1|-7|A|ff%\n"

    def test_allocating_and_freeing(self):
        body = """{ .param .b64 n; .param .b64 r; st.param.b64 [n], 16; call (r), malloc, (n); ld.param.b64 %rd1, [r]; }
            st.global.u64 [%rd1+8], 5; ld.global.u64 %rd2, [%rd1+8]; st.global.u64 [%rd0], %rd2;
            { .param .b64 q; st.param.b64 [q], %rd1; call free, (q); }"""
        x = np.zeros(1, np.uint64)
        run(body, 8, x, before=ALLOCATE)
        assert x[0] == 5
        with pytest.raises(EmulationError, match="after the memory was freed"):
            run(body + "st.global.u64 [%rd1+8], 5;", 1, x, before=ALLOCATE)
        with pytest.raises(EmulationError, match="0 bytes after the end of malloc in a kernel"):
            run(body.replace("st.global.u64 [%rd1+8], 5;", "st.global.u64 [%rd1+16], 5;"), 1, x, before=ALLOCATE)

    def test_an_assertion(self):
        message = (
            r"^Assertion `x > 0` failed\n  at: a\.cu:12\n  function: x > 0"
            r"\n  thread: \(0, 0, 0\) of block \(0, 0, 0\) of kernel k"
            r"\n  what to do: pass values for which the condition is true, or correct it$"
        )
        with pytest.raises(EmulationError, match=message) as raised:
            run(ASSERTION, 1, np.zeros(1), before=BEFORE_ASSERTION)
        assert (raised.value.block, raised.value.lines) == ((0, 0, 0), ("a.cu:12",))

    def test_an_assertion_in_a_function_names_its_caller(self):
        function = f".func f() {{ .reg .b64 %rd<3>;\n.loc 1 12 5\n{ASSERTION} ret; }}"
        text = kernel_text(".loc 1 30 3\ncall f;", before=BEFORE_ASSERTION + function) + '\n.file 1 "a.cu"\n'
        with pytest.raises(EmulationError, match=r"Assertion `x > 0` failed\n  at: a\.cu:12\n") as raised:
            launch(kernel_of(text), 2, 1)
        assert "  called at: a.cu:30" in str(raised.value).splitlines()
        assert raised.value.lines == ("a.cu:12", "a.cu:30")


def test_a_cluster_of_several_blocks_is_refused():
    with pytest.raises(EmulationError, match=r"clusters of \(2, 1, 1\) blocks"):
        kernel_of(kernel_text("", directives=".reqnctapercluster 2, 1, 1")).launch((2, 1, 1), (1, 1, 1), b"")


def test_mbarriers_let_threads_wait_for_arrivals():
    x = np.zeros(64, np.uint32)
    run(
        """mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; setp.ne.u32 %p1, %r0, 0;
        mov.u32 %r1, words; @%p1 bra L; mbarrier.init.shared.b64 [%r1], 64; st.shared.u32 [%r1+8], 0; L: bar.sync 0;
        atom.shared.add.u32 %r2, [%r1+8], 1;
        mbarrier.arrive.shared::cta.b64 %rd5, [%r1];
        W: mbarrier.try_wait.shared::cta.b64 %p2, [%r1], %rd5; @!%p2 bra W;
        ld.shared.u32 %r3, [%r1+8]; st.global.u32 [%rd1], %r3;""",
        64,
        x,
        before=".shared .align 8 .b8 words[16];",
    )
    assert (x == 64).all()


def test_asynchronous_copies():
    source, target = np.arange(8, dtype=np.uint32), np.zeros(8, np.uint32)
    run(
        """mov.u32 %r1, s; cp.async.ca.shared.global [%r1], [%rd0], 16;
        cp.async.cg.shared.global [%r1+16], [%rd0+16], 16, 4;
        cp.async.commit_group; cp.async.wait_group 0;
        ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1]; st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};
        ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1+16]; st.global.v4.u32 [%rd1+16], {%r2, %r3, %r4, %r5};""",
        1,
        source,
        target,
        before=".shared .align 16 .b8 s[32];",
    )
    assert target.tolist() == [0, 1, 2, 3, 4, 0, 0, 0]


def test_memory_that_is_registered_twice():
    x = np.zeros(8, np.uint8)
    with registered(x[:4]):
        memory.register(x.ctypes.data, 8, "longer")
        assert memory.find(x.ctypes.data + 7).nbytes == 8
        memory.unregister(x.ctypes.data)
        memory.register(x.ctypes.data, 4, "")
