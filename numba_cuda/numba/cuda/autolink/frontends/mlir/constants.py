# SPDX-License-Identifier: BSD-2-Clause
"""Expressions of device callables that are constants of kernels of numba-cuda-mlir."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

from numba.cuda.core.errors import NumbaError
from numba_cuda_mlir.descriptor import mlir_target
from numba_cuda_mlir.extending import lowering_registry, typing_registry
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core import ir
from numba_cuda_mlir.numba_cuda.core.consts import ConstantInference
from numba_cuda_mlir.numba_cuda.core.errors import LoweringError, TypingError
from numba_cuda_mlir.numba_cuda.core.rewrites import Rewrite, register_rewrite
from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate, signature
from numba_cuda_mlir.numba_cuda.typing.typeof import typeof_impl

from ...device_callable.constant_expressions import COMPARISONS, ConstantsAsGlobals, Refused, value_of_types
from .called_objects import CalledObjectType, constant_of_attribute
from .type_translation import from_core, to_core
from .words import MLIR


def _make_global(name: str, value: Any, read: Any, loc: Any) -> Any:
    return ir.Global(f"{name} of an object", value, loc)


@register_rewrite("before-inference")
class _ConstantsAsGlobals(ConstantsAsGlobals, Rewrite):
    """The rewrite of numba-cuda-mlir."""

    vocabulary = MLIR
    constant_inference = ConstantInference
    make_global = staticmethod(_make_global)


@typeof_impl.register(Refused)
def _typeof(refused: Refused, context: Any) -> NoReturn:
    raise ValueError(refused.why)  # which Numba turns into an error at the line of the expression


@lowering_registry.lower_getattr_generic(CalledObjectType)
def _getattr(context: Any, builder: Any, target: Any, value: Any, name: str) -> None:
    constant, _ = constant_of_attribute(builder.get_numba_type(value.name).called_object(), name)
    builder.store_var(target, constant)


@lowering_registry.lower_setattr_generic(CalledObjectType)
def _setattr(context: Any, builder: Any, sig: Any, args: Any, name: str) -> NoReturn:
    raise LoweringError(
        f"cannot assign to the attribute {name!r} in a kernel: attributes of device callables are constants\n"
        f"  object: {sig.args[0]}"
    )


def _register(function: Callable[..., Any], count: int) -> None:
    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            if not any(isinstance(each, CalledObjectType) for each in args):
                return None
            try:
                found = value_of_types(function, tuple(map(to_core, args)))
            except NumbaError as error:
                raise TypingError(str(error)) from error
            return None if found is None else signature(from_core(found[1]), *args)

    def lower(builder: Any, target: Any, args: Any, kws: Any) -> None:
        found = value_of_types(function, [to_core(builder.get_numba_type(each.name)) for each in args])
        assert found is not None
        builder.store_var(target, found[0])

    typing_registry.register_global(function)(Template)
    others = [types.Any] * (count - 1)
    lowering_registry.lower(function, CalledObjectType, *others)(lower)
    if function in COMPARISONS:
        lowering_registry.lower(function, *others, CalledObjectType)(lower)
        lowering_registry.lower(function, CalledObjectType, CalledObjectType)(lower)


for _function, _count in ((len, 1), (operator.getitem, 2), *((each, 2) for each in COMPARISONS)):
    _register(_function, _count)


def refresh_typing() -> None:
    """Let numba-cuda-mlir know what is registered here and in `object_types`, if it has begun to compile already."""
    if mlir_target._typingctx_initialized:
        mlir_target.refresh_registries()
