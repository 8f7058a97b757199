# SPDX-License-Identifier: BSD-2-Clause
"""Types and variables in messages as kernels have them, not as front ends name them: ``3`` for ``Literal[int](3)``."""

from __future__ import annotations

import re

_TEXT = re.compile(r"Literal\[str\]\((.*?)\)")
_NUMBER = re.compile(r"Literal\[\w+\]\((.*?)\)")
_ALIKE = re.compile(r"\bUniTuple\(([\w.'-]+) x (\d+)\)")
_TUPLE = re.compile(r"\bTuple\(")
_INITIAL = re.compile(r"<iv=[^>\n]*>")  # the elements of a list, as far as a front end knows them
_VERSION = re.compile(r"'([^\W\d]\w*)\.\d+'")  # of a variable that is assigned several times
_MOST_ELEMENTS = 4  # of a tuple that are written one by one


def readable_types(text: str) -> str:
    """Return *text* with constants, tuples and variables as Python writes them."""
    text = _NUMBER.sub(r"\1", _TEXT.sub(r"'\1'", text))
    return _VERSION.sub(r"'\1'", _INITIAL.sub("", _TUPLE.sub("(", _ALIKE.sub(_write_tuple, text))))


def _write_tuple(found: re.Match[str]) -> str:
    count = int(found[2])
    if not 1 < count <= _MOST_ELEMENTS:
        return found[0]
    return f"({', '.join([found[1]] * count)})"
