# SPDX-License-Identifier: BSD-2-Clause
"""The table of the instructions that the emulator has: a pattern for everything after the name, and what lowers it.

A form that no pattern matches from end to end is refused, so no modifier is ever ignored by accident.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from .function_builder import FunctionBuilder
from .native import compile_native, native
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


def computes(result: str, *types: str) -> Callable[[Callable[..., str]], Handler]:
    """Make a handler of a function of values: of operands of these *types* (the last is also that of more operands;
    default: as the *result*), whose *result* it returns. A type is one of PTX, or a modifier."""

    def decorate(compute: Callable[..., str]) -> Handler:
        def handle(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
            names = [m.get(name, name) for name in types or (result,)]
            values = map(f.value, i.operands[1:], itertools.chain(names, itertools.repeat(names[-1])))
            f.assign(i.operands[0], m.get(result, result), compute(f, m, *values))

        return handle

    return decorate


def instruction(*types: str, opcode: str = "") -> Callable[[Any], Any]:
    """Mark a native function for each of the *types*, which is an instruction of its own name or *opcode*."""

    def register(function: Any) -> Any:
        name, _, modifier = (opcode or function.__name__).partition(".")

        @form(name, rf"{modifier and rf'.{modifier}'}\.(?P<type>{'|'.join(types)})")
        def handle(f: FunctionBuilder, i: Instruction, m: Modifiers) -> None:
            compiled = compile_native(f"{function.__name__}_{m['type']}")
            types = [type.replace("i", "s") for type in (compiled.returns, *compiled.parameters)]
            target, *operands = i.operands
            values = map(f.value, operands, types[1:])
            f.assign(target, types[0], f.call(compiled.name, *values))

        return native(*types)(function)

    return register


@functools.cache
def find_form(opcode: str) -> tuple[Handler, Modifiers] | None:
    """Return what lowers *opcode* and the named groups of its modifiers, or None."""
    name, dot, modifiers = re.sub(r"f32\.ftz$", "ftz.f32", opcode).partition(".")  # cuRAND has this order
    for pattern, handler in _FORMS.get(name, ()):
        if found := re.fullmatch(pattern, dot + modifiers):
            return handler, {"name": name, **found.groupdict("")}
    return None
