# SPDX-License-Identifier: BSD-2-Clause
"""The error for a field that a record lacks, which may be a struct or an object of C++."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from typing import Any

from numba_cuda_autolink.mangled_names import readable
from numba_cuda_autolink.printable_texts import did_you_mean

from .kernel_syntax import find_method_call

_of_cxx: dict[Any, tuple[str, bool]] = {}  # by their dtypes: the names of their classes, and whether fields are members
_structs: dict[str, set[str]] = {}  # by their members: lowered names of one of these
_OF_OBJECT = re.compile(r"nca::nca_object<(.*)>\)*\.nca_v")
_NAME = re.compile(r"[A-Za-z_][\w:]*(?:<[\w:<>*&, ]*>)?")


def note_record(numba_type: Any, name: str, *, has_members: bool) -> None:
    """Note that records of *numba_type* are of the class *name* of C++, *has_members* if they have its members as
    fields."""
    _of_cxx[getattr(numba_type, "dtype", None)] = name, has_members


def note_struct(members: tuple[str, ...], lowered: str) -> None:
    """Note that a struct of C++ has these *members*; the *lowered* name of one of them has its type."""
    _structs.setdefault(", ".join(members), set()).add(lowered)


def name_of_struct(members: str) -> str:
    """Return what C++ calls the struct with these *members*; empty if there are several, or it has no name."""
    names = {found[1].strip() for each in _structs.get(members, ()) if (found := _OF_OBJECT.search(readable(each)))}
    return names.pop() if len(names) == 1 and _NAME.fullmatch(next(iter(names))) else ""


def unknown_field(missing: KeyError, error: Any) -> Exception | None:
    """Return the *error* for a field that a record lacks, for which Numba raises *missing*; else ``None``."""
    selves = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(missing.__traceback__)]
    if not (fields := getattr(selves[-1], "fields", None)):
        return None
    loc = next((each.loc for each in reversed(selves) if hasattr(each, "loc")), None)
    name = str(missing.args[0])
    is_called = loc is not None and find_method_call(loc.filename, loc.line, name) is not None
    owner, has_members = _of_cxx.get(getattr(selves[-1], "dtype", None), ("", True))
    return error(_describe(name, fields, owner, has_members=has_members, is_called=is_called), loc=loc)


def _describe(name: str, fields: Iterable[str], owner: str, *, has_members: bool, is_called: bool) -> str:
    method = f"\n  what to do: call its member function by lib.type({owner!r}).method({name!r}), made before the kernel"
    if not has_members:
        record = (
            f"\n  what to do: make the array with lib.record({owner!r}), whose fields are the members;"
            f"\n    or let a lambda refer to the member: lib.expr('[]({owner}& x) {{ return x.{name}; }}')"
        )
        return f"kernels know no members of an object of {owner}, got {name!r}{method if is_called else record}"
    meant = did_you_mean(name, fields)
    todo = method if owner and is_called and not meant else ""
    return f"a record has no field {name!r}{meant}\n  its fields: {', '.join(fields)}{todo}"
