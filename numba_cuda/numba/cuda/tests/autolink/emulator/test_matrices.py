# SPDX-License-Identifier: BSD-2-Clause
"""Matrices that a warp holds together, in the layouts that PTX's manual gives for each lane and element."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support import run

from numba_cuda_autolink.emulator import launcher

LANES = np.arange(32)
GROUP, MEMBER = LANES // 4, LANES % 4


def first_layout(rows: int, columns: int, group: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return row and column of each element of A that a lane holds, as arrays over lanes."""
    layout = []
    for block in range(columns // (4 * group)):
        for high in range(rows // 8):
            for k in range(group):
                layout.append((GROUP + 8 * high, MEMBER * group + k + 4 * group * block))
    return layout


def fragment(matrix: np.ndarray, layout: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the bytes of each lane's registers."""
    return np.ascontiguousarray(np.stack([matrix[row, column] for row, column in layout], 1)).view(np.uint8)


def to_bf16(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize(
    ("form", "shape", "kind", "result"),
    [
        ("m16n8k16.row.col.f32.f16.f16.f32", (16, 8, 16), np.float16, np.float32),
        ("m16n8k8.row.col.f32.f16.f16.f32", (16, 8, 8), np.float16, np.float32),
        ("m16n8k16.row.col.f16.f16.f16.f16", (16, 8, 16), np.float16, np.float16),
        ("m16n8k16.row.col.f32.bf16.bf16.f32", (16, 8, 16), "bf16", np.float32),
        ("m16n8k8.row.col.f32.tf32.tf32.f32", (16, 8, 8), np.float32, np.float32),
        ("m8n8k4.row.col.f64.f64.f64.f64", (8, 8, 4), np.float64, np.float64),
        ("m16n8k16.row.col.f64.f64.f64.f64", (16, 8, 16), np.float64, np.float64),
        ("m16n8k32.row.col.s32.s8.s8.s32", (16, 8, 32), np.int8, np.int32),
        ("m16n8k16.row.col.s32.u8.u8.s32", (16, 8, 16), np.uint8, np.int32),
    ],
)
def test_products(form, shape, kind, result):
    rows, columns, inner = shape
    generator = np.random.default_rng(0)
    low = 0 if kind is np.uint8 else -8
    a, b, c = (generator.integers(low, 8, s) for s in ((rows, inner), (inner, columns), (rows, columns)))
    store = to_bf16 if kind == "bf16" else lambda x: x.astype(kind)
    nbytes = store(a).itemsize
    group = max(1, 4 // nbytes)
    parts = [
        fragment(store(a), first_layout(rows, inner, group)),
        fragment(store(b.T), first_layout(8, inner, group)),
        fragment(c.astype(result), first_layout(rows, columns, 2)),
    ]
    width = 64 if result is np.float64 else 32
    counts = [part.shape[1] * 8 // width for part in parts]
    record = np.zeros((32, 256), np.uint8)
    for k, part in enumerate(parts):
        record[:, 64 * k : 64 * k + part.shape[1]] = part
    prefix = "rd" if width == 64 else "r"
    starts = (20, 30, 10)
    names = [[f"%{prefix}{start + j}" for j in range(n)] for start, n in zip(starts, counts, strict=True)]
    loads = [
        f"ld.global.b{width} {name}, [%rd1+{64 * k + j * width // 8}];"
        for k, part in enumerate(names)
        for j, name in enumerate(part)
    ]
    lists = ["{" + ", ".join(part) + "}" for part in names]
    stores = [f"st.global.b{width} [%rd1+{192 + j * width // 8}], {name};" for j, name in enumerate(names[2])]
    run(
        "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 256; add.u64 %rd1, %rd0, %rd1;"
        + "\n".join(loads)
        + f"mma.sync.aligned.{form} {lists[2]}, {lists[0]}, {lists[1]}, {lists[2]};"
        + "\n".join(stores),
        32,
        record,
    )
    expected = fragment((a.astype(np.int64) @ b + c).astype(result), first_layout(rows, columns, 2))
    assert np.array_equal(record[:, 192 : 192 + expected.shape[1]], expected)


@pytest.mark.parametrize("transposed", [False, True])
def test_loads_of_tiles(transposed):
    tiles = np.arange(4 * 64, dtype=np.uint16).reshape(4, 8, 8)
    out = np.zeros((32, 4, 2), np.uint16)
    suffix = ".trans" if transposed else ""
    run(
        f"""
        mov.u32 %r0, %tid.x; mov.u32 %r9, s;
        mul.wide.u32 %rd2, %r0, 16; add.u64 %rd3, %rd0, %rd2;
        shl.b32 %r8, %r0, 4; add.u32 %r8, %r9, %r8;
        ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd3];
        st.shared.v4.u32 [%r8], {{%r1, %r2, %r3, %r4}};
        bar.sync 0;
        ldmatrix.sync.aligned.m8n8.x4{suffix}.shared.b16 {{%r1, %r2, %r3, %r4}}, [%r8];
        add.u64 %rd3, %rd1, %rd2;
        st.global.v4.u32 [%rd3], {{%r1, %r2, %r3, %r4}};
        """,
        32,
        tiles,
        out,
        before=".shared .align 16 .b8 s[512];",
    )
    for lane in range(32):
        for k in range(4):
            tile = tiles[k].T if transposed else tiles[k]
            assert out[lane, k].tolist() == tile[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2].tolist()


def test_a_product_in_memory_of_an_earlier_launch(monkeypatch):
    monkeypatch.setattr(launcher, "_take_arena", lambda nbytes: np.full(nbytes, 0xFF, np.uint8))
    test_products("m16n8k16.row.col.f32.f16.f16.f32", (16, 8, 16), np.float16, np.float32)
