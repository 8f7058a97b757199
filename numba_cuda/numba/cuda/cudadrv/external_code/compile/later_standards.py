# SPDX-License-Identifier: BSD-2-Clause
"""What a source has of a C++ standard that is later than the one for which it is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_WORDS = re.compile(r"(?:concept|requires|consteval|constinit|char8_t)\b")
_COROUTINES = re.compile(r"co_(?:await|return|yield)\b")
# Of errors whose text says it, and of such a text where NVRTC points at these words.
_TEXT = re.compile(r"\bC\+\+20\b|a nontype template parameter may not have class type")
_MARKED = {
    '"auto" is not allowed here': re.compile(r"auto\b"),  # of a parameter
    "expected an expression": re.compile(r"\.\w+ *="),  # {.x = 1}
    "expected an identifier": re.compile(r"enum\b"),  # using enum
}
_CONCEPT = re.compile(r'argument list for variable template "cuda::std::')  # of <cuda/std/concepts>
_THREE_WAY = re.compile(r"no valid std::\w+_ordering type found")
_BEFORE_20 = re.compile(r"(?:c|gnu)\+\+(?:03|11|14|17)")


def explain_later(text: str, marked: str, line: str, options: Iterable[tuple[str, Any]]) -> str:
    """Return what to do about an error with this *text*, if its *line* has what C++20 alone has, or no device code;
    empty for another error. *marked* is the rest of the line, at which NVRTC points; *options* are the names and values
    of the compile options."""
    if _THREE_WAY.match(text) or marked.startswith("operator<=>") or (marked[:1] == ">" and f"<={marked}" in line):
        return "write < and == for <=>: device code has no <compare>"
    if _COROUTINES.match(marked):
        return "write a loop, or an object that keeps the state: device code has no coroutines"
    standard = dict(options).get("std") or "c++17"
    pattern = _MARKED.get(text)
    is_later = _WORDS.match(marked) or _TEXT.search(text) or (pattern and pattern.match(marked))
    if not _BEFORE_20.fullmatch(standard) or not (is_later or (_CONCEPT.match(text) and "template" in line)):
        return ""
    return 'compile it as C++20: options={"std": "c++20"}'
