# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of PTX as pointers, with the quick part of the checks."""

from __future__ import annotations

from .access import GENERIC, LOCAL, SHARED
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
        f.call("notice_access", f.thread, generic, nbytes, writes, atomic, copies, f.site)
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
        number = f.program.slot(f.function, base if parse_integer(base) is None else "", nbytes)
        slot = f.temporary(f"add i64 %caches, {number * 16}")
        pointer = f.temporary(f"inttoptr i64 {slot} to ptr")
        begin, valid = f.load(pointer, 0), f.load(pointer, 8)
    offset = f.temporary(f"sub i64 {address}, {begin}")
    return f.temporary(f"icmp ult i64 {offset}, {valid}"), slot
