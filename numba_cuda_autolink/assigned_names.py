# SPDX-License-Identifier: BSD-2-Clause
"""The variable that holds what a call returns, as the user's code says it."""

from __future__ import annotations

import bisect
import functools
from types import CodeType, FrameType
from typing import NamedTuple

from .short_tracebacks import frame_of_user, is_frame_of_compiler

_ON_THE_WAY = ("COPY", "DUP_TOP", "EXTENDED_ARG", "NOP")  # between a call and the instruction that stores its result


class Assigned(NamedTuple):
    """The *variable* that holds an object, empty if it is none, and the *filename* and *line* of the user's call that
    made the object."""

    variable: str = ""
    filename: str = ""
    line: int = 0


def find_assigned() -> Assigned:
    """Return where the user's code puts what the call in progress returns: the variable that the next instruction
    stores it in; of a function that returns it, that of its caller."""
    frame: FrameType | None = frame_of_user()
    if frame is None:
        return Assigned()
    place = frame.f_code.co_filename, frame.f_lineno
    while frame is not None and not is_frame_of_compiler(frame):
        offsets, instructions = _instructions(frame.f_code)
        name, argument = instructions[bisect.bisect_right(offsets, frame.f_lasti)]
        if name.startswith("STORE_") and isinstance(argument, str):
            return Assigned(argument, *place)
        if name != "RETURN_VALUE":
            break
        frame = frame.f_back
    return Assigned("", *place)


@functools.lru_cache(maxsize=16)
def _instructions(code: CodeType) -> tuple[list[int], list[tuple[str, object]]]:
    """Return the offsets of the instructions of *code*, and their names with their arguments, one more at the end."""
    import dis

    found = [each for each in dis.get_instructions(code) if each.opname not in _ON_THE_WAY]
    # An instruction of Python 3.13 that stores in a variable and does more has a pair of names.
    stores = [each.opname.startswith("STORE_") and isinstance(each.argval, tuple) for each in found]
    read = [(each.opname, each.argval[0] if pair else each.argval) for each, pair in zip(found, stores, strict=True)]
    return [each.offset for each in found], [*read, ("", None)]
