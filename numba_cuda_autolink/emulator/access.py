# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of PTX as pointers, and checks of accesses: a quick test, and native functions where that does not decide.

Each place in the code that reads or writes remembers the memory that it met last, as an address and a number of valid
offsets, so that the next access there is a subtraction and a comparison.
"""
# ruff: noqa: F821
# mypy: disable-error-code="index, name-defined"

from __future__ import annotations

from .function_builder import FunctionBuilder
from .native import Record, native, record, u8, u16, u32, u64
from .parser import parse_integer
from .scheduler import fail, yield_thread
from .state import ATOMIC, FIRST_SHARED_ADDRESS, SEVERAL, Error, Frame, Launch, Thread


@native()
def is_in_shared(thread: Thread, address: u64) -> bool:
    return address - thread.block.shared < thread.block.shared_bytes


@native()
def find_allocation(launch: Launch, address: u64) -> u64:
    """Return the address of the entry that may hold *address*: the last that begins at it or before; or 0."""
    low = u64(0)
    high = launch.allocation_count
    while low < high:
        middle = (low + high) >> 1
        if load_u64(launch.allocations, middle * 16) <= address:
            low = middle + 1
        else:
            high = middle
    return launch.allocations + (low - 1) * 16 if low != 0 else u64(0)


@native()
def find_frame(thread: Thread, address: u64, nbytes: u32) -> Frame:
    """Return the frame whose local memory holds the access, or 0."""
    frame = thread.locals
    while frame != 0:
        offset = address - frame.address
        if offset < frame.size and offset + u64(nbytes) <= frame.size:
            return frame
        frame = frame.below
    return frame


SHARED, LOCAL, GENERIC = range(3)


@native(inline=False)
def check_access(thread: Thread, address: u64, nbytes: u32, align: u32, space: u32, site: u32, slot: u64):
    """Return if the access of *nbytes* at the generic *address* is right, and remember in the *slot* what is there; if
    not, fail. An access in the *space* `SHARED` is outside of it where this is called."""
    if address & (u64(align) - 1) != 0:
        fail(thread, Error.MISALIGNED, site, address, nbytes)
    block = thread.block
    end = address + u64(nbytes)
    is_right = False
    if space == LOCAL or (space == GENERIC and address - thread.stack < u64(block.stack_bytes)):
        is_right = find_frame(thread, address, nbytes) != 0
    elif space == GENERIC:
        low = block.shared
        high = low + block.shared_bytes
        entry = find_allocation(block.launch, address)
        if entry != 0 and not is_in_shared(thread, address):
            low = load_u64(entry, 0)
            high = load_u64(entry, 8)
        parameters = block.launch.parameters
        is_right = address >= low and end <= high and end > address
        if is_right:
            store_u64(slot, 0, low)
            store_u64(slot, 8, high - low + 1 - u64(nbytes))
        elif address >= parameters:
            is_right = end <= parameters + block.launch.parameter_bytes
    if not is_right:
        fail(thread, Error.OUT_OF_BOUNDS, site, address, nbytes)


# What was written, and who accessed it


@record
class Access(Record):
    who: u16  # a thread, and whether the access is atomic; or `SEVERAL`
    warp_epoch: u16
    epoch: u32  # of the block
    site: u32
    fences: u32  # of the block, before it


# Of a byte of shared memory: its last writer, and its last two readers that differ
ACCESS_BYTES = 3 * Access.SIZE


@native(inline=False)
def note_fence(thread: Thread):
    """What *thread* did until now comes before what other threads do after later fences of theirs: they have seen that
    it is done, or else another schedule is a race that this one does not show."""
    thread.block.fences += 1
    thread.block.threads[thread.index].last_fence = thread.block.fences


@native()
def conflicts(thread: Thread, access: Access, atomic: bool) -> bool:
    """Return whether nothing orders the *access* of another thread before this one, and not both are *atomic*."""
    number = u32(access.who & ~u16(ATOMIC))
    if access.epoch != thread.block.epoch or number == thread.index:
        return False
    if number >> 5 == thread.index >> 5 and access.warp_epoch != u16(thread.warp_epoch):
        return False
    if access.who == SEVERAL or (atomic and access.who >= ATOMIC):
        return not atomic
    fenced = thread.block.threads[number].last_fence
    return fenced <= access.fences or thread.block.threads[thread.index].last_fence <= fenced


@native()
def note_access(thread: Thread, access: Access, who: u16, site: u32):
    access.who = who
    access.warp_epoch = u16(thread.warp_epoch)
    access.epoch = thread.block.epoch
    access.site = site
    access.fences = thread.block.fences


@native(inline=False)
def check_race(thread: Thread, accesses: Access, address: u64, nbytes: u32, writes: bool, atomic: bool, site: u32):
    """Fail if the access of the byte with *accesses* conflicts with an earlier one, and note it."""
    who = u16(thread.index) | u16(ATOMIC) if atomic else u16(thread.index)
    for slot in range(u64(3)):
        if (slot == 0 or writes) and conflicts(thread, accesses[slot], atomic):
            thread.block.other_thread = u32(accesses[slot].who)
            thread.block.other_site = accesses[slot].site
            fail(thread, Error.RACE, site, address, nbytes)
    if not writes:
        if not conflicts(thread, accesses[1], False):
            note_access(thread, accesses[1], who, site)
        elif accesses[2].who >= ATOMIC or not conflicts(thread, accesses[2], False):
            note_access(thread, accesses[2], who, site)
        return
    if atomic and accesses.epoch == thread.block.epoch:
        if accesses.who < ATOMIC:
            return  # a plain write, which other warps must not miss
        if u32(accesses.who & ~u16(ATOMIC)) >> 5 != thread.index >> 5:
            who = u16(SEVERAL)
    note_access(thread, accesses, who, site)


@native(inline=False)
def fail_unwritten(thread: Thread, address: u64, nbytes: u32, site: u32):
    """Fail for a read of unwritten memory: in shared memory where races are found, after the other threads have gone
    on, for one that writes it now is a race."""
    if thread.block.shared_accesses != 0 and is_in_shared(thread, address):
        yield_thread(thread)
    fail(thread, Error.UNINITIALISED, site, address, nbytes)


@native(inline=False)
def notice_access(thread: Thread, address: u64, nbytes: u32, reads: bool, writes: bool, atomic: bool, site: u32):
    """Check an access of shared or local memory, if the generic *address* is there: races, and unwritten bytes if it
    *reads* them."""
    block = thread.block
    if block.shared_accesses != 0 and is_in_shared(thread, address):
        for byte in range(u64(nbytes)):
            accesses = Access(block.shared_accesses + (address - block.shared + byte) * ACCESS_BYTES)
            check_race(thread, accesses, address + byte, nbytes, writes, atomic, site)
    shadow = find_shadow(thread, address, nbytes)
    if shadow != 0:
        for byte in range(u64(nbytes)):
            if reads and load_u8(shadow, byte) == 0:
                fail_unwritten(thread, address + byte, nbytes, site)
            if writes:
                store_u8(shadow, byte, 1)


# Copies: what is loaded and only stored, as the padding of structs, may be unwritten, and remains so


@native()
def find_shadow(thread: Thread, address: u64, nbytes: u32) -> u64:
    """Return where it is noted which bytes of shared or local memory are written, or 0 for other memory."""
    shadow = u64(0)
    if is_in_shared(thread, address):
        shadow = thread.block.shared_written
        address -= thread.block.shared
    else:
        frame = find_frame(thread, address, nbytes)
        if frame != 0:
            shadow = frame.shadow
            address -= frame.address
    return shadow + address if shadow != 0 else u64(0)


@native(inline=False)
def find_unwritten(thread: Thread, address: u64, nbytes: u32) -> u64:
    """Return a bit for each of the *nbytes* that is not written."""
    unwritten = u64(0)
    shadow = find_shadow(thread, address, nbytes)
    if shadow != 0:
        for k in range(u64(nbytes)):
            unwritten |= u64(load_u8(shadow, k) == 0) << k
    return unwritten


@native(inline=False)
def store_unwritten(thread: Thread, target: u64, unwritten: u64, address: u64, nbytes: u32, site: u32):
    """Note that bytes at *target* are as *unwritten* as those that were loaded from *address*: other threads and the
    host must not see them."""
    shadow = find_shadow(thread, target, nbytes)
    if shadow == 0 and unwritten != 0:
        fail_unwritten(thread, address, nbytes, site)
    if shadow != 0:
        for k in range(u64(nbytes)):
            if unwritten >> k & 1 == 1:
                store_u8(shadow, k, u8(0))


def checked_pointer(
    f: FunctionBuilder, operand: str, space: str, nbytes: int, reads: bool, writes: bool, atomic: bool = False
) -> str:
    """Return a pointer to the *nbytes* at the address *operand* in *space*, after the module's checks: what an access
    *reads* must be written."""
    base, offset = f.address(operand)
    if space == "param":
        pointer = f.pointer_of(base) or f.temporary(f"inttoptr i64 {f.value(base, 'b64')} to ptr")
        return f.temporary(f"getelementptr i8, ptr {pointer}, i64 {offset}")
    checks, variable = f.program.checks, f.program.find_variable(f.function, base)
    if space == "generic" and variable is not None and variable.space == "shared":
        space = "shared"
    address = generic = f.temporary(f"add i64 {f.value(base, 'b64')}, {offset}")
    if space == "shared":
        generic = f.temporary(f"add i64 {address}, %shared")
    align = nbytes if checks.alignment else 1
    known = variable is not None and 0 <= offset <= variable.nbytes - nbytes and offset % align == 0
    if not known and (checks.bounds or align > 1):
        good, slot = _test_bounds(f, base, space, address, nbytes) if checks.bounds else ("true", "0")
        aligned = f.temporary(f"icmp eq i64 {f.temporary(f'and i64 {address}, {align - 1}')}, 0")
        good = f.temporary(f"and i1 {good}, {aligned}")
        kind = {"shared": SHARED, "local": LOCAL}.get(space, GENERIC)
        f.call_unless(good, "check_access", f.thread, generic, nbytes, align, kind, f.site, slot)
    is_noticed = space in ("shared", "local") or (space == "generic" and not known)
    if is_noticed and (checks.initialised or (checks.races and space != "local")):
        f.call("notice_access", f.thread, generic, nbytes, reads, writes, atomic, f.site)
    return f.temporary(f"inttoptr i64 {generic} to ptr")


def _test_bounds(f: FunctionBuilder, base: str, space: str, address: str, nbytes: int) -> tuple[str, str]:
    """Return whether the access is where such accesses mostly are, and the slot that remembers where they are."""
    begin, valid, slot = str(FIRST_SHARED_ADDRESS), "0", "0"
    if space == "shared":
        valid = f.intrinsic("usub.sat", "i64", "%shared.bytes", str(nbytes - 1))
    elif space == "local":
        if f.local_variable is not None:
            begin = f.symbol_address(f.local_variable)
            valid = str(max(0, f.function.local_variables[f.local_variable].nbytes - nbytes + 1))
    else:
        place = id(f.function), base if parse_integer(base) is None else "", nbytes
        number = f.program.slots.setdefault(place, len(f.program.slots))
        slot = f.temporary(f"add i64 %caches, {number * 16}")
        pointer = f.temporary(f"inttoptr i64 {slot} to ptr")
        begin, valid = f.load(pointer, 0), f.load(pointer, 8)
    offset = f.temporary(f"sub i64 {address}, {begin}")
    return f.temporary(f"icmp ult i64 {offset}, {valid}"), slot
