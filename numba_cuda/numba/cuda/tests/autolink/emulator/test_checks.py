# SPDX-License-Identifier: BSD-2-Clause
"""What the emulator refuses in kernels: each check finds its fault, names the place, and lets right kernels pass."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support import HEAD, kernel_of, kernel_text, launch, registered, run

from numba_cuda_autolink import AddressSpaceError, EmulationError, UnsupportedInstruction
from numba_cuda_autolink.emulator import Checks, Module, memory
from numba_cuda_autolink.emulator.state import Error
from numba_cuda_autolink.fault_remedies import with_fault_remedy
from numba_cuda_autolink.mangled_names import short_name

# %r0: the thread's index; %rd9: the address of its element of the first array, of 4 bytes
ELEMENT = "mov.u32 %r0, %tid.x; mul.wide.u32 %rd8, %r0, 4; add.s64 %rd9, %rd0, %rd8;\n"
SHARED = ".shared .align 4 .b8 s[256];"
SHARED_ADDRESS = "mov.u64 %rd10, s; add.s64 %rd11, %rd10, %rd8;\n"


def words(count: int = 64) -> np.ndarray:
    return np.arange(count, dtype=np.uint32)


class TestBounds:
    def test_a_write_past_the_end_names_thread_and_array(self):
        with pytest.raises(EmulationError, match=r"^A write of 4 bytes out of bounds\n") as raised:
            run(ELEMENT + "st.global.u32 [%rd9+16], 1;", 64, words())
        assert raised.value.thread == (60, 0, 0)
        assert raised.value.kernel == "k"
        assert "0 bytes after the end of an array at" in str(raised.value)

    def test_a_read_before_the_beginning(self):
        with pytest.raises(EmulationError, match="A read of 4 bytes out of bounds") as raised:
            run(ELEMENT + "ld.global.u32 %r1, [%rd9+-4];", 64, words())
        assert raised.value.thread == (0, 0, 0)
        assert "4 bytes before an array at" in str(raised.value)

    def test_nothing_is_written_out_of_bounds(self):
        x = np.zeros(65, np.uint32)
        with registered(x[:64]), pytest.raises(EmulationError):
            text = kernel_text("ld.param.u64 %rd0, [p0];" + ELEMENT + "st.global.u32 [%rd9+4], 9;", "u64")
            kernel_of(text).launch((1, 1, 1), (64, 1, 1), x.ctypes.data.to_bytes(8, "little"))
        assert x[64] == 0

    @pytest.mark.parametrize("offset", [1, 2, 3, 4])
    def test_a_vector_that_ends_outside(self, offset):
        x = words(6)
        body = f"ld.global.v2.u32 {{%r1, %r2}}, [%rd0+{8 * offset}];"
        if offset < 3:
            run(body, 1, x)
        else:
            with pytest.raises(EmulationError, match="8 bytes out of bounds"):
                run(body, 1, x)

    def test_shared_memory(self):
        body = ELEMENT + SHARED_ADDRESS + "st.shared.u32 [%rd11+4], %r0;"
        with pytest.raises(EmulationError, match="out of bounds") as raised:
            run(body, 64, words(), before=SHARED)
        assert raised.value.thread == (63, 0, 0)
        assert "byte 256 of 256 bytes of shared memory; byte 256 of 256 of s\n" in str(raised.value)

    def test_shared_memory_at_an_address_of_an_array(self):
        body = "cvta.to.shared.u64 %rd10, %rd0; st.shared.u32 [%rd10], 1;"
        with pytest.raises(
            AddressSpaceError, match="A write of 4 bytes of shared memory at an address of other memory"
        ):
            run(body, 1, words(), before=SHARED)

    def test_dynamic_shared_memory_ends_at_its_last_byte(self):
        before = ".shared .align 4 .b8 b[4]; .extern .shared .align 16 .b8 d[];"
        body = "mov.u64 %rd9, b; mov.u64 %rd10, d; ld.shared.v2.u32 {%r1, %r2}, [%rd10+16]; st.global.u32 [%rd0], 7;"
        x = words()
        run(body, 1, x, before=before, shared=24)
        assert x[0] == 7
        with pytest.raises(EmulationError, match="A read of 8 bytes out of bounds") as raised:
            run(body, 1, x, before=before, shared=23)
        assert "dynamic shared memory: the launch gives 23 bytes\n" in str(raised.value)

    @pytest.mark.parametrize("nbytes", [1, 4, 16])
    def test_dynamic_shared_memory_that_a_launch_forgets(self, nbytes):
        before = ".extern .shared .align 16 .b8 d[];"
        registers = {1: "u8 [%rd10], 1", 4: "u32 [%rd10], %r1", 16: "v4.u32 [%rd10], {%r1, %r2, %r3, %r4}"}
        body = f"mov.u64 %rd10, d; st.shared.{registers[nbytes]};"
        with pytest.raises(EmulationError, match=f"A write of {nbytes} bytes? out of bounds") as raised:
            run(body, 1, words(), before=before)
        assert "dynamic shared memory: the launch gives 0 bytes\n" in str(raised.value)
        assert "[grid, block, stream, nbytes](...)" in str(raised.value)
        run(body, 1, words(), before=before, shared=nbytes)

    def test_dynamic_shared_memory_of_mlir_has_no_bytes_of_its_own(self):
        body, before = (
            "mov.u64 %rd10, __dynamic_shmem__0; ld.shared.u8 %r1, [%rd10];",
            ".shared .b8 __dynamic_shmem__0;",
        )
        run(body, 1, words(), before=before, shared=1)
        with pytest.raises(EmulationError, match="dynamic shared memory: the launch gives 0 bytes"):
            run(body, 1, words(), before=before)

    def test_static_shared_memory_ends_at_its_last_byte(self):
        body = "mov.u64 %rd10, b; st.shared.u8 [%rd10+4], 1;"
        with pytest.raises(EmulationError, match="A write of 1 byte out of bounds") as raised:
            run(body, 1, words(), before=".shared .align 4 .b8 b[4];")
        assert "launch gives" not in str(raised.value)

    @pytest.mark.parametrize("is_of_mlir", [False, True])
    def test_the_index_in_an_array_of_numba(self, is_of_mlir):
        x = np.zeros((4, 8), np.float64)
        words = [0, 0, x.size, 8, x.ctypes.data, *x.shape, *x.strides]
        if is_of_mlir:
            words = [7, 8, 9, x.ctypes.data, x.ctypes.data, 0, *x.shape, 8, 1]
        text = kernel_text("ld.param.u64 %rd0, [p4]; st.global.u64 [%rd0+272], %rd0;", *["u64"] * len(words))
        with registered(x), pytest.raises(EmulationError, match=r"index \(4, 2\) of the shape \(4, 8\)"):
            kernel_of(text).launch((1, 1, 1), (1, 1, 1), np.array(words, np.uint64).tobytes())

    @pytest.mark.parametrize("generic", [False, True])
    def test_local_memory(self, generic):
        space = "" if generic else ".local"
        address = "mov.u64 %rd10, a; cvta.local.u64 %rd10, %rd10;" if generic else "mov.u64 %rd10, a;"
        body = (
            ELEMENT + ".local .align 4 .b8 a[64];" + address + f"add.s64 %rd11, %rd10, %rd8; st{space}.u32 [%rd11], 5;"
        )
        run(body, 16, words())
        with pytest.raises(EmulationError, match="A write of 4 bytes out of bounds") as raised:
            run(body, 17, words())
        assert raised.value.thread == (16, 0, 0)
        assert ("byte 64 of 64 bytes of local memory" if generic else "local memory") in str(raised.value)

    def test_the_parameters_may_be_read(self):
        x = words()
        run("mov.b64 %rd2, p0; ld.u64 %rd3, [%rd2]; st.u64 [%rd0], %rd3;", 1, x)
        assert x[:2].view(np.uint64)[0] == x.ctypes.data

    def test_freed_memory(self):
        address = memory.allocate(64, label="scratch")
        memory.free(address)
        text = kernel_text("ld.param.u64 %rd0, [p0]; st.global.u32 [%rd0+8], 1;", "u64")
        with pytest.raises(EmulationError, match="after the memory was freed") as raised:
            kernel_of(text).launch((1, 1, 1), (1, 1, 1), address.to_bytes(8, "little"))
        assert raised.value.address == address + 8
        assert "scratch" in str(raised.value)

    @pytest.mark.parametrize(("offset", "diagnosis"), [(64, "out of bounds"), (2048, "after the memory was freed")])
    def test_freed_memory_that_another_array_uses(self, offset, diagnosis):
        x = np.zeros(4096, np.uint8)
        memory.register(x.ctypes.data, x.nbytes, "all of it")
        memory.unregister(x.ctypes.data)
        kernel = kernel_of(kernel_text(f"ld.param.u64 %rd0, [p0]; st.global.u32 [%rd0+{offset}], 1;", "u64"))
        memory.register(x.ctypes.data, 64, "a part")
        try:
            with pytest.raises(EmulationError, match=diagnosis) as raised:
                kernel.launch((1, 1, 1), (1, 1, 1), x.ctypes.data.to_bytes(8, "little"))
        finally:
            memory.unregister(x.ctypes.data)
        assert ("0 bytes after the end of a part" if offset == 64 else "byte 2048 of all of it") in str(raised.value)

    def test_memory_that_was_freed_between_launches_is_not_remembered(self):
        kernel = kernel_of(kernel_text("ld.param.u64 %rd0, [p0]; st.global.u32 [%rd0], 1;", "u64"))
        address = memory.allocate(64)
        kernel.launch((1, 1, 1), (1, 1, 1), address.to_bytes(8, "little"))
        memory.free(address)
        with pytest.raises(EmulationError, match="freed"):
            kernel.launch((1, 1, 1), (1, 1, 1), address.to_bytes(8, "little"))

    def test_freeing_twice(self):
        address = memory.allocate(64)
        memory.free(address)
        with pytest.raises(ValueError, match="is freed already"):
            memory.free(address)

    def test_without_the_check_neighbours_can_be_written(self):
        x = np.zeros(65, np.uint32)
        with registered(x[:64]):
            text = kernel_text("ld.param.u64 %rd0, [p0]; st.global.u32 [%rd0+256], 9;", "u64")
            kernel = kernel_of(text, checks=Checks(bounds=False))
            kernel.launch((1, 1, 1), (1, 1, 1), x.ctypes.data.to_bytes(8, "little"))
        assert x[64] == 9


class TestAlignment:
    @pytest.mark.parametrize("checks", [Checks(), Checks(bounds=False)])
    @pytest.mark.parametrize("space", [".global", "", ".shared"])
    def test_a_misaligned_read(self, space, checks):
        address = "%rd10" if space == ".shared" else "%rd0"
        body = f"mov.u64 %rd10, s; add.u64 {address}, {address}, 2; ld{space}.u32 %r1, [{address}];"
        with pytest.raises(EmulationError, match="A misaligned read of 4 bytes"):
            run(body, 1, words(), before=SHARED, checks=checks)

    def test_it_can_be_switched_off(self):
        x = np.arange(16, dtype=np.uint8)
        run("ld.global.u32 %r1, [%rd0+1]; st.global.u32 [%rd0], %r1;", 1, x, checks=Checks(alignment=False))
        assert x[:4].tolist() == [1, 2, 3, 4]


class TestInitialised:
    checks = Checks(initialised=True)

    def test_unwritten_shared_memory(self):
        body = ELEMENT + SHARED_ADDRESS + """
            setp.gt.u32 %p1, %r0, 31; @%p1 bra L; st.shared.u32 [%rd11], %r0; L: bar.sync 0;
            ld.shared.u32 %r1, [%rd11];"""  # fmt: skip
        run(body, 32, words(), before=SHARED, checks=self.checks)
        run(body, 64, words(), before=SHARED)
        with pytest.raises(EmulationError, match="A read of 4 bytes that were never written") as raised:
            run(body, 64, words(), before=SHARED, checks=self.checks)
        assert raised.value.thread[0] >= 32

    def test_each_block_begins_with_unwritten_memory(self):
        body = ELEMENT + SHARED_ADDRESS + """mov.u32 %r2, %ctaid.x; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;
            st.shared.u32 [%rd11], %r0; L: ld.shared.u32 %r1, [%rd11];"""  # fmt: skip
        with pytest.raises(EmulationError, match="never written") as raised:
            run(body, 32, words(), grid=2, before=SHARED, checks=self.checks)
        assert raised.value.block == (1, 0, 0)

    @pytest.mark.parametrize("address", ["", "cvta.local.u64 %rd10, %rd10;"])
    def test_unwritten_local_memory(self, address):
        space = "" if address else ".local"
        body = f".local .align 4 .b8 a[64]; mov.u64 %rd10, a; {address} st{space}.u32 [%rd10+8], 1;"
        run(body + f"ld{space}.u32 %r1, [%rd10+8];", 1, words(), checks=self.checks)
        with pytest.raises(EmulationError, match="never written") as raised:
            run(body + f"ld{space}.u32 %r1, [%rd10+12];", 1, words(), checks=self.checks)
        assert "byte 12 of 64 bytes of local memory" in str(raised.value)

    @pytest.mark.parametrize("store", ["volatile", "release.cta"])
    def test_a_store_that_is_ordered_reads_nothing(self, store):
        shared = f"mov.u64 %rd10, s; st.{store}.shared.u32 [%rd10], 1; ld.shared.u32 %r1, [%rd10];"
        run(shared, 1, words(), before=SHARED, checks=self.checks)
        local = ".local .align 4 .b8 a[64]; mov.u64 %rd10, a; cvta.local.u64 %rd10, %rd10;"
        run(f"{local} st.{store}.u32 [%rd10], 1; ld.u32 %r1, [%rd10];", 1, words(), checks=self.checks)

    copied = """.local .align 8 .b8 a[16]; .local .align 8 .b8 b[16]; mov.u64 %rd10, a; mov.u64 %rd11, b;
        st.local.u32 [%rd10], 7; ld.local.v2.u32 {%r1, %r2}, [%rd10]; st.local.v2.u32 [%rd11], {%r1, %r2};"""

    def test_copies_may_be_unwritten_until_they_are_used(self):
        run(self.copied + "ld.local.u32 %r3, [%rd11]; st.global.u32 [%rd0], %r3;", 1, words(), checks=self.checks)
        with pytest.raises(EmulationError, match="A read of 4 bytes that were never written") as raised:
            run(self.copied + "ld.local.u32 %r3, [%rd11+4]; add.u32 %r3, %r3, 1;", 1, words(), checks=self.checks)
        assert "byte 4 of 16 bytes of local memory" in str(raised.value)

    def test_copies_to_where_others_see_them_are_uses(self):
        x = words()
        with pytest.raises(EmulationError, match="A read of 4 bytes that were never written"):
            run(self.copied + "ld.local.u32 %r3, [%rd11+4]; st.global.u32 [%rd0], %r3;", 1, x, checks=self.checks)
        assert x[0] == 0

    def test_what_is_loaded_and_not_used(self):
        body = self.copied + "ld.local.v2.u32 {%r3, %r4}, [%rd11]; add.u32 %r3, %r3, {};"
        run(body.replace("{}", "1"), 1, words(), checks=self.checks)
        with pytest.raises(EmulationError, match="never written"):
            run(body.replace("{}", "%r4"), 1, words(), checks=self.checks)

    @pytest.mark.parametrize("access", ["ld.shared.u32 %r1, [%rd10];", "atom.shared.add.u32 %r1, [%rd10], 1;"])
    def test_between_the_variables_of_shared_memory(self, access):
        before = ".shared .align 4 .b8 s[32]; .shared .align 4 .b8 t[32];"
        body = "st.shared.u32 [s], 1; st.shared.u32 [s+28], 1; st.shared.u32 [t], 1; mov.u64 %rd10, s; {} " + access
        run(body.format("add.s64 %rd10, %rd10, 28;"), 1, words(), before=before, checks=self.checks)
        with pytest.raises(EmulationError, match="of 4 bytes between the variables of shared memory") as raised:
            run(body.format("add.s64 %rd10, %rd10, 32;"), 1, words(), before=before, checks=self.checks)
        assert "byte 32 of 32 of s\n" in str(raised.value)

    @pytest.mark.parametrize("wait", ["", "bar.sync 0;"])
    def test_with_races_a_read_is_unwritten_if_no_thread_writes(self, wait):
        read = "ld.shared.u32 %r1, [s+128];" + wait
        with pytest.raises(EmulationError, match="never written") as raised:
            run(read, 40, words(), before=SHARED, checks=Checks.all())
        assert "byte 128 of 256 bytes" in str(raised.value)
        with pytest.raises(EmulationError, match="A race"):
            body = ELEMENT + SHARED_ADDRESS + "st.shared.u32 [%rd11], 1; ld.shared.u32 %r1, [s+128];" + wait
            run(body, 40, words(), before=SHARED, checks=Checks.all())


class TestRaces:
    checks = Checks(races=True)
    other = "sub.u32 %r2, 63, %r0; mul.wide.u32 %rd12, %r2, 4; add.s64 %rd13, %rd10, %rd12;"

    def run(self, between: str, checks: Checks) -> None:
        body = ELEMENT + SHARED_ADDRESS + self.other
        body += f"st.shared.u32 [%rd11], %r0; {between} ld.shared.u32 %r1, [%rd13]; st.global.u32 [%rd9], %r1;"
        run(body, 64, words(), before=SHARED, checks=checks)

    def test_a_missing_barrier(self):
        self.run("", Checks())
        with pytest.raises(EmulationError, match=r"A race: this \w+ of 4 bytes and thread \(\d+, 0, 0\)"):
            self.run("", self.checks)

    def test_a_barrier(self):
        self.run("bar.sync 0;", self.checks)

    def test_a_barrier_of_the_warp_is_enough_within_it(self):
        body = ELEMENT + SHARED_ADDRESS
        body += """xor.b32 %r2, %r0, 1; mul.wide.u32 %rd12, %r2, 4; add.s64 %rd13, %rd10, %rd12;
            st.shared.u32 [%rd11], %r0; {} ld.shared.u32 %r1, [%rd13];"""  # fmt: skip
        run(body.format("bar.warp.sync -1;"), 64, words(), before=SHARED, checks=self.checks)
        with pytest.raises(EmulationError, match="A race"):
            run(body.format(""), 64, words(), before=SHARED, checks=self.checks)

    def test_a_write_after_another_thread_and_the_writer_read(self):
        body = ELEMENT + SHARED_ADDRESS + """st.shared.u32 [%rd11], 0; bar.sync 0; setp.gt.u32 %p1, %r0, 1; @%p1 ret;
            ld.shared.u32 %r1, [s+4]; st.shared.u32 [%rd11], 1;"""  # fmt: skip
        with pytest.raises(EmulationError, match=r"this write of 4 bytes and thread \(0, 0, 0\)") as raised:
            run(body, 64, words(), before=SHARED, checks=self.checks)
        assert raised.value.thread == (1, 0, 0)
        assert "the other: ld.shared.u32 %r1, [s+4]" in str(raised.value)

    def test_a_thread_may_read_what_it_alone_changed(self):
        run(
            ELEMENT + SHARED_ADDRESS + "atom.shared.add.u32 %r1, [%rd11], 1; ld.shared.u32 %r2, [%rd11];",
            64,
            words(),
            before=SHARED,
            checks=self.checks,
        )

    @pytest.mark.parametrize("threads", [32, 64])
    def test_a_warp_may_read_after_its_barrier_what_its_lanes_added(self, threads):
        body = "atom.shared.add.u32 %r1, [s], 1; bar.warp.sync -1; ld.shared.u32 %r2, [s];"
        if threads == 32:
            run(body, threads, words(), before=SHARED, checks=self.checks)
        else:
            with pytest.raises(EmulationError, match="A race"):
                run(body, threads, words(), before=SHARED, checks=self.checks)

    def test_two_writes(self):
        with pytest.raises(EmulationError, match="A race"):
            run(ELEMENT + "st.shared.u32 [s], %r0;", 64, words(), before=SHARED, checks=self.checks)

    def test_atomic_operations_do_not_race_with_each_other(self):
        run("atom.shared.add.u32 %r1, [s], 1;", 64, words(), before=SHARED, checks=self.checks)
        with pytest.raises(EmulationError, match="A race"):
            run(
                "atom.shared.add.u32 %r1, [s], 1; ld.shared.u32 %r2, [s];",
                64,
                words(),
                before=SHARED,
                checks=self.checks,
            )

    @pytest.mark.parametrize(("between", "other"), [("", 1), ("bar.warp.sync -1;", 63), ("bar.sync 0;", None)])
    def test_an_initial_value_that_atomic_operations_do_not_wait_for(self, between, other):
        body = f"""mov.u32 %r0, %tid.x; setp.ne.u32 %p1, %r0, 0; @%p1 bra L; st.shared.u32 [s], 0; L: {between}
            atom.shared.add.u32 %r1, [s], 1;"""
        if other is None:
            run(body, 64, words(), before=SHARED, checks=self.checks)
            return
        with pytest.raises(EmulationError, match=r"this atomic access of 4 bytes and thread \(0, 0, 0\)") as raised:
            run(body, 64, words(), before=SHARED, checks=self.checks)
        assert raised.value.thread == (other, 0, 0)

    def test_all_may_read_what_a_thread_wrote_before_the_barrier(self):
        body = (
            ELEMENT
            + "setp.ne.u32 %p1, %r0, 3; @%p1 bra L; st.shared.u32 [s], 1; L: bar.sync 0; ld.shared.u32 %r1, [s];"
        )
        run(body, 64, words(), before=SHARED, checks=Checks.all())

    @pytest.mark.parametrize("poll", ["ld.volatile.shared", "ld.relaxed.cta.shared"])
    def test_volatile_and_atomic_reads_do_not_race_with_atomic_writes(self, poll):
        body = f"""atom.shared.add.u32 %r1, [s], 1; {poll}.u32 %r2, [s];"""
        run(body, 64, words(), before=SHARED, checks=self.checks)
        with pytest.raises(EmulationError, match="A race"):
            run(f"{poll}.u32 %r2, [s]; st.shared.u32 [s], 1;", 64, words(), before=SHARED, checks=self.checks)

    @pytest.mark.parametrize("move", ["mov.b32 %r3, %r2;", "mov.b32 %f1, %r2; mov.b32 %r3, %f1;"])
    def test_a_read_does_not_race_if_compare_and_swap_finds_out_that_it_is_out_of_date(self, move):
        body = f"""ld.shared.u32 %r2, [s]; L: {move} add.u32 %r4, %r3, 1; atom.shared.cas.b32 %r2, [s], %r3, %r4;
            setp.ne.u32 %p1, %r2, %r3; @%p1 bra L;"""
        run(body, 64, words(), before=SHARED, checks=self.checks)
        with pytest.raises(EmulationError, match="this read of 4 bytes and thread"):
            run(
                body.replace("cas.b32 %r2, [s], %r3,", "add.u32 %r3, [s],"),
                64,
                words(),
                before=SHARED,
                checks=self.checks,
            )
        with pytest.raises(EmulationError, match="this read of 4 bytes and thread"):
            run(body + "st.shared.u32 [s], 1;", 64, words(), before=SHARED, checks=self.checks)

    # A thread of the first warp writes s[1] and then sets the flag s; one of the second waits for the flag, and reads.
    fences = "membar.cta;", "st.volatile.shared.u32 [s], 1;", "ld.volatile.shared.u32 %r1, [s];", "membar.cta;"
    orders = "", "st.release.cta.shared.u32 [s], 1;", "ld.acquire.cta.shared.u32 %r1, [s];", ""
    atomics = "", "atom.release.cta.shared.add.u32 %r1, [s], 1;", "atom.acquire.cta.shared.or.b32 %r1, [s], 0;", ""

    @pytest.mark.parametrize("way", [fences, orders, atomics])
    def test_a_flag_orders_what_is_between_fences(self, way):
        release, signal, poll, acquire = way
        body = """mov.u32 %r0, %tid.x; setp.ne.u32 %p1, %r0, 0; @%p1 bra M; st.shared.u32 [s], 0; M: bar.sync 0;
            and.b32 %r3, %r0, 31; setp.ne.u32 %p1, %r3, 0; @%p1 ret; setp.ne.u32 %p1, %r0, 0; @%p1 bra L;
            st.shared.u32 [s+4], 7; {} {} ret;
            L: {} setp.eq.u32 %p1, %r1, 0; @%p1 bra L; {} ld.shared.u32 %r2, [s+4];"""
        run(body.format(release, signal, poll, acquire), 64, words(), before=SHARED, checks=self.checks)
        relaxed = (each.replace(".release", ".relaxed").replace(".acquire", ".relaxed") for each in (signal, poll))
        with pytest.raises(EmulationError, match=r"this read of 4 bytes and thread \(0, 0, 0\)"):
            run(body.format("", *relaxed, ""), 64, words(), before=SHARED, checks=self.checks)

    def test_a_fence_alone_orders_nothing(self):
        with pytest.raises(EmulationError, match="A race"):
            self.run("membar.cta;", self.checks)

    def test_writing_after_others_read(self):
        body = ELEMENT + """setp.ne.u32 %p1, %r0, 3; @%p1 bra L; st.shared.u32 [s], 1; L: bar.sync 0;
            ld.shared.u32 %r1, [s]; @%p1 bra M; st.shared.u32 [s], 2; M:"""  # fmt: skip
        with pytest.raises(EmulationError, match="A race"):
            run(body, 64, words(), before=SHARED, checks=self.checks)


class TestLaunches:
    def test_more_threads_than_the_kernel_is_compiled_for(self):
        kernel = kernel_of(kernel_text("", directives=".maxntid 64, 1, 1"))
        assert kernel.max_threads == 64
        kernel.launch((1, 1, 1), (64, 1, 1), b"")
        with pytest.raises(EmulationError, match=r"compiled for blocks of at most \(64, 1, 1\) threads"):
            kernel.launch((1, 1, 1), (65, 1, 1), b"")

    def test_another_size_than_required(self):
        kernel = kernel_of(kernel_text("", directives=".reqntid 8, 8"))
        kernel.launch((1, 1, 1), (8, 8, 1), b"")
        with pytest.raises(EmulationError, match=r"blocks of exactly \(8, 8, 1\) threads"):
            kernel.launch((1, 1, 1), (64, 1, 1), b"")

    def test_more_static_shared_memory_than_a_gpu_gives(self):
        text = kernel_text("mov.u64 %rd0, s;", before=".shared .align 4 .b8 s[48];")
        kernel_of(text.replace("s[48]", "s[49152]")).launch((1, 1, 1), (1, 1, 1), b"")
        with pytest.raises(EmulationError, match="needs 49153 bytes of static shared memory, and has at most 49152"):
            kernel_of(text.replace("s[48]", "s[49153]"))

    @pytest.mark.parametrize(
        ("grid", "block"),
        [
            ((1, 0, 1), (1, 1, 1)),
            ((1, 65536, 1), (1, 1, 1)),
            ((1, 1, 65536), (1, 1, 1)),
            ((1, 1, 1), (0, 1, 1)),
            ((1, 1, 1), (1, 1, 65)),
            ((1, 1, 1), (1024, 2, 1)),
        ],
    )
    def test_sizes_that_gpus_do_not_have(self, grid, block):
        kernel = kernel_of(kernel_text(""))
        kernel.launch((1, 1, 65535), (1, 16, 64), b"")
        with pytest.raises(EmulationError) as raised:
            kernel.launch(grid, block, b"")
        head = f"k cannot be launched with {grid} blocks of {block} threads\n  what to do: "
        assert str(raised.value).startswith(head)

    def test_parameters_of_another_size(self):
        with pytest.raises(EmulationError, match="takes 12 bytes of parameters; 16 were passed"):
            kernel_of(kernel_text("", "u64", "u32")).launch((1, 1, 1), (1, 1, 1), bytes(16))

    def test_threads_that_returned_before_a_barrier(self):
        body = ELEMENT + "setp.gt.u32 %p1, %r0, 40; @%p1 ret; bar.sync 0;"
        run(body, 64, words())
        with pytest.raises(EmulationError, match="they have returned"):
            run(body, 64, words(), checks=Checks.all())


class TestPlaces:
    def test_lines_of_inlined_code(self):
        body = """.loc 1 10 3
            ld.param.u64 %rd0, [p0];
            .loc 2 7 5, function_name $L__info_string0, inlined_at 1 10 3
            st.global.u32 [%rd0+400], 1;"""
        text = kernel_text(body, "u64") + '\n.file 1 "/a/kernel.py"\n.file 2 "/b/code.cuh"\n'
        with pytest.raises(EmulationError) as raised:
            launch(kernel_of(text), 1, 1, words())
        assert raised.value.lines == ("/b/code.cuh:7", "/a/kernel.py:10")
        assert str(raised.value).splitlines()[1:3] == ["  at: /b/code.cuh:7", "  inlined at: /a/kernel.py:10"]

    def test_lines_of_a_function_that_is_inlined_twice(self):
        calls = "".join(
            f"""
            .loc 1 {line} 3
            .loc 2 9 2, function_name $L__info_string0, inlined_at 1 {line} 3
            .loc 2 7 5, function_name $L__info_string1, inlined_at 2 9 2
            st.global.u32 [%rd0+{offset}], 1;"""
            for line, offset in ((10, 0), (11, 400))
        )
        text = kernel_text("ld.param.u64 %rd0, [p0];" + calls, "u64") + '\n.file 1 "/a/k.py"\n.file 2 "/b/c.cuh"\n'
        with pytest.raises(EmulationError) as raised:
            launch(kernel_of(text), 1, 1, words())
        assert raised.value.lines == ("/b/c.cuh:7", "/b/c.cuh:9", "/a/k.py:11")

    def test_the_line_of_the_user_first(self):
        body = """.loc 1 10 3
            ld.param.u64 %rd0, [p0];
            .loc 2 7 5, function_name $L__info_string0, inlined_at 1 10 3
            st.global.u32 [%rd0+400], 1;"""
        text = kernel_text(body, "u64") + '\n.file 1 "/a/kernel.py"\n.file 2 "/b/site-packages/numba/cg.py"\n'
        with pytest.raises(EmulationError) as raised:
            launch(kernel_of(text), 1, 1, words())
        lines = ["  at: /a/kernel.py:10", "  in: /b/site-packages/numba/cg.py:7"]
        assert str(raised.value).splitlines()[1:3] == lines

    def test_lines_of_calls_without_those_of_generated_code(self):
        before = """.func f(.param .b64 a) { .reg .b64 %a;
            .loc 2 7 5
            ld.param.u64 %a, [a];
            .loc 2 8 5
            st.global.u32 [%a+400], 1;
            ret; }"""
        body = """ld.param.u64 %rd0, [p0];
            .loc 3 1 1, function_name $L__info_string0, inlined_at 1 10 3
            { .param .b64 b; st.param.b64 [b], %rd0;
            call f, (b); }"""
        text = kernel_text(".loc 1 10 3\n" + body, "u64", before=before)
        text += '\n.file 1 "/a/kernel.py"\n.file 2 "/b/code.cuh"\n.file 3 "/a/f(int64)"\n'
        with pytest.raises(EmulationError) as raised:
            launch(kernel_of(text), 1, 1, words())
        assert str(raised.value).splitlines()[1:3] == ["  at: /b/code.cuh:8", "  called at: /a/kernel.py:10"]
        assert raised.value.lines == ("/b/code.cuh:8", "/a/kernel.py:10")

    def test_a_readable_name(self):
        assert short_name("_ZN8__main__6oob_2d12_3clocals_3e1kB2v1B4cw51E5ArrayIfE") == "__main__.oob_2d.<locals>.k"
        assert [short_name(name) for name in ("_Z3addPfi", "kernel", "_Z")] == ["add", "kernel", "_Z"]
        assert short_name("_ZZN2ns10block_scanEiE7storage") == "storage of ns.block_scan"
        symbol = "_ZZZ36cxx_expression_d99401a8bb8a17cb_madevENKUlT_E_clIfEEDaS_E7storage"
        assert short_name(symbol) == "storage of a lambda"

    def test_a_modifier_that_the_emulator_does_not_have(self):
        text = kernel_text(".loc 1 3 0\nadd.sat.u32 %r1, %r2, %r3;") + '.file 1 "/a/kernel.py"'
        with pytest.raises(UnsupportedInstruction, match=r"`add.sat.u32 %r1, %r2, %r3`") as raised:
            Module([text])
        assert raised.value.lines == ("/a/kernel.py:3",)

    def test_a_block_and_thread_of_three_dimensions(self):
        x = words(1)
        text = kernel_text(
            "ld.param.u64 %rd0, [p0]; mov.u32 %r1, %tid.z; mov.u32 %r2, %ctaid.y; add.u32 %r1, %r1, %r2;"
            "setp.ne.u32 %p1, %r1, 4; @%p1 ret; trap;",
            "u64",
        )
        with registered(x), pytest.raises(EmulationError, match="executed a trap") as raised:
            kernel_of(text).launch((2, 3, 1), (2, 2, 3), x.ctypes.data.to_bytes(8, "little"))
        assert raised.value.block[1] == 2
        assert raised.value.thread == (0, 0, 2)


def test_a_call_through_a_pointer_to_nothing():
    body = "ld.param.u64 %rd0, [p0]; mov.u64 %rd1, 64; proto: .callprototype ()_ (); call %rd1, (), proto;"
    with pytest.raises(EmulationError, match="A call or branch through 0x40"):
        launch(kernel_of(kernel_text(body, "u64")), 1, 1, words())


def test_recursion_without_end():
    before = ".func f(.param .b32 a) { .reg .b32 %r; .loc 1 0 0\n ld.param.b32 %r, [a]; {.param .b32 b;"
    before += ".loc 1 4 1\n st.param.b32 [b], %r; call.uni f, (b);} ret; }"
    body = ".loc 1 9 1\n {.param .b32 b; st.param.b32 [b], 1; call.uni f, (b);}"
    with pytest.raises(EmulationError, match="The stack is full") as raised:
        kernel_of(kernel_text(body, before=before) + '\n.file 1 "/a.py"\n').launch((1, 1, 1), (1, 1, 1), b"")
    assert raised.value.lines == ("/a.py:4",) * 5 + ("/a.py:9",)


def test_the_head_alone_has_no_kernels():
    assert Module([HEAD]).kernels == {}


@pytest.mark.parametrize("error", [each for each in Error if each])
def test_each_fault_says_what_to_do(error):
    text = with_fault_remedy("A fault", error.name, has_lines=True)
    assert text.startswith("A fault\n  what to do: ") and len(text.splitlines()) == 2
    assert with_fault_remedy("A fault", error.name, has_lines=False).endswith("autolink.build takes these options too")
