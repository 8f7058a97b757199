# SPDX-License-Identifier: BSD-2-Clause
"""Placeholders in C++ text: for the arguments of a call, and for what a question is about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# All arguments, or the first and the others; and the function object that is called. No C++ text has these characters.
ALL, FIRST, REST, CALLEE = "\u27e8all\u27e9", "\u27e8first\u27e9", "\u27e8rest\u27e9", "\u27e8callee\u27e9"
_NAMED = re.compile(r"@(\w+?)@")


def with_arguments(text: str, arguments: Sequence[str]) -> str:
    """Return *text* with *arguments* in place of `ALL`, `FIRST` and `REST`."""
    text = text.replace(ALL, ", ".join(arguments)).replace(REST, ", ".join(arguments[1:]))
    return text.replace(FIRST, arguments[0]) if arguments else text


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return *template* with ``@name@`` replaced by the value of that name. What is filled in is not read again."""
    return _NAMED.sub(lambda found: values[found[1]], template)
