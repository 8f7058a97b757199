# SPDX-License-Identifier: BSD-2-Clause
"""Several texts of PTX as one: which function or variable a name stands for, and the order that numbers them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

from .parser import Function, Text, Variable
from .state import FIRST_FUNCTION_ADDRESS


class LinkedTexts:
    """The functions and variables of *texts*. Names that are not visible belong to their text alone. *make_lined*
    returns the same texts with the lines of their sources."""

    def __init__(self, texts: Sequence[str], make_lined: Callable[[], Sequence[str]] | None = None):
        self._make_lined = make_lined
        self.texts: list[Text] = [Text(text, number) for number, text in enumerate(texts)]
        self.visible_functions: dict[str, Function] = {}
        self.visible_variables: dict[str, tuple[int, Variable]] = {}
        for text in self.texts:
            for name, function in text.functions.items():
                if function.code and (function.is_visible or function.is_entry):
                    self.visible_functions.setdefault(name, function)
            for name, variable in text.variables.items():
                known = self.visible_variables.get(name)
                if variable.is_visible and (known is None or (known[1].is_extern and not variable.is_extern)):
                    self.visible_variables[name] = (text.number, variable)
        self.functions: list[Function] = [f for text in self.texts for f in text.functions.values() if f.code]
        self.function_numbers = {id(f): k for k, f in enumerate(self.functions)}
        self.variables: list[tuple[int, Variable]] = [
            (text.number, variable)
            for text in self.texts
            for variable in text.variables.values()
            if variable.space in ("global", "const") and self.find_variable(text.number, variable.name)[1] is variable
        ]
        self.variable_numbers = {(number, v.name): k for k, (number, v) in enumerate(self.variables)}

    def find_function(self, text: int, name: str) -> Function | None:
        """Return the function with code that *name* stands for in *text*."""
        name = self.texts[text].aliases.get(name, name)
        own = self.texts[text].functions.get(name)
        if own is not None and own.code:
            return self.visible_functions.get(name, own) if own.is_weak else own
        return self.visible_functions.get(name)

    def function_address(self, function: Function) -> int:
        """Return what stands for *function* where its address is taken."""
        return FIRST_FUNCTION_ADDRESS + 16 * self.function_numbers[id(function)]

    def find_variable(self, text: int, name: str) -> tuple[int, Variable | None]:
        """Return the variable that *name* stands for in *text*, and the text that defines it."""
        own = self.texts[text].variables.get(name)
        if own is not None and not own.is_visible:
            return text, own
        return self.visible_variables.get(name, (text, own))

    def with_lines(self) -> LinkedTexts:
        """Return the texts with the lines of their sources, whose instructions have the same numbers; else these."""
        if self._make_lined is None or any(text.locations for text in self.texts):
            return self
        try:
            lined = LinkedTexts(self._make_lined())
        except Exception:  # of the user's code, which has run well before
            return self
        return lined if lined._opcodes() == self._opcodes() else self

    def _opcodes(self) -> list[list[str]]:
        return [[i.opcode for function in text.functions.values() for i in function.code] for text in self.texts]

    def list_reachable(self, kernel: Function) -> list[Function]:
        """Return *kernel* and all functions that it may call, in order of discovery."""
        found: dict[int, Function] = {}
        pending = [kernel]
        while pending:
            function = pending.pop()
            if id(function) not in found:
                found[id(function)] = function
                named = (self.find_function(function.text, name) for name in function.names)
                pending += [other for other in named if other is not None and not other.is_entry]
                pending += self.addressed if function.calls_pointers else ()
        return list(found.values())

    @functools.cached_property
    def addressed(self) -> list[Function]:
        """The functions whose addresses variables hold."""
        words = ((text, word) for text, variable in self.variables for word in variable.initial)
        names = ((text, name) for text, word in words for name in re.findall(r"[A-Za-z_$][\w$]*", word))
        return [function for each in names if (function := self.find_function(*each)) is not None]
