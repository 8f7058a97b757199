# SPDX-License-Identifier: BSD-2-Clause
"""Which call of a line was refused: its place gets the column where it ends, which no other call has."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from typing import Any

from numba_cuda_autolink.source_syntax import code_of_file

# The offset of an instruction, in the name of the variable with its result; of a function that is inlined, too.
_OFFSET = re.compile(r"(?:\$|.*_v\d+__v)(\d+)[a-z]")


def note_columns(inferer: Any) -> None:
    """Note the columns of the calls that an *inferer* has refused, for the errors of its next run."""
    for call, constraint in inferer.calls:
        if getattr(call, "op", None) == "call" and constraint.signature is None and _has_types(inferer, constraint):
            columns = _last_columns(inferer.func_ir, constraint.target, constraint.loc)
            constraint.loc = constraint.loc.with_lineno(constraint.loc.line, next(columns, None))


def last_column(func_ir: Any, call: Any) -> int | None:
    """Return the column, in bytes, where the IR expression *call* of a function ends; None if it is not known."""
    statements = itertools.chain.from_iterable(block.body for block in func_ir.blocks.values())
    targets = (each.target.name for each in statements if getattr(each, "value", None) is call)
    return next((column for name in targets for column in _last_columns(func_ir, name, call.loc)), None)


def _has_types(inferer: Any, constraint: Any) -> bool:
    """Return whether all arguments have types, so that it is this call which is refused, and not one in it."""
    return all(inferer.typevars[each.name].defined for each in (*constraint.args, *dict(constraint.kws).values()))


def _last_columns(func_ir: Any, target: str, loc: Any) -> Iterator[int]:
    """Yield the column, in bytes, where a call at *loc* ends whose result is the variable *target*, of the function or
    of one that is inlined in it. Python 3.10 knows none."""
    offset, line = _OFFSET.match(target), loc.line
    if offset is None or sys.version_info < (3, 11):
        return
    for each in itertools.chain([func_ir.func_id.code], code_of_file(loc.filename)):
        positions = itertools.islice(each.co_positions(), int(offset[1]) // 2, None)
        first, _, _, column = next(positions, (None, None, None, None))
        if first == line and column is not None:
            yield column
