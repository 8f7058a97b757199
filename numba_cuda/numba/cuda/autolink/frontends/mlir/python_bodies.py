# SPDX-License-Identifier: BSD-2-Clause
"""Python bodies of calls in numba-cuda-mlir: a device function of that front end."""

from __future__ import annotations

import types as pytypes
from dataclasses import dataclass
from typing import Any

from numba_cuda_mlir import cuda
from numba_cuda_mlir.descriptor import MLIRDispatcher
from numba_cuda_mlir.numba_cuda.core.errors import NumbaError as MLIRError

from ...compilation.context import current_target
from ...device_callable.arguments import CallArguments
from ...device_callable.python_bodies import PythonBody
from .type_translation import from_core, to_core


@dataclass(frozen=True, eq=False)
class Body(PythonBody):
    """A Python function that an object returned, compiled by numba-cuda-mlir."""

    @classmethod
    def of(cls, obj: Any, arguments: CallArguments, returned: Any) -> Body | None:
        """Return the body that a ``__numba_cuda_call__`` *returned*; None if it is not a function."""
        if isinstance(returned, MLIRDispatcher):
            return cls(obj, arguments, returned.py_func, returned) if returned.targetoptions["device"] else None
        if not isinstance(function := getattr(returned, "py_func", returned), pytypes.FunctionType):
            return None
        target = current_target()
        options = {"fastmath": target.fastmath, "debug": target.debug, "lineinfo": target.lineinfo}
        return cls(obj, arguments, function, cuda.jit(device=True, **options)(function))

    def compiled(self) -> Any:
        """Return the function's call template, compiled for the types of the arguments."""
        try:
            template, _, args, _ = self.dispatcher.get_call_template(tuple(map(from_core, self.arguments.types)), {})
        except MLIRError as error:
            raise TypeError(str(error)) from error
        return next(case for case in template.cases if tuple(case.args) == tuple(args))

    @property
    def returns(self) -> Any:
        """The type of its result, as numba-cuda's."""
        return to_core(self.compiled().return_type)
