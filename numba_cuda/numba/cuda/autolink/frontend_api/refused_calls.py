# SPDX-License-Identifier: BSD-2-Clause
"""Which call of a line type inference refused: its place gets the column where it ends, which no other call has."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

from numba_cuda_autolink.source_locations import code_of_file

# The offset of an instruction, in the name of the variable with its result; of a function that is inlined, too.
_OFFSET = re.compile(r"(?:\$|.*_v\d+__v)(\d+)[a-z]")


def note_columns(inferer: Any) -> None:
    """Note the columns of the calls that an *inferer* has refused, for the errors of its next run."""
    for call, constraint in inferer.calls:
        if getattr(call, "op", None) == "call" and constraint.signature is None and _has_types(inferer, constraint):
            columns = _last_columns(inferer.func_ir.func_id.code, constraint)
            constraint.loc = constraint.loc.with_lineno(constraint.loc.line, next(columns, None))


def _has_types(inferer: Any, constraint: Any) -> bool:
    """Return whether all arguments have types, so that it is this call which is refused, and not one in it."""
    return all(inferer.typevars[each.name].defined for each in (*constraint.args, *dict(constraint.kws).values()))


def _last_columns(code: CodeType, constraint: Any) -> Iterator[int]:
    """Yield the column, in bytes, where a call ends that is in one line of the function with *code*, or of one that is
    inlined in it. Python 3.10 knows none."""
    offset, line = _OFFSET.match(constraint.target), constraint.loc.line
    if offset is None or sys.version_info < (3, 11):
        return
    for each in itertools.chain([code], code_of_file(constraint.loc.filename)):
        positions = itertools.islice(each.co_positions(), int(offset[1]) // 2, None)
        first, last, _, column = next(positions, (None, None, None, None))
        if first == last == line and column is not None:
            yield column
