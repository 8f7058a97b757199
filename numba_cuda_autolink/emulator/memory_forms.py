# SPDX-License-Identifier: BSD-2-Clause
"""Loads, stores, conversions of addresses, asynchronous copies."""

from __future__ import annotations

from .forms import Modifiers, form
from .function_builder import FunctionBuilder
from .parser import Instruction, split_operands
from .pointers import checked_pointer
from .ptx_types import PTXType, ptx_type

SPACE = r"(?:\.(?P<space>global|shared(?:::cta|::cluster)?|local|const|param(?:::entry|::func)?))?"
SCOPE = r"(?:\.(?:cta|cluster|gpu|sys))?"
_CACHE = (
    r"(?:\.(?:L1|L2)::(?:evict_normal|evict_unchanged|evict_first|evict_last|no_allocate|cache_hint|64B|128B|256B))*"
)
_VECTOR = r"(?:\.(?P<vector>v2|v4|v8))?"
_TYPE = r"\.(?P<type>b8|b16|b32|b64|b128|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64)"


def plain_space(modifiers: Modifiers) -> str:
    return (modifiers["space"] or "generic").partition("::")[0]


@form("ld", rf"(?:\.weak)?{SPACE}(?:\.(?:ca|cg|cs|lu|nc))?{_CACHE}{_VECTOR}{_TYPE}")
@form("ld", rf"\.(?P<ordered>volatile|cv){SPACE}{_CACHE}{_VECTOR}{_TYPE}")
@form("ld", rf"{SPACE}\.(?P<ordered>cv){_CACHE}{_VECTOR}{_TYPE}")
@form("ld", rf"\.(?P<ordered>relaxed|acquire|mmio){SCOPE}{SPACE}{_CACHE}{_VECTOR}{_TYPE}")
@form("ldu", rf"{SPACE}{_VECTOR}{_TYPE}")
def load(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type, space, ordered = ptx_type(m["type"]), plain_space(m), bool(m.get("ordered"))
    targets = split_operands(i.operands[0].strip("{}"))
    copies = f.program.checks.initialised and space != "param" and any(target in f.copied for target in targets)
    atomic = ordered or f.compared.issuperset(targets)
    elements = _list_elements(f, i.operands[1], m, type, len(targets), writes=False, atomic=atomic, copies=copies)
    for target, element in zip(targets, elements, strict=True) if copies else ():
        address = f.temporary(f"ptrtoint ptr {element} to i64")
        unwritten = f.call("find_unwritten", f.thread, address, type.nbytes)
        if target in f.copied:  # which bytes of it are unwritten, and from where
            f.emit(f"store i64 {unwritten}, ptr {f.slot(f'unwritten.{target}', 'i64')}")
            f.emit(f"store i64 {address}, ptr {f.slot(f'loaded.{target}', 'i64')}")
        else:
            written = f.temporary(f"icmp eq i64 {unwritten}, 0")
            f.call_unless(written, "fail_unwritten", f.thread, address, type.nbytes, f.site)
    mode, align = "volatile " if ordered else "", type.nbytes if f.program.checks.alignment else 1
    values = [f.temporary(f"load {mode}{type.integer}, ptr {at}, align {align}") for at in elements]
    if m.get("ordered") == "acquire":
        f.emit("fence acquire")
        f.note_fence()
    for target, value in zip(targets, values, strict=True):
        f.assign(target, type, f.bitcast(value, type.integer, type.llvm))


def _list_elements(
    f: FunctionBuilder, operand: str, m: Modifiers, type: PTXType, count: int, **access: bool
) -> list[str]:
    """Return pointers to the *count* numbers at the address *operand*, of which all is checked."""
    pointer = checked_pointer(f, operand, plain_space(m), type.nbytes * count, **access)
    return [f.temporary(f"getelementptr i8, ptr {pointer}, i64 {k * type.nbytes}") for k in range(count)]


@form("st", rf"(?:\.weak)?{SPACE}(?:\.(?:wb|cg|cs|wt))?{_CACHE}{_VECTOR}{_TYPE}")
@form("st", rf"\.(?P<ordered>volatile){SPACE}{_CACHE}{_VECTOR}{_TYPE}")
@form("st", rf"\.(?P<ordered>relaxed|release|mmio){SCOPE}{SPACE}{_CACHE}{_VECTOR}{_TYPE}")
def store(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type, space, ordered = ptx_type(m["type"]), plain_space(m), bool(m.get("ordered"))
    sources = split_operands(i.operands[1].strip("{}"))
    values = [f.bits(source, type) for source in sources]
    if m.get("ordered") == "release":
        f.emit("fence release")
        f.note_fence()
    # One that is ordered does not race, and reads nothing either.
    access = {"writes": True, "atomic": ordered, "copies": ordered}
    elements = _list_elements(f, i.operands[0], m, type, len(sources), **access)
    mode, align = "volatile " if ordered else "", type.nbytes if f.program.checks.alignment else 1
    for source, value, element in zip(sources, values, elements, strict=True):
        if f.program.checks.initialised and space != "param" and source in f.copied:
            address = f.temporary(f"ptrtoint ptr {element} to i64")
            slots = (f.slot(f"{kind}.{source}", "i64") for kind in ("unwritten", "loaded"))
            unwritten, loaded = (f.temporary(f"load i64, ptr {slot}") for slot in slots)
            f.call("store_unwritten", f.thread, address, unwritten, loaded, type.nbytes, f.copied[source])
        f.emit(f"store {mode}{type.integer} {value}, ptr {element}, align {align}")


_ADDRESSED = r"\.(?P<space>global|const|local|param(?:::entry)?|shared(?:::cta|::cluster)?)"


@form("cvta", rf"(?P<to>\.to)?{_ADDRESSED}\.u(?P<bits>32|64)")
def convert_address(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    type = ptx_type(f"u{m['bits']}")
    address = f.value(i.operands[1], "u64")
    if plain_space(m) == "shared":
        address = f.temporary(f"{'sub' if m['to'] else 'add'} i64 {address}, %shared")
    f.assign(i.operands[0], type, f.resize(address, 64, type.bits))


@form("isspacep", _ADDRESSED)
def is_in_space(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    address = f.value(i.operands[1], "u64")
    space = plain_space(m)
    shared = f.call("is_in_shared", f.thread, address)
    stack = f.temporary(f"sub i64 {address}, {f.field('thread.stack')}")
    size = f.resize(f.field("block.stack_bytes"), 32, 64)
    local = f.temporary(f"icmp ult i64 {stack}, {size}")
    result = {"shared": shared, "local": local}.get(space, "false")
    if space == "global":
        either = f.temporary(f"or i1 {shared}, {local}")
        result = f.temporary(f"xor i1 {either}, true")
    f.assign(i.operands[0], "pred", result)


@form("mapa", r"(?:\.shared::cluster)?\.u(?P<bits>32|64)")
def map_shared_address(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    f.assign(i.operands[0], f"u{m['bits']}", f.value(i.operands[1], f"u{m['bits']}"))


@form("prefetch prefetchu", r"(?:\.(?:global|local))?\.(?:L1|L2)(?:::evict_(?:last|normal))?")
@form("discard applypriority", r"(?:\.global)?\.L2(?:::evict_normal)?")
@form("createpolicy brkpt pmevent griddepcontrol setmaxnreg", r".*")
@form("cp", r"\.async\.(?:commit_group|wait_group|wait_all)")
def no_effect(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """Nothing to do: caches need no hints, and copies happened at once."""


@form("cp", rf"\.async\.(?:ca|cg)\.shared(?:::cta)?\.global{_CACHE}")
def copy_asynchronously(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """The copy happens at once; bytes beyond the source's size are zeros."""
    nbytes = int(i.operands[2])
    target = checked_pointer(f, i.operands[0], "shared", nbytes, writes=True, atomic=False)
    size = str(nbytes)
    if len(i.operands) > 3:
        f.call_intrinsic("memset.p0.i64", "void", f"ptr {target}", "i8 0", f"i64 {nbytes}", "i1 false")
        number = f.value(i.operands[3], "u32")
        size = f.resize(number, 32, 64)
        copy, done = f.label(), f.label()
        f.emit(f"br i1 {f.temporary(f'icmp ne i32 {number}, 0')}, label %{copy}, label %{done}")
        f.start_block(copy)
    checked = nbytes if len(i.operands) == 3 else 1
    source = checked_pointer(f, i.operands[1], "global", checked, writes=False, atomic=False)
    f.call_intrinsic("memcpy.p0.p0.i64", "void", f"ptr {target}", f"ptr {source}", f"i64 {size}", "i1 false")
    if len(i.operands) > 3:
        f.emit(f"br label %{done}")
        f.start_block(done)
