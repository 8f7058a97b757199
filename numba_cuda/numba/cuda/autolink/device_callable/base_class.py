# SPDX-License-Identifier: BSD-2-Clause
"""The base class of objects that kernels call and that have no Numba typing of their own; in the simulator too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr, shown

from numba_cuda_autolink.short_tracebacks import is_full, message_of, print_short

from ..c_abi.extern import Extern
from ..protocol.callee import CALL_HOOK

_LONGEST_SHOWN = 40  # characters of an attribute's value in the default repr


def simulate(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return *function*, with the simulated GPU under the name ``cuda`` while a kernel calls it.

    The simulator does this only for the globals of the kernel and of its device functions, while the Python function
    of an object is often in another module.
    """
    if not (config.ENABLE_CUDASIM and hasattr(function, "__globals__")):
        return function
    from numba.cuda.simulator.kernel import _get_kernel_context
    from numba.cuda.simulator.kernelapi import swapped_cuda_module

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        kernel = _get_kernel_context()
        if kernel is None:
            return function(*args, **kwargs)
        with swapped_cuda_module(function, kernel):
            return function(*args, **kwargs)

    return call


def call_python(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return what the Python *function* of an object returns. The traceback of its errors shows the user's lines."""
    try:
        return function(*args, **named)
    except Exception as error:
        if not is_full():
            print_short(error, message_of(error))
        raise


class _CallSignature:
    """The signature of a device callable's calls, for ``help`` and editors: that of ``__numba_cuda_call__``.

    Classes, and objects with a ``__call__`` of their own, have the one that Python finds."""

    def __get__(self, obj: Any, owner: type) -> inspect.Signature:
        if obj is not None and is_defined(obj) and owner.__call__ is DeviceCallable.__call__:
            return _signature_of(getattr(obj, CALL_HOOK))
        raise AttributeError("__signature__")


def _signature_of(hook: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of calls with the parameters of *hook*. Raise `AttributeError` if it has none."""
    try:
        return inspect.signature(hook).replace(return_annotation=inspect.Signature.empty)
    except (TypeError, ValueError) as error:
        raise AttributeError("__signature__") from error


class DeviceCallable:
    """An object that kernels call and that stands for external device code.

    A subclass names the C function of a call and returns its code; Numba needs nothing else::

        class Scale(autolink.DeviceCallable):
            def __init__(self, factor):
                self.factor = factor

            def __numba_cuda_call__(self, x):
                return autolink.Extern(f"scale_{self.factor}_{x}", returns=x)

            def __numba_cuda_link__(self, x):
                T = autolink.cxx_type(x)
                return autolink.CUDASource(
                    f'extern "C" __device__ {T} scale_{self.factor}_{x}({T} x) {{ return x * {self.factor}; }}'
                )

            def __call__(self, x):  # the same in Python, for the simulator
                return x * self.factor

    ``__numba_cuda_call__`` has the parameters of the call. Keywords, defaults and ``*args`` work as in Python. It is
    given the Numba types of the arguments, and returns an `Extern`, or a Python function with the same parameters,
    which is compiled as a device function and may call methods of the object. An exception, for types that it does not
    support, becomes an error at the line of the call. A constant number is given as the type of its value,
    except for a parameter with the annotation ``types.Literal``: ``def __numba_cuda_call__(self, x, axis:
    types.Literal)``. Such an argument must be a constant, and is given as its literal type (``axis.literal_value``).
    Another device callable is given as a type with the attribute ``numba_cuda_link_object``.

    ``__numba_cuda_link__`` is given the same types in the order of the parameters.

    Kernels reach objects as globals and closure variables, and as attributes or tuple elements of these. An object is
    a constant: it cannot be an argument of a kernel, and its attributes (numbers, strings, tuples, dtypes, NumPy
    arrays, other objects) are constants, so that ``cuda.local.array(fft.storage_size, fft.value_type)`` and
    ``if fft.inverse:`` work and cost nothing. So are ``len(obj)``, ``obj[i]`` and comparisons with other constants, if
    the class defines them. It is asked once for each signature and must not change after that.

    In a kernel of numba-cuda-mlir, the hooks are given that front end's types. They have the same names and attributes,
    and `cxx_type`, `Extern` and the like take them too, but they are other classes. A class whose hooks compare types,
    or ask for their classes, sets ``__numba_cuda_link_types__ = "numba-cuda"`` and is given numba-cuda's in any case.
    """

    __signature__ = _CallSignature()

    def __numba_cuda_call__(self, *args: Any) -> Extern | Callable[..., Any]:
        """Return the C function, or a Python function, for a call with arguments of these Numba types."""
        raise NotImplementedError(f"kernels cannot call {type(self).__qualname__}: it has no __numba_cuda_call__")

    def __repr__(self) -> str:
        shown = [
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if _is_simple(value) and not name.startswith("_") and len(str(value)) <= _LONGEST_SHOWN
        ]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__call__" in vars(cls):
            cls.__call__ = simulate(vars(cls)["__call__"])  # type: ignore[method-assign]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the C function does, in Python: kernels in the simulator call this."""
        raise not_simulated(self, f"define {type(self).__qualname__}.__call__")


def _is_simple(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_simple, value))
    return isinstance(value, (bool, int, float, complex, str, type, np.generic, np.dtype, types.Type))


def is_defined(obj: Any) -> bool:
    return getattr(type(obj), CALL_HOOK, None) is not DeviceCallable.__numba_cuda_call__


def type_name(obj: Any) -> str:
    """Return the name of a device callable's class, with the method's name for a method of one: for messages."""
    if isinstance(obj, BoundDeviceMethod):
        return f"{type_name(obj.__self__)}.{obj.__name__}"
    cls = type(obj)
    if isinstance(vars(cls).get("__name__"), property):  # a function of C++ by name: the class says nothing about it
        return str(obj.__name__)
    return cls.__qualname__.rpartition("<locals>.")[2]


def not_simulated(obj: Any, advice: str) -> NotImplementedError:
    """Return the error for a call of *obj* in Python, which *advice* makes possible."""
    runs, called = "the simulator", ""
    if not config.ENABLE_CUDASIM:
        runs, called = "Python", "call it in kernels; to call it in Python and in the simulator, "
    return NotImplementedError(
        f"{type_name(obj)} is device code, which {runs} cannot run\n  object: {safe_repr(obj)}\n"
        f"  what to do: {called}{advice}"
    )


class DeviceMethod:
    """A method that kernels call; see `device_method`. Its parts are functions, by the names of the hooks."""

    def __init__(self, parts: Mapping[str, Callable[..., Any]]):
        call = parts[CALL_HOOK]
        if not callable(call):
            raise TypeError(f"device_method decorates a function, got {shown(call)}")
        self.parts = parts
        self._is_in_a_class = False
        self.__name__ = getattr(call, "__name__", "method")
        self.__doc__ = call.__doc__

    def link(self, function: Callable[..., Any]) -> DeviceMethod:
        """Decorate the ``__numba_cuda_link__`` of the method; without one, the object's own is asked."""
        return self._with_part("__numba_cuda_link__", function)

    def link_key(self, function: Callable[..., Any]) -> DeviceMethod:
        """Decorate the ``__numba_cuda_link_key__`` of the method."""
        return self._with_part("__numba_cuda_link_key__", function)

    def python(self, function: Callable[..., Any]) -> DeviceMethod:
        """Decorate the ``__call__`` of the method: what it does, in Python, for the simulator."""
        return self._with_part("__call__", simulate(function))

    def _with_part(self, hook: str, function: Callable[..., Any]) -> DeviceMethod:
        if not callable(function):
            raise TypeError(f"a part of {self.__name__!r} is a function, which it decorates, got {shown(function)}")
        parts = {**self.parts, hook: function}
        if getattr(function, "__name__", "") != "_":
            return DeviceMethod(parts)
        if self._is_in_a_class:
            raise TypeError(
                f"a part of the method {self.__name__!r} of another class needs its name: def {self.__name__}"
            )
        self.parts = parts
        return self

    def __set_name__(self, owner: type, name: str) -> None:
        self._is_in_a_class = True
        if name != "_":  # a further part of the method
            self.__name__ = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundDeviceMethod(instance, self)


def device_method(function: Callable[..., Extern | Callable[..., Any]]) -> DeviceMethod:
    """Mark a method of a `DeviceCallable` as one that kernels call.

    Like ``__numba_cuda_call__`` of the object, the method takes Numba types and returns an `Extern`. Like a property,
    it can have more parts: a hook for its own code, where the object's ``__numba_cuda_link__`` does not return it, and
    the method in Python, for the simulator. A part has the name of the method, or ``_``, which type checkers prefer::

        class Steps(autolink.DeviceCallable):
            def __init__(self, size):
                self.size = size

            @autolink.device_method
            def up(self, x):
                return autolink.Extern("steps_up", returns=x)

            @up.link
            def _(self, x):
                T = autolink.cxx_type(x)
                return autolink.CUDASource(f'extern "C" __device__ {T} steps_up({T} x) {{ return x + {self.size}; }}')

            @up.python
            def _(self, x):
                return x + self.size
    """
    return DeviceMethod({CALL_HOOK: function})


class BoundDeviceMethod:
    """A `DeviceMethod` of one object, ``__self__``. Two are equal if they are the same method of the same object."""

    def __init__(self, instance: Any, method: DeviceMethod):
        self.__self__ = instance
        self.__func__ = method
        self.__doc__ = method.__doc__

    @property
    def __name__(self) -> str:
        return self.__func__.__name__

    def __getattr__(self, name: str) -> Any:
        # A method without hooks of its own has none here, so that the protocol asks the object.
        if name.startswith("__numba_cuda_") and name in self.__func__.parts:
            return MethodType(self.__func__.parts[name], self.__self__)
        if name == "__signature__":
            return _signature_of(MethodType(self.__func__.parts[CALL_HOOK], self.__self__))
        raise AttributeError(f"{type(self).__qualname__!r} object has no attribute {name!r}")

    def __get__(self, instance: Any, owner: type | None = None) -> BoundDeviceMethod:
        return self  # it is bound: ``help`` shows the parameters of what has this method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "__call__" not in self.__func__.parts:
            raise not_simulated(self, f"define the method in Python, decorated with @{self.__name__}.python")
        return call_python(self.__func__.parts["__call__"], self.__self__, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        same_type = isinstance(other, BoundDeviceMethod)
        return same_type and self.__self__ is other.__self__ and self.__func__ is other.__func__  # type: ignore

    def __hash__(self) -> int:
        return hash((id(self.__self__), id(self.__func__)))

    def __reduce__(self) -> Any:
        return getattr, (self.__self__, self.__name__)

    def __repr__(self) -> str:
        return f"{self.__self__!r}.{self.__name__}"
