# SPDX-License-Identifier: BSD-2-Clause
"""The Numba types of device callables and their methods: one type for each object, and the typing of its calls."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, NoReturn

from numba.cuda import types
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.safe_repr import safe_repr
from numba.cuda.cudadrv.external_code.target import Target
from numba.cuda.datamodel import models
from numba.cuda.extending import register_model, typeof_impl
from numba.cuda.typing.templates import Signature
from numba.cuda.typing.typeof import Purpose

from ..compilation import current_target
from ..protocol.frames import raised_by_user_code
from .arguments import ArgumentError, CallArguments
from .extern import Extern, Prototype, prototype
from .objects import BoundDeviceMethod, DeviceCallable


class _Identity:
    """An object, or a method of one, as a key: by identity, and without keeping it alive."""

    def __init__(self, obj: Any, method: Any):
        self._ref = weakref.ref(obj)
        self._hash = hash((id(obj), id(method)))
        self._method = method

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, _Identity):
            return self is other
        return self._method is other._method and self._ref() is not None and self._ref() is other._ref()

    def __hash__(self) -> int:
        return self._hash

    def get(self) -> Any:
        """The object or its bound method; None if the object no longer exists."""
        obj = self._ref()
        return obj if obj is None or self._method is None else self._method.__get__(obj, type(obj))


_numbers = itertools.count()


class DeviceCallableType(types.Callable, types.Opaque):
    """The type of one `DeviceCallable`, or of one method of one.

    It does not keep the object alive, because Numba's own tables keep types for ever.
    """

    def __init__(self, obj: Any):
        if isinstance(obj, BoundDeviceMethod):
            self._identity = _Identity(obj.__self__, obj.__func__)
        else:
            self._identity = _Identity(obj, None)
        self._calls: dict[Any, tuple[Signature, Prototype]] = {}
        self._as_written: dict[Any, tuple[Signature, Prototype]] = {}
        self._arguments: dict[tuple[Any, ...], CallArguments] = {}
        self._number: int | None = None
        super().__init__(name=safe_repr(obj))

    @property
    def key(self) -> Any:
        """The object's identity."""
        return self._identity

    @property
    def numba_cuda_link_object(self) -> Any:
        """The Python object that is called: the instance, or its bound method.

        Any Numba type may have an attribute of this name. Call sites are found by it.
        """
        obj = self._identity.get()
        if obj is None:
            raise TypingError(f"{self.name} no longer exists: keep a reference to it while kernels are compiled")
        return obj

    @property
    def mangling_args(self) -> tuple[str, tuple[Any, ...]]:
        """Numbered in the order of use: the same program gives the same symbols, which an address would not."""
        if self._number is None:
            self._number = next(_numbers)
        return type(self).__name__, (self._number,)

    def __reduce__(self) -> Any:
        return DeviceCallableType, (self.numba_cuda_link_object,)

    def __deepcopy__(self, memo: Any) -> DeviceCallableType:
        # literal_unroll copies the IR, types and all.
        return self

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Signature:
        """The signature of a call; raises `TypingError` where there is none."""
        return self._typed(context, args, kws)[0]

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """None are known before a call."""
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        """One implementation lowers the calls of all device callables."""
        return DeviceCallableType

    def prototype(self, context: Any, argtypes: Any) -> Prototype:
        """The C function for a call with final *argtypes*, one for each parameter of its signature."""
        return self._call(context, self._arguments[tuple(argtypes)])[1]

    def _typed(self, context: Any, args: Any, kws: Any) -> tuple[Signature, Prototype]:
        target = _target()
        as_written = tuple(args), tuple(dict(kws).items()), target
        # Type inference asks again and again.
        if as_written not in self._as_written:
            try:
                arguments = CallArguments.bind(self._hook, args, dict(kws))
            except ArgumentError as error:
                raise TypingError(f"{self.name}: {error}") from None
            self._arguments.setdefault(arguments.types, arguments)
            self._as_written[as_written] = self._call(context, arguments)
        return self._as_written[as_written]

    def _call(self, context: Any, arguments: CallArguments) -> tuple[Signature, Prototype]:
        # Numba remembers what intrinsics are typed as, so a call may be lowered for a target it was not typed for.
        call = arguments.types, _target()
        if call not in self._calls:
            self._calls[call] = self._ask(context, arguments)
        return self._calls[call]

    @property
    def _hook(self) -> Any:
        return self.numba_cuda_link_object.__numba_cuda_call__

    def _ask(self, context: Any, arguments: CallArguments) -> tuple[Signature, Prototype]:
        call = f"{self.name}({', '.join(map(str, arguments.types))})"
        try:
            extern = arguments.give_to(self._hook)
        except Exception as error:
            raise TypingError(
                f"{call}: {type(error).__name__}: {error} (raised at {raised_by_user_code(error)})"
            ) from error
        if not isinstance(extern, Extern):
            raise TypingError(f"{call}: __numba_cuda_call__ returned {safe_repr(extern)}, expected an autolink.Extern")
        try:
            c_function = prototype(extern, arguments.named, context)
        except TypeError as error:
            raise TypingError(f"{call}: {error}") from None
        return Signature(extern.returns, arguments.types, recvr=self, pysig=arguments.pysig), c_function


register_model(DeviceCallableType)(models.OpaqueModel)


def _target() -> Target | None:
    try:
        return current_target()
    except RuntimeError:  # compiled while autolink is deactivated
        return None


@typeof_impl.register(DeviceCallable)
@typeof_impl.register(BoundDeviceMethod)
def _typeof(obj: Any, context: Any) -> DeviceCallableType:
    if context.purpose is Purpose.argument:
        _refuse_as_argument(obj)
    return DeviceCallableType(obj)


def _refuse_as_argument(obj: Any) -> NoReturn:
    raise TypeError(
        f"{safe_repr(obj)} cannot be an argument of a kernel: it is a constant of the kernels that call it. Use it as a"
        " global variable, or as a variable of the function that defines the kernel"
    )
