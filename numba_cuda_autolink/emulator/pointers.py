# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of PTX as pointers, with the quick part of the checks."""

from __future__ import annotations

from .function_builder import FunctionBuilder
from .parser import parse_integer
from .state import FIRST_SHARED_ADDRESS


def checked_pointer(
    f: FunctionBuilder, operand: str, space: str, nbytes: int, *, writes: bool, atomic: bool, copies: bool = False
) -> str:
    """Return a pointer to the *nbytes* at the address *operand* in *space*, after the module's checks: an access that
    *copies* may read what is not written."""
    base, offset = f.address(operand)
    if space == "param":
        return _parameter_pointer(f, base, offset)
    align = nbytes if f.program.checks.alignment else 1
    address = f.address_value(base)
    if offset:
        address = f.temporary(f"add i64 {address}, {offset}")
    if space == "generic" and f.program.is_shared(f.function, base):
        space = "shared"
    size = f.program.symbol_size(f.function, base)
    known = size is not None and offset >= 0 and offset + nbytes <= size and (size == 0 or offset % align == 0)
    if not f.program.checks.bounds and not known:
        good = _is_aligned(f, address, align, "true")
        if good != "true":
            f.call_unless(good, "fail_access", f.thread, address, str(nbytes), str(align), f.site)
    if space == "shared":
        return _shared_pointer(f, address, nbytes, align, writes, atomic, copies, known)
    if space == "local":
        return _local_pointer(f, address, nbytes, align, writes, copies)
    if not known:
        _check_global(f, base, address, nbytes, align)
        if space == "generic" and (f.program.checks.races or f.program.checks.initialised):
            f.call("notice_access", *_notice(f, address, nbytes, writes, atomic, copies))
    return f.temporary(f"inttoptr i64 {address} to ptr")


def _notice(f: FunctionBuilder, address: str, nbytes: int, *how: bool) -> tuple[str, ...]:
    return f.thread, address, str(nbytes), *(str(each).lower() for each in how), f.site


def _parameter_pointer(f: FunctionBuilder, base: str, offset: int) -> str:
    pointer = f.pointer_of(base)
    if pointer is None:
        address = f.address_value(base)
        pointer = f.temporary(f"inttoptr i64 {address} to ptr")
    return f.temporary(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer


def _is_aligned(f: FunctionBuilder, address: str, align: int, good: str) -> str:
    if align == 1:
        return good
    rest = f.temporary(f"and i64 {address}, {align - 1}")
    aligned = f.temporary(f"icmp eq i64 {rest}, 0")
    return f.temporary(f"and i1 {good}, {aligned}")


def _shared_pointer(
    f: FunctionBuilder, address: str, nbytes: int, align: int, writes: bool, atomic: bool, copies: bool, known: bool
) -> str:
    checks = f.program.checks
    generic = f.temporary(f"add i64 {address}, %shared")
    if checks.bounds and not known:
        offset = f.temporary(f"sub i64 {address}, {FIRST_SHARED_ADDRESS}")
        valid = f.intrinsic("usub.sat", "i64", "%shared.bytes", str(nbytes - 1))
        good = _is_aligned(f, address, align, f.temporary(f"icmp ult i64 {offset}, {valid}"))
        f.call_unless(good, "fail_access", f.thread, generic, str(nbytes), str(align), f.site)
    if checks.races or checks.initialised:
        f.call("notice_access", *_notice(f, generic, nbytes, writes, atomic, copies))
    return f.temporary(f"inttoptr i64 {generic} to ptr")


def _local_pointer(f: FunctionBuilder, address: str, nbytes: int, align: int, writes: bool, copies: bool) -> str:
    checks = f.program.checks
    if checks.bounds:
        good = "false"
        if f.local_variable is not None:
            begin = f.find_symbol(f.local_variable)
            offset = f.temporary(f"sub i64 {address}, {begin}")
            size = f.function.local_variables[f.local_variable].nbytes
            valid = f.temporary(f"icmp ult i64 {offset}, {max(0, size - nbytes + 1)}")
            good = _is_aligned(f, address, align, valid)
        f.call_unless(good, "check_local", f.thread, address, str(nbytes), str(align), f.site)
    if checks.initialised:
        f.call("notice_access", *_notice(f, address, nbytes, writes, False, copies))
    return f.temporary(f"inttoptr i64 {address} to ptr")


def _check_global(f: FunctionBuilder, base: str, address: str, nbytes: int, align: int) -> None:
    checks = f.program.checks
    if not checks.bounds:
        return
    is_register = parse_integer(base) is None
    slot = f.program.slot(f.function, base if is_register else "", nbytes)
    slot_address = f.temporary(f"add i64 %caches, {slot * 16}")
    pointer = f.temporary(f"inttoptr i64 {slot_address} to ptr")
    begin = f.temporary(f"load i64, ptr {pointer}")
    valid = f.load(pointer, 8)
    offset = f.temporary(f"sub i64 {address}, {begin}")
    good = _is_aligned(f, address, align, f.temporary(f"icmp ult i64 {offset}, {valid}"))
    f.call_unless(good, "check_access", f.thread, address, str(nbytes), str(align), f.site, slot_address)
