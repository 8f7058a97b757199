# SPDX-License-Identifier: BSD-2-Clause
"""The device functions that a front end inlines before types are known: who calls whom, and in which of them a call
is. Their lines stay as they are, in the code of the function that they are inlined into."""

from __future__ import annotations

import copy
import types as pytypes
from typing import Any

from ..protocol.ask import AskedCall
from ..protocol.call_sites import INLINED
from .function_code import FunctionCode

_KEY = "numba_cuda_autolink_inlined"


class InlinedFunctions:
    """The functions that are inlined into one, and the calls between them, with their lines."""

    def __init__(self) -> None:
        self._calls: list[tuple[pytypes.FunctionType, int, Any]] = []
        self._codes: dict[pytypes.FunctionType | None, FunctionCode] = {}

    @classmethod
    def of(cls, func_id: Any) -> InlinedFunctions:
        """Return those of the function that is compiled as *func_id*, a ``FunctionIdentity``."""
        return vars(func_id).setdefault(_KEY, cls())

    def note(self, caller_ir: Any, loc: Any, callee_ir: Any) -> None:
        """Note that *callee_ir* became a part of *caller_ir*, in place of the call at *loc*."""
        callee = callee_ir.func_id
        self._calls.append((getattr(loc, INLINED, caller_ir.func_id.func), loc.line, callee))
        self._calls += InlinedFunctions.of(callee)._calls

    @staticmethod
    def mark_calls(callee_ir: Any, blocks: Any) -> None:
        """Let the calls in these *blocks*, which *callee_ir* became, be in that function."""
        callee = callee_ir.func_id
        for block in blocks.values():
            for call in block.find_exprs("call"):
                if not hasattr(call.loc, INLINED):
                    call.loc = copy.copy(call.loc)
                    setattr(call.loc, INLINED, callee.func)

    def add_to(self, external: FunctionCode, function: pytypes.FunctionType) -> None:
        """Note in *external*, the code of *function*, what it calls."""
        self._codes = {function: external}
        for _, _, callee in self._calls:
            if callee.func not in self._codes:
                code = self._codes[callee.func] = FunctionCode(callee.func_qualname, external.target, external.timeline)
                code.calls.filename, code.calls.line = callee.filename, callee.firstlineno
                code.calls.note_compiled(callee.func, ())
                code.calls.options = (("inline", "always"),)
        for caller, line, callee in sorted(self._calls, key=lambda call: call[1]):
            self._codes.get(caller, external).calls.add(self._codes[callee.func], line=line)

    def add_call(self, external: FunctionCode, call: AskedCall, loc: Any) -> None:
        """Link what the object that is called at *loc* provides into *external*, as called by the function there."""
        code = self._code_at(loc, external)
        code.add_call(call)
        if code is not external:
            external.add_needed(code)

    def add_callee(self, external: FunctionCode, callee: FunctionCode, loc: Any) -> None:
        """Link what *callee* needs into *external*, as called at *loc* by the function there."""
        code = self._code_at(loc, external)
        code.add_callee(callee, getattr(loc, "line", None))
        if code is not external:
            external.add_needed(code)

    def _code_at(self, loc: Any, external: FunctionCode) -> FunctionCode:
        return self._codes.get(getattr(loc, INLINED, None), external)
