# SPDX-License-Identifier: BSD-2-Clause
"""Threads of a block in the emulator: barriers, operations of a warp, recursion, waiting for each other."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from emulator_support import kernel_of, kernel_text, launch, registered, run
from numba import cuda, int32
from numba.cuda import autolink

from numba_cuda_autolink import BarrierError, EmulationError
from numba_cuda_autolink.emulator import Module

# %r0: the thread's index; %rd9: the address of its element of the first array, of 4 bytes
ELEMENT = """
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd8, %r0, 4;
add.s64 %rd9, %rd0, %rd8;
ld.global.u32 %r1, [%rd9];
"""


def values(count: int = 64) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 1000, count).astype(np.uint32)


class TestBarriers:
    def test_a_block_reverses_its_elements_through_shared_memory(self):
        x = values(256)
        expected = x[::-1].copy()
        run(
            ELEMENT
            + """
            mov.u64 %rd10, s;
            add.s64 %rd11, %rd10, %rd8;
            st.shared.u32 [%rd11], %r1;
            bar.sync 0;
            sub.u32 %r2, 255, %r0;
            mul.wide.u32 %rd12, %r2, 4;
            add.s64 %rd11, %rd10, %rd12;
            ld.shared.u32 %r3, [%rd11];
            st.global.u32 [%rd9], %r3;
            """,
            256,
            x,
            before=".shared .align 4 .b8 s[1024];",
        )
        assert np.array_equal(x, expected)

    def test_threads_that_return_early_are_not_waited_for(self):
        x = values()
        run(ELEMENT + "setp.gt.u32 %p1, %r0, 40; @%p1 ret; bar.sync 0; st.global.u32 [%rd9], 7;", 64, x)
        assert np.array_equal(x == 7, np.arange(64) <= 40)

    def test_a_reduction_counts(self):
        x = values()
        run(ELEMENT + "setp.gt.u32 %p1, %r1, 500; bar.red.popc.u32 %r2, 0, %p1; st.global.u32 [%rd9], %r2;", 64, x)
        assert (x == np.count_nonzero(values() > 500)).all()

    def test_threads_at_different_barriers_are_stuck(self):
        with pytest.raises(BarrierError, match=r"wait in different places: this one and thread \(41, 0, 0\)") as raised:
            run(ELEMENT + "setp.gt.u32 %p1, %r0, 40; @%p1 bra L; bar.sync 1; ret; L: bar.sync 2, 64;", 64, values())
        assert "instruction: bar.sync 1\n  the other: bar.sync 2, 64" in str(raised.value)

    def test_lanes_that_wait_for_others_that_wait_at_a_barrier(self):
        body = "setp.lt.u32 %p1, %r0, 16; @%p1 bra L; match.any.sync.b32 %r2, %r0, -1; L: bar.sync 0;"
        with pytest.raises(BarrierError, match=r"this one and thread \(16, 0, 0\)") as raised:
            run(ELEMENT + body, 32, values())
        assert "the other: match.any.sync.b32" in str(raised.value)

    def test_threads_that_wait_for_one_that_returned(self):
        with pytest.raises(BarrierError, match="have returned: not all reach the barrier") as raised:
            run(ELEMENT + "setp.gt.u32 %p1, %r0, 40; @%p1 ret; bar.sync 1, 64;", 64, values())
        assert "the other" not in str(raised.value)

    def test_threads_of_a_block_at_different_instructions_of_one_barrier(self):
        with pytest.raises(EmulationError, match=r"this one and thread \(40, 0, 0\)") as raised:
            run(ELEMENT + "setp.gt.u32 %p1, %r0, 40; @%p1 bra L; bar.sync 0; ret; L: bar.sync 0;", 64, values())
        assert raised.value.thread == (41, 0, 0)


class TestWarps:
    @pytest.mark.parametrize(
        ("mode", "b", "c", "expected"),
        [
            ("down", 1, 31, [*range(1, 32), 31]),
            ("up", 2, 0, [0, 1, *range(30)]),
            ("bfly", 5, 31, [k ^ 5 for k in range(32)]),
            ("idx", 7, 31, [7] * 32),
            ("down", 1, 0x1C03, [1, 2, 3, 3] * 1 + [5, 6, 7, 7] + [9, 10, 11, 11] + [13, 14, 15, 15]
             + [17, 18, 19, 19] + [21, 22, 23, 23] + [25, 26, 27, 27] + [29, 30, 31, 31]),
        ],
    )  # fmt: skip
    def test_shuffles(self, mode, b, c, expected):
        x = np.arange(32, dtype=np.uint32)
        run(ELEMENT + f"shfl.sync.{mode}.b32 %r2|%p1, %r1, {b}, {c}, -1; st.global.u32 [%rd9], %r2;", 32, x)
        assert x.tolist() == expected

    def test_a_warp_of_20_threads_votes(self):
        x = np.arange(20, dtype=np.uint32)
        run(ELEMENT + "setp.gt.u32 %p1, %r1, 3; vote.sync.ballot.b32 %r2, %p1, -1; st.global.u32 [%rd9], %r2;", 20, x)
        assert (x == sum(1 << k for k in range(4, 20))).all()

    def test_match_and_redux(self):
        x = np.arange(32, dtype=np.uint32) // 3
        y = x.copy()
        run(ELEMENT + "match.any.sync.b32 %r2, %r1, -1; st.global.u32 [%rd9], %r2;", 32, x)
        assert x.tolist() == [sum(1 << k for k in range(32) if y[k] == v) for v in y]
        run(ELEMENT + "redux.sync.add.u32 %r2, %r1, -1; st.global.u32 [%rd9], %r2;", 32, y)
        assert (y == sum(k // 3 for k in range(32))).all()

    def test_halves_of_a_warp_have_their_own_active_mask(self):
        x = np.arange(32, dtype=np.uint32)
        body = "setp.gt.u32 %p1, %r0, 9; @%p1 bra L; activemask.b32 %r2; bra E; L: activemask.b32 %r2; E:"
        run(ELEMENT + body + "st.global.u32 [%rd9], %r2;", 32, x)
        assert x.tolist() == [0x3FF] * 10 + [0xFFFFFC00] * 22

    def test_a_thread_outside_of_its_mask(self):
        with pytest.raises(EmulationError, match="not in the mask 0x0000fffe"):
            run(ELEMENT + "bar.warp.sync 65534;", 16, values())


def test_a_spin_lock_lets_its_owner_go_on():
    x = np.zeros(2, np.uint32)
    run(
        """
        L: atom.global.cas.b32 %r1, [%rd0], 0, 1;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra L;
        ld.volatile.global.u32 %r2, [%rd0+4];
        nanosleep.u32 10;
        add.u32 %r2, %r2, 1;
        st.volatile.global.u32 [%rd0+4], %r2;
        atom.global.exch.b32 %r1, [%rd0], 0;
        """,
        64,
        x,
        grid=5,
    )
    assert x.tolist() == [0, 320]


def test_a_block_may_wait_for_a_later_one():
    x = np.zeros(2, np.uint32)
    run(
        """mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 3; @%p1 bra S;
        L: ld.volatile.global.u32 %r2, [%rd0]; setp.eq.u32 %p2, %r2, 0; @%p2 bra L;
        atom.global.add.u32 %r3, [%rd0+4], 1; ret;
        S: st.volatile.global.u32 [%rd0], 1;""",
        32,
        x,
        grid=4,
    )
    assert x.tolist() == [1, 96]


def test_a_cooperative_grid_waits_for_all_of_its_blocks():
    x = np.zeros(1, np.uint32)
    y = np.zeros(40, np.uint32)
    text = kernel_text(
        """
        ld.param.u64 %rd0, [p0];
        ld.param.u64 %rd1, [p1];
        red.global.add.u32 [%rd0], 1;
        { .param .b64 a; .param .b32 b; .param .b32 r;
        st.param.b64 [a], %rd1; st.param.b32 [b], 0;
        call.uni (r), cudaCGSynchronize, (a, b); }
        ld.volatile.global.u32 %r1, [%rd0];
        mov.u32 %r2, %ctaid.x;
        mul.wide.u32 %rd2, %r2, 4;
        add.s64 %rd3, %rd1, %rd2;
        st.global.u32 [%rd3], %r1;
        """,
        "u64",
        "u64",
        before=".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 a, .param .b32 b);",
    )
    launch(kernel_of(text), 40, 32, x, y, cooperative=True)
    assert y.tolist() == [1280] * 40


def test_cub_in_a_recursive_function():
    lib = autolink.cxx(
        """
        #include <cub/block/block_scan.cuh>
        __device__ __noinline__ int scan_at_depth(int x, int depth) {
            if (depth > 0) { int y = scan_at_depth(x + 1, depth - 1); __syncthreads(); return y; }
            __shared__ typename cub::BlockScan<int, 128>::TempStorage storage;
            int result;
            cub::BlockScan<int, 128>(storage).InclusiveSum(x, result);
            __syncthreads();
            return result;
        }
        """
    )

    @cuda.jit
    def kernel(x, r, depth):
        i = cuda.grid(1)
        r[i] = lib.scan_at_depth(x[i], depth)

    built = autolink.build(kernel, (int32[::1], int32[::1], int32), cc=(9, 0), output="ptx")
    (emulated,) = Module([built.code]).kernels.values()
    x = np.arange(256, dtype=np.int32)
    r = np.zeros_like(x)
    arrays = []
    for array in (x, r):
        arrays += [0, 0, array.size, array.itemsize, array, array.size, array.itemsize]
    words = np.array([a.ctypes.data if isinstance(a, np.ndarray) else a for a in arrays], np.int64)
    with registered(x, r):
        emulated.launch((2, 1, 1), (128, 1, 1), words.tobytes() + np.int32(9).tobytes())
    assert np.array_equal(r, np.cumsum(x.reshape(2, 128) + 9, axis=1).ravel())


LOOPS = {
    "alone": "ld.global.u32 %r1, [%rd0];",
    "polling": "ld.volatile.global.u32 %r1, [%rd0];",
    "with barriers": "ld.global.u32 %r1, [%rd0]; bar.sync 0;",
}


@pytest.mark.parametrize("grid", [1, 100])
@pytest.mark.parametrize("loop", LOOPS)
def test_an_interrupt_ends_what_never_ends(loop, grid):
    body = f"L: {LOOPS[loop]} setp.eq.u32 %p1, %r1, 0; @%p1 bra L; st.global.u32 [%rd0], %r0;"
    kernel = kernel_of(kernel_text(f"mov.u32 %r0, 7; ld.param.u64 %rd0, [p0]; {body}", "u64"))
    x = np.ones(1, np.uint32)
    launch(kernel, grid, 64, x)
    assert x[0] == 7
    x[0] = 0
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell runs in the background
    interrupt = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            launch(kernel, grid, 64, x)
    finally:
        interrupt.join()
        signal.signal(signal.SIGINT, before)
    assert x[0] == 0
    x[0] = 1
    launch(kernel, grid, 64, x)
    assert x[0] == 7
