# SPDX-License-Identifier: BSD-2-Clause
"""What stands for arguments in the C++ text of a call, in characters that no C++ text has."""

from __future__ import annotations

from collections.abc import Sequence

# All arguments, or the first and the others; and the value of an expression that is called.
ALL, FIRST, REST, MADE = "\u27e8all\u27e9", "\u27e8first\u27e9", "\u27e8rest\u27e9", "\u27e8made\u27e9"


def substituted(text: str, names: Sequence[str]) -> str:
    """Return *text* with the arguments *names* in place of `ALL`, `FIRST` and `REST`."""
    text = text.replace(ALL, ", ".join(names)).replace(REST, ", ".join(names[1:]))
    return text.replace(FIRST, names[0]) if names else text
