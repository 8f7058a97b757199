# SPDX-License-Identifier: BSD-2-Clause
"""Python bodies: a call may stand for a Python function instead of a C function, as that of an overload does."""

from __future__ import annotations

import types as pytypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numba import cuda

from ..compilation.context import current_target
from .arguments import CallArguments


@dataclass(frozen=True, eq=False)
class PythonBody:
    """The Python function that *obj* returned for a call with these *arguments*, as a device function."""

    obj: Any
    arguments: CallArguments
    function: pytypes.FunctionType
    dispatcher: Any

    @classmethod
    def of(cls, obj: Any, arguments: CallArguments, returned: Any) -> PythonBody | None:
        if isinstance(getattr(returned, "py_func", None), pytypes.FunctionType):
            function, dispatcher = returned.py_func, returned
            if not dispatcher.targetoptions.get("device"):
                return None
        elif isinstance(returned, pytypes.FunctionType):
            function, target = returned, current_target()
            options = {"fastmath": target.fastmath, "debug": target.debug, "lineinfo": target.lineinfo}
            dispatcher = cuda.jit(device=True, opt=not target.debug, **options)(returned)
        else:
            return None
        return cls(obj, arguments, function, dispatcher)

    def compile(self) -> Any:
        return self.dispatcher.compile_device(self.arguments.types)

    @property
    def returns(self) -> Any:
        return self.compile().signature.return_type

    def lower(self, context: Any, builder: Any, argtypes: Sequence[Any], values: Sequence[Any]) -> Any:
        compiled = self.compile()
        taken = compiled.signature.args
        cast = [context.cast(builder, *each) for each in zip(values, argtypes, taken, strict=True)]
        context.add_linking_libs([compiled.library])
        return context.call_internal(builder, compiled.fndesc, compiled.signature, cast)
