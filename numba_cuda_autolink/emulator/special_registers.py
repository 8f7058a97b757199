# SPDX-License-Identifier: BSD-2-Clause
"""The special registers of PTX: indices and sizes of the grid, lanes, clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .state import Block, Launch, Thread

if TYPE_CHECKING:
    from .function_builder import FunctionBuilder

_AXES = {".x": 0, ".y": 4, ".z": 8}
_RECORDS = {
    "%tid": ("%thread", Thread.TID),
    "%ntid": ("%block", Block.NTID),
    "%ctaid": ("%block", Block.CTAID),
    "%nctaid": ("%block", Block.NCTAID),
    "%clusterid": ("%block", Block.CTAID),
    "%nclusterid": ("%block", Block.NCTAID),
}
_CONSTANTS = {"%nsmid": 1, "%smid": 0, "%is_explicit_cluster": 0, "%cluster_ctarank": 0, "%cluster_nctarank": 1}
_WORKSPACE = {"%envreg1": 4, "%envreg2": 0}  # the high and the low half of an address
_LANE_MASKS = ("%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge")


def special_register(f: FunctionBuilder, name: str) -> tuple[str, int] | None:
    """Return the value and the width of the register *name*, or None if the emulator does not have it."""
    base, axis = name[:-2], name[-2:]
    if axis in _AXES and base in _RECORDS:
        record, offset = _RECORDS[base]
        return f.load(record, offset + _AXES[axis], "i32"), 32
    if axis in _AXES and base in ("%cluster_ctaid", "%cluster_nctaid"):
        return ("0" if base == "%cluster_ctaid" else "1"), 32
    if name in _CONSTANTS:
        return str(_CONSTANTS[name]), 32
    if name in ("%laneid", "%warpid", "%nwarpid") or name in _LANE_MASKS:
        return _lane_register(f, name), 32
    if name == "%gridid":
        return f.temporary(f"zext i32 {f.load('%launch', Launch.GRID_ID, 'i32')} to i64"), 64
    if name in ("%clock", "%clock64", "%globaltimer", "%clock_hi", "%globaltimer_lo", "%globaltimer_hi"):
        f.declare("declare i64 @llvm.readcyclecounter()")
        value = f.temporary("call i64 @llvm.readcyclecounter()")
        if name.endswith("_hi"):
            value = f.temporary(f"lshr i64 {value}, 32")
        if name in ("%clock64", "%globaltimer"):
            return value, 64
        return f.temporary(f"trunc i64 {value} to i32"), 32
    if name in _WORKSPACE:
        return f.load("%launch", Launch.WORKSPACE + _WORKSPACE[name], "i32"), 32
    if name == "%dynamic_smem_size":
        return f.load("%launch", Launch.DYNAMIC_SHARED, "i32"), 32
    if name in ("%total_smem_size", "%aggr_smem_size"):
        return f.temporary("trunc i64 %shared.bytes to i32"), 32
    return None


def _lane_register(f: FunctionBuilder, name: str) -> str:
    if name == "%nwarpid":
        threads = f.temporary(f"add i32 {f.load('%block', Block.COUNT, 'i32')}, 31")
        return f.temporary(f"lshr i32 {threads}, 5")
    index = f.load("%thread", Thread.INDEX, "i32")
    if name == "%warpid":
        return f.temporary(f"lshr i32 {index}, 5")
    lane = f.temporary(f"and i32 {index}, 31")
    if name == "%laneid":
        return lane
    bit = f.temporary(f"shl i32 1, {lane}")
    below = f.temporary(f"sub i32 {bit}, 1")
    upto = f.temporary(f"or i32 {below}, {bit}")
    lanes = {"eq": bit, "lt": below, "le": upto, "gt": upto, "ge": below}[name[-2:]]
    return f.temporary(f"xor i32 {lanes}, -1") if name[-2] == "g" else lanes
