# SPDX-License-Identifier: BSD-2-Clause
"""Loads, stores, copies and addresses, and atomic operations and reductions in memory.

One worker runs a block, so atomic operations of shared memory could do without atomic instructions; but a generic
address may be of either memory, so all use them.
"""

from __future__ import annotations

from .access import checked_pointer
from .floats import rounded
from .forms import Modifiers, computes, form
from .function_builder import FunctionBuilder
from .parser import TYPES, Instruction, PTXType, split_operands

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
    type, space, ordered = TYPES[m["type"]], plain_space(m), bool(m.get("ordered"))
    targets = split_operands(i.operands[0].strip("{}"))
    copies = f.program.checks.initialised and space != "param" and any(target in f.copied for target in targets)
    atomic = ordered or f.compared.issuperset(targets)
    elements = _list_elements(f, i.operands[1], m, type, len(targets), reads=not copies, writes=False, atomic=atomic)
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
    type, space, ordered = TYPES[m["type"]], plain_space(m), bool(m.get("ordered"))
    sources = split_operands(i.operands[1].strip("{}"))
    values = [f.bits(source, type) for source in sources]
    if m.get("ordered") == "release":
        f.emit("fence release")
        f.note_fence()
    elements = _list_elements(f, i.operands[0], m, type, len(sources), reads=False, writes=True, atomic=ordered)
    mode, align = "volatile " if ordered else "", type.nbytes if f.program.checks.alignment else 1
    for source, value, element in zip(sources, values, elements, strict=True):
        if f.program.checks.initialised and space != "param" and source in f.copied:
            address = f.temporary(f"ptrtoint ptr {element} to i64")
            slots = (f.slot(f"{kind}.{source}", "i64") for kind in ("unwritten", "loaded"))
            unwritten, loaded = (f.temporary(f"load i64, ptr {slot}") for slot in slots)
            f.call("store_unwritten", f.thread, address, unwritten, loaded, type.nbytes, f.copied[source])
        f.emit(f"store {mode}{type.integer} {value}, ptr {element}, align {align}")


_ADDRESSED = r"\.(?P<space>global|const|local|param(?:::entry)?|shared(?:::cta|::cluster)?)"


@form("cvta", rf"(?P<to>\.to)?{_ADDRESSED}\.(?P<type>u32|u64)")
@computes("type", "u64")
def convert_address(f: FunctionBuilder, m: Modifiers, address: str) -> str:
    if plain_space(m) == "shared":
        address = f.temporary(f"{'sub' if m['to'] else 'add'} i64 {address}, %shared")
    return f.resize(address, 64, TYPES[m["type"]].bits)


@form("isspacep", _ADDRESSED)
@computes("pred", "u64")
def is_in_space(f: FunctionBuilder, m: Modifiers, address: str) -> str:
    shared = f.call("is_in_shared", f.thread, address)
    stack = f.temporary(f"sub i64 {address}, {f.field('thread.stack')}")
    local = f.temporary(f"icmp ult i64 {stack}, {f.resize(f.field('block.stack_bytes'), 32, 64)}")
    if plain_space(m) == "global":
        either = f.temporary(f"or i1 {shared}, {local}")
        return f.temporary(f"xor i1 {either}, true")
    return {"shared": shared, "local": local}.get(plain_space(m), "false")


@form("mapa", r"(?:\.shared::cluster)?\.(?P<type>u32|u64)")
@computes("type")
def map_shared_address(f: FunctionBuilder, m: Modifiers, address: str) -> str:
    return address


@form("prefetch prefetchu", r"(?:\.(?:global|local))?\.(?:L1|L2)(?:::evict_(?:last|normal))?")
@form("discard applypriority", r"(?:\.global)?\.L2(?:::evict_normal)?")
@form("createpolicy brkpt pmevent griddepcontrol setmaxnreg", r".*")
@form("cp", r"\.async\.(?:commit_group|wait_group|wait_all)")
def no_effect(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """Nothing to do: caches need no hints, and copies happened at once."""


@form("cp", rf"\.async\.(?:ca|cg)\.shared(?:::cta)?\.global{_CACHE}")
def copy_asynchronously(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """The copy happens at once; bytes beyond the source's size are zeros."""
    nbytes, is_whole = int(i.operands[2]), len(i.operands) == 3
    target = checked_pointer(f, i.operands[0], "shared", nbytes, reads=False, writes=True)
    f.call_intrinsic("memset.p0.i64", "void", f"ptr {target}", "i8 0", f"i64 {nbytes}", "i1 false")
    count = f.value(i.operands[2 if is_whole else 3], "u32")
    with f.when(f.temporary(f"icmp ne i32 {count}, 0")):
        source = checked_pointer(f, i.operands[1], "global", nbytes if is_whole else 1, reads=True, writes=False)
        size = f.resize(count, 32, 64)
        f.call_intrinsic("memcpy.p0.p0.i64", "void", f"ptr {target}", f"ptr {source}", f"i64 {size}", "i1 false")


_BITS, _INTEGERS = frozenset(("b16", "b32", "b64", "b128")), frozenset(("u32", "s32", "u64", "s64"))
_FLOATS = frozenset(("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"))
_TYPES = dict.fromkeys(("and", "or", "xor", "exch", "cas"), _BITS) | dict.fromkeys(("min", "max"), _INTEGERS)
_TYPES |= {"add": _INTEGERS | _FLOATS, "inc": frozenset(("u32",)), "dec": frozenset(("u32",))}
_OTHER_NAMES = {"exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}
_MODIFIERS = (
    r"(?P<order>relaxed|acquire|release|acq_rel|sc)|cta|cluster|gpu|sys|(?P<space>global|shared(?:::cta|::cluster)?)"
    rf"|(?P<operation>{'|'.join(_TYPES)})|noftz|L2::cache_hint|v2|v4|v8|(?P<type>{'|'.join(TYPES)})"
)


@form("atom red", rf"(?:\.(?:{_MODIFIERS}))*")
def atomic(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
    """Compilers write the modifiers in several orders. Of a vector, each element is updated by itself."""
    operation, is_reduction = m["operation"], m["name"] == "red"
    if m["type"] not in _TYPES.get(operation, ()) or (is_reduction and operation in ("exch", "cas")):
        raise f.refuse()
    type = TYPES[m["type"]]
    target, *operands = ("_", *i.operands) if is_reduction else i.operands
    is_fence = m["order"] not in ("", "relaxed")
    if is_fence:
        f.note_fence()
    values = [[f.bits(each, type) for each in split_operands(operand.strip("{}"))] for operand in operands[1:3]]
    nbytes = type.nbytes * len(values[0])
    pointer = checked_pointer(f, operands[0], plain_space(m), nbytes, reads=True, writes=True, atomic=True)
    old = []
    for k, numbers in enumerate(zip(*values, strict=False)):
        element = f.temporary(f"getelementptr i8, ptr {pointer}, i64 {k * type.nbytes}")
        old.append(_update(f, operation, type, element, *numbers))
    if is_fence:
        f.note_fence()
    for register, bits in zip(split_operands(target.strip("{}")), old, strict=False):
        f.assign(register, TYPES[f"b{type.bits}"], bits)


def _update(f: FunctionBuilder, operation: str, type: PTXType, pointer: str, *values: str) -> str:
    """Do the *operation* in memory; return the old bits."""
    if operation == "cas":
        return _compare_and_swap(f, type, pointer, *values)[0]
    if type.name in _FLOATS:
        return _add_in_loop(f, type, pointer, values[0])
    is_unsigned = operation in ("min", "max") and not type.is_signed
    name = f"u{operation}" if is_unsigned else _OTHER_NAMES.get(operation, operation)
    return f.temporary(f"atomicrmw {name} ptr {pointer}, {type.integer} {values[0]} seq_cst, align {type.nbytes}")


def _add_in_loop(f: FunctionBuilder, type: PTXType, pointer: str, value: str) -> str:
    """Add a floating number to memory; return the old bits."""
    llvm, loop, done = type.integer, f.label(), f.label()
    old_slot = f.scratch(type.nbytes)
    f.emit(f"store {llvm} {f.temporary(f'load {llvm}, ptr {pointer}, align {type.nbytes}')}, ptr {old_slot}")
    f.go_to(loop)
    old = f.temporary(f"load {llvm}, ptr {old_slot}")
    seen, success = _compare_and_swap(f, type, pointer, old, _add(f, type, pointer, old, value))
    f.emit(f"store {llvm} {seen}, ptr {old_slot}")
    f.emit(f"br i1 {success}, label %{done}, label %{loop}")
    f.start_block(done)
    return old


def _compare_and_swap(f: FunctionBuilder, type: PTXType, pointer: str, old: str, new: str) -> list[str]:
    """Return what memory held, and whether it was *old* and is now *new*."""
    llvm, order = type.integer, f"seq_cst seq_cst, align {type.nbytes}"
    pair = f.temporary(f"cmpxchg ptr {pointer}, {llvm} {old}, {llvm} {new} {order}")
    return [f.temporary(f"extractvalue {{ {llvm}, i1 }} {pair}, {k}") for k in range(2)]


def _add(f: FunctionBuilder, type: PTXType, pointer: str, old: str, value: str) -> str:
    """Return the sum of floating numbers as bits; of single and double precision, as memory at *pointer* adds them."""
    if type.bits == 16:
        return f.call(f"add_{type.name}", old, value)
    if type.kind.endswith("x2"):
        halves = zip(f.split(old, 16, 2), f.split(value, 16, 2), strict=True)
        return f.join([f.call(f"add_{type.kind[:-2]}", *pair) for pair in halves], 16)
    values = tuple(f.bitcast(bits, type.integer, type.llvm) for bits in (old, value))
    in_shared = rounded(f, "fadd", "", type.llvm, type.llvm, *values[::-1])
    if type.name == "f32":
        in_shared = f.call("canonical_f32", in_shared)
    in_global = f.call(f"add_in_global_{type.name}", *values)
    choice = f.call("is_in_shared", f.thread, f.temporary(f"ptrtoint ptr {pointer} to i64"))
    result = f.temporary(f"select i1 {choice}, {type.llvm} {in_shared}, {type.llvm} {in_global}")
    return f.bitcast(result, type.llvm, type.integer)
