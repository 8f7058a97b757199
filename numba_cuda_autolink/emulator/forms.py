# SPDX-License-Identifier: BSD-2-Clause
"""The table of the instructions that the emulator has: a pattern for everything after the name, and what lowers it.

A form that no pattern matches from end to end is refused, so no modifier is ever ignored by accident.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TypeAlias

from .function_builder import FunctionBuilder
from .parser import Instruction

Modifiers: TypeAlias = "dict[str, str]"
Handler: TypeAlias = "Callable[[FunctionBuilder, Instruction, Modifiers], None]"

_FORMS: dict[str, list[tuple[str, Handler]]] = {}


def form(names: str, pattern: str) -> Callable[[Handler], Handler]:
    """Register what lowers the instructions *names* (separated by spaces) whose modifiers match *pattern*."""

    def register(handler: Handler) -> Handler:
        for name in names.split():
            _FORMS.setdefault(name, []).append((pattern, handler))
        return handler

    return register


@functools.cache
def find_form(opcode: str) -> tuple[Handler, Modifiers] | None:
    """Return what lowers *opcode* and the named groups of its modifiers, or None."""
    name, dot, modifiers = opcode.partition(".")
    for pattern, handler in _FORMS.get(name, ()):
        if found := re.fullmatch(pattern, dot + modifiers):
            return handler, {"name": name, **found.groupdict("")}
    return None
