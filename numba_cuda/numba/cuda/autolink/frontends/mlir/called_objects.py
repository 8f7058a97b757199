# SPDX-License-Identifier: BSD-2-Clause
"""The types of device callables in numba-cuda-mlir: the typing of their calls, and their attributes as constants."""

from __future__ import annotations

import operator
import types as pytypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from numba.cuda.core.errors import NumbaError
from numba_cuda_mlir import cuda
from numba_cuda_mlir._mlir import ir as mlir
from numba_cuda_mlir.descriptor import MLIRDispatcher, mlir_target
from numba_cuda_mlir.extending import lowering_registry, typing_registry
from numba_cuda_mlir.models import OpaqueModel, mlir_data_manager
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core.consts import ConstantInference
from numba_cuda_mlir.numba_cuda.core.errors import NumbaError as MLIRError
from numba_cuda_mlir.numba_cuda.core.errors import TypingError
from numba_cuda_mlir.numba_cuda.core.rewrites import Rewrite, register_rewrite
from numba_cuda_mlir.numba_cuda.datamodel.registry import register
from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate, AttributeTemplate, Signature, signature
from numba_cuda_mlir.numba_cuda.typing.typeof import typeof, typeof_impl

from ...compilation.context import current_target
from ...device_callable.arguments import CallArguments
from ...device_callable.base_class import BoundDeviceMethod, DeviceCallable
from ...device_callable.constant_expressions import COMPARISONS, ConstantsAsGlobals, Refused, attribute, value_of_types
from ...device_callable.object_type import DeviceCallableType, PythonBody
from ...protocol.callee import takes_core_types
from .type_translation import MLIR, from_core, to_core


class Calls(DeviceCallableType):
    """The typing of the calls of one device callable in numba-cuda-mlir: its hook gets that front end's types."""

    def declared_call(self, arguments: CallArguments) -> Any:
        obj = self.numba_cuda_link_object
        return arguments.apply(obj.__numba_cuda_call__, None if takes_core_types(obj) else from_core)

    def body_of(self, arguments: CallArguments, returned: Any) -> Any:
        return Body.of(self.numba_cuda_link_object, arguments, returned)


class _Conversions:
    """A typing context of numba-cuda-mlir, as far as the core asks it: about numba-cuda's types."""

    def __init__(self, context: Any):
        self._context = context

    def can_convert(self, given: Any, goal: Any) -> Any:
        return self._context.can_convert(from_core(given), from_core(goal))


class CalledObjectType(types.Callable, types.NoneType):
    """The type of one `DeviceCallable`, or of one method of one, in numba-cuda-mlir.

    It is a ``NoneType``, so that device functions that an object is passed to have no parameter for it.
    """

    def __init__(self, core: DeviceCallableType):
        self.core = core
        self.calls = Calls(core.numba_cuda_link_object)
        super().__init__(name=core.name)

    @classmethod
    def of(cls, obj: Any) -> CalledObjectType:
        core = DeviceCallableType.of(obj)
        found: CalledObjectType | None = core.elsewhere.get("numba-cuda-mlir")
        return found or core.elsewhere.setdefault("numba-cuda-mlir", cls(core))

    @property
    def key(self) -> Any:
        return id(self)

    @property
    def numba_cuda_link_object(self) -> Any:
        """The object that is called: the instance, or its bound method."""
        return self.core.numba_cuda_link_object

    def __reduce__(self) -> Any:
        return CalledObjectType.of, (self.numba_cuda_link_object,)

    def __deepcopy__(self, memo: Any) -> CalledObjectType:
        # literal_unroll copies the IR, types and all.
        return self

    def unify(self, typingctx: Any, other: Any) -> Any:
        """Return the type itself for another use of the object; with anything else it has no type in common."""
        return self if other == self else None

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        named = {name: to_core(each) for name, each in dict(kws).items()}
        try:
            typed = self.calls.get_call_type(_Conversions(context), tuple(map(to_core, args)), named)
            returns = from_core(typed.return_type)
        except (NumbaError, TypeError) as error:
            raise TypingError(str(error)) from error
        return Signature(returns, tuple(map(from_core, typed.args)), recvr=None, pysig=typed.pysig)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        """Return a key, under which nothing is registered: `lowering` lowers all calls."""
        return CalledObjectType


register(mlir_data_manager, CalledObjectType)(OpaqueModel)


@typeof_impl.register(DeviceCallable)
@typeof_impl.register(BoundDeviceMethod)
def _typeof(obj: Any, context: Any) -> CalledObjectType:
    try:
        return CalledObjectType.of(obj)
    except NumbaError as error:
        raise TypingError(str(error)) from error


def is_called_object(value: Any) -> bool:
    """Return whether a *value* of the lowering is a called object or its placeholder, rather than a value of MLIR."""
    return isinstance(value, (DeviceCallable, BoundDeviceMethod, mlir.NoneType))


def constant_of_attribute(owner: Any, name: str) -> tuple[Any, Any]:
    """Return the attribute *name* of the object *owner* as a constant, and its type in numba-cuda-mlir."""
    value = getattr(owner, name, None)
    if type(value).__module__.startswith("numba_cuda_mlir."):  # a device function or a type of that front end
        return value, typeof(value)
    value, numba_type = attribute(owner, name)
    return value, from_core(numba_type)


@typing_registry.register_attr
class _Attributes(AttributeTemplate):
    key = CalledObjectType

    def generic_resolve(self, typ: Any, name: str) -> Any:
        if name.startswith("__"):  # Numba looks for __call__ and other names that may be missing
            return None
        try:
            return constant_of_attribute(typ.numba_cuda_link_object, name)[1]
        except (NumbaError, TypeError) as error:
            raise TypingError(str(error)) from error


@register_rewrite("before-inference")
class _ConstantsAsGlobals(ConstantsAsGlobals, Rewrite):
    """The rewrite of numba-cuda-mlir."""

    vocabulary = MLIR
    constant_inference = ConstantInference


@typeof_impl.register(Refused)
def _typeof(refused: Refused, context: Any) -> NoReturn:
    raise ValueError(refused.why)  # which Numba turns into an error at the line of the expression


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
    """Let numba-cuda-mlir know what is registered here and in `object_type`, if it has begun to compile already."""
    if mlir_target._typingctx_initialized:
        mlir_target.refresh_registries()


@dataclass(frozen=True, eq=False)
class Body(PythonBody):
    """A Python function that an object returned, compiled by numba-cuda-mlir."""

    @classmethod
    def of(cls, obj: Any, arguments: CallArguments, returned: Any) -> Body | None:
        if isinstance(returned, MLIRDispatcher):
            return cls(obj, arguments, returned.py_func, returned) if returned.targetoptions["device"] else None
        if not isinstance(function := getattr(returned, "py_func", returned), pytypes.FunctionType):
            return None
        target = current_target()
        options = {"fastmath": target.fastmath, "debug": target.debug, "lineinfo": target.lineinfo}
        return cls(obj, arguments, function, cuda.jit(device=True, **options)(function))

    def compile(self) -> Any:
        """Return the function's call template, compiled for the types of the arguments."""
        try:
            template, _, args, _ = self.dispatcher.get_call_template(tuple(map(from_core, self.arguments.types)), {})
        except MLIRError as error:
            raise TypeError(str(error)) from error
        return next(case for case in template.cases if tuple(case.args) == tuple(args))

    @property
    def returns(self) -> Any:
        return to_core(self.compile().return_type)
