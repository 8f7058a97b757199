# SPDX-License-Identifier: BSD-2-Clause
"""Fingerprints of Python values: equal where the values are, in every process.

Every kind of value has an encoder that writes everything that tells it apart. An object without an encoder is told
apart by its class and attributes, if all of its state is in them. Any other value raises `UnknownValueError`: it is
never taken as equal to another. Locks and pointers have no value, and count by their type.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import hashlib
import inspect
import io
import logging
import os
import re
import struct
import sys
import threading
import types as pytypes
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from cuda.core import ObjectCode
from numba.cuda import types
from numba.cuda.cudadrv.linkable_code import LinkableCode

# An object that refers to half of the program is unknown: so many values, nested so deeply, are looked at.
_MOST_VALUES = 10_000
_DEEPEST = 50
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_NUMBERS = (bool, int, float, complex, str, bytes)
_PRIMITIVES = (*_NUMBERS, type(None), type(Ellipsis))
_POINTER_SIZE = struct.calcsize("P")


class UnknownValueError(Exception):
    """A value cannot be told apart from others of its type."""

    @classmethod
    def of(cls, value: Any) -> UnknownValueError:
        """Return the error for *value*."""
        return cls(
            f"a value of type {type(value).__module__}.{type(value).__qualname__} cannot be told apart from others"
        )


def fingerprint(*values: Any) -> bytes:
    """Return the SHA-256 of *values*.

    Raises
    ------
    UnknownValueError
        If a value that they lead to cannot be told apart from others.
    """
    fingerprints = _Values()
    fingerprints.add("values", *values)
    return fingerprints.digest()


def plain(value: Any) -> bool:
    """Return whether *value* is a number, string, dtype, array or the like, or a tuple of such values."""
    if isinstance(value, (tuple, frozenset)):
        return all(plain(element) for element in value)
    return isinstance(value, (*_PRIMITIVES, enum.Enum, np.generic, np.ndarray, np.dtype, types.Type, range, slice))


class _Values:
    """Writes values into a hash, each as a label and its content, framed, so that no two can run into each other."""

    def __init__(self, outer: _Values | None = None) -> None:
        self._hash = hashlib.sha256()
        # The objects that contain the one that is being written, which may refer back to them.
        self._inside: list[int] = outer._inside if outer is not None else []
        self._count: list[int] = outer._count if outer is not None else [0]

    def digest(self) -> bytes:
        return self._hash.digest()

    def add(self, label: str, *values: Any) -> None:
        """Write *label* and *values*."""
        self._frame(label.encode())
        self._frame(str(len(values)).encode())
        for value in values:
            self._value(value)

    def _frame(self, data: bytes) -> None:
        self._hash.update(len(data).to_bytes(8, "little"))
        self._hash.update(data)

    def _unordered(self, label: str, values: Iterable[Any]) -> None:
        digests = []
        for value in values:
            each = _Values(self)
            each._value(value)
            digests.append(each.digest())
        self.add(label, *sorted(digests))

    def _value(self, value: Any) -> None:
        if type(value) in _PRIMITIVES:
            self._frame(type(value).__name__.encode())
            self._frame(_primitive(value))
            return
        self._count[0] += 1
        if id(value) in self._inside:
            self.add("inside", len(self._inside) - self._inside.index(id(value)))
        elif self._count[0] > _MOST_VALUES or len(self._inside) > _DEEPEST:
            raise UnknownValueError(f"it leads to more than {_MOST_VALUES} values, or is nested deeper than {_DEEPEST}")
        else:
            self._inside.append(id(value))
            try:
                _writer(type(value))(self, value)  # type: ignore[arg-type]
            finally:
                self._inside.pop()

    # One encoder for each kind of value

    def _enum(self, value: enum.Enum) -> None:
        self.add("enum", type(value), value.name, value.value)

    def _number(self, value: Any) -> None:
        base = next(base for base in _NUMBERS if isinstance(value, base))
        self.add("number", type(value), base(value), _attributes(value))

    def _sequence(self, value: tuple[Any, ...] | list[Any]) -> None:
        self.add("sequence", type(value), getattr(type(value), "_fields", None), _attributes(value), *value)

    def _set(self, value: Iterable[Any]) -> None:
        self.add("set", type(value), _attributes(value))
        self._unordered("elements", value)

    def _mapping(self, value: Mapping[Any, Any]) -> None:
        self.add("mapping", type(value), _attributes(value) if isinstance(value, dict) else None)
        self._unordered("items", value.items())

    def _scalar(self, value: np.generic) -> None:
        self.add("scalar", value.dtype, value.tobytes())

    def _array(self, value: np.ndarray[Any, Any]) -> None:
        content = list(value.flat) if value.dtype.hasobject else value.tobytes()
        flags = value.flags
        layout = flags.c_contiguous, flags.f_contiguous, flags.aligned, flags.writeable
        self.add("array", type(value), value.dtype, value.shape, layout, _attributes(value), content)

    def _dtype(self, value: np.dtype[Any]) -> None:
        fields = [(name, *value.fields[name]) for name in value.names] if value.fields and value.names else None
        metadata = None if value.metadata is None else dict(value.metadata)
        self.add("dtype", repr(value), value.itemsize, value.isalignedstruct, value.subdtype, fields, metadata)

    def _type(self, value: Any) -> None:
        obj = getattr(value, "numba_cuda_link_object", None)
        if obj is None and isinstance(value, types.Dispatcher):
            obj = value.dispatcher
        # The names of types of functions hold addresses.
        self.add("type", type(value), _ADDRESS.sub("", str(value)) if obj is None else obj)

    def _class(self, value: type) -> None:
        data = None if is_versioned(value) or issubclass(value, (tuple, enum.Enum)) else _class_data(value)
        self.add("class", value.__module__, value.__qualname__, data)

    def _module(self, value: pytypes.ModuleType) -> None:
        self.add("module", value.__name__)

    def _function(self, value: pytypes.FunctionType) -> None:
        name = value.__module__, value.__qualname__
        if is_versioned(value):
            self.add("versioned function", name)
            return
        cells = [_cell(cell) for cell in value.__closure__ or ()]
        defaults = value.__defaults__, value.__kwdefaults__
        self.add("function", name, value.__code__, cells, defaults)

    def _code(self, value: pytypes.CodeType) -> None:
        counts = value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags
        variables = value.co_varnames, value.co_freevars, value.co_cellvars
        handlers = getattr(value, "co_exceptiontable", b"")  # since Python 3.11
        self.add("code", counts, value.co_code, value.co_consts, value.co_names, variables, handlers)

    def _builtin(self, value: Any) -> None:
        owner = getattr(value, "__self__", getattr(value, "__objclass__", None))
        named = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        self.add("builtin", named, None if isinstance(owner, pytypes.ModuleType) else owner)

    def _method(self, value: Any) -> None:
        self.add("method", value.__self__, value.__func__)

    def _partial(self, value: functools.partial[Any]) -> None:
        self.add("partial", type(value), value.func, value.args, value.keywords, _attributes(value))

    def _object_code(self, value: ObjectCode) -> None:
        self.add("object code", value.code_type, value.code)

    def _linkable(self, value: LinkableCode) -> None:
        callbacks = value.setup_callback is not None, value.teardown_callback is not None
        options = getattr(value, "compile_options", None)
        self.add("linkable", type(value), value.data, value.nrt, callbacks, options)

    def _path(self, value: os.PathLike[Any]) -> None:
        self.add("path", type(value), os.fspath(value))

    def _text(self, value: Any) -> None:
        self.add("text", type(value), value.getvalue())

    def _buffer(self, value: Any) -> None:
        shape = (value.format, value.shape) if isinstance(value, memoryview) else None
        self.add("buffer", type(value), shape, bytes(value))

    def _pattern(self, value: re.Pattern[Any]) -> None:
        self.add("pattern", value.pattern, value.flags)

    def _logger(self, value: logging.Logger) -> None:
        self.add("logger", value.name)

    def _without_value(self, value: Any) -> None:
        self.add("without value", type(value).__module__, type(value).__qualname__)

    def _library(self, value: ctypes.CDLL) -> None:
        self.add("shared library", value._name)

    def _c_value(self, value: Any) -> None:
        self.add("C value", type(value).__module__, type(value).__qualname__, bytes(memoryview(value)))

    def _cached_function(self, value: Any) -> None:
        self.add("cached function", value.__wrapped__)

    def _range(self, value: Any) -> None:
        self.add("range", type(value), value.start, value.stop, value.step)

    def _object(self, value: Any) -> None:
        if hasattr(type(value), "__cuda_array_interface__"):
            raise UnknownValueError.of(value)  # its content is on a device
        if isinstance(getattr(value, "py_func", None), pytypes.FunctionType):
            options = getattr(value, "targetoptions", {})
            self.add("jit", value.py_func, {name: options[name] for name in options if name != "extensions"})
            return
        found = state(value)
        if isinstance(found, type):
            raise UnknownValueError.of(value)
        self.add("object", (type(value).__module__, type(value).__qualname__), found)


def is_versioned(value: Any) -> bool:
    """Return whether the function or class *value* is part of Python, Numba or NumPy: their versions identify it."""
    module = getattr(value, "__module__", None) or ""
    package = module.partition(".")[0]
    if package == "numba":
        return not module.startswith("numba.cuda.tests")
    return package in ("builtins", "numpy") or (package in sys.stdlib_module_names)


def _primitive(value: Any) -> bytes:
    """Return the exact content of a number, text or constant: a NaN has a sign and a payload."""
    if type(value) is bytes:
        return value
    if type(value) is float:
        return struct.pack("<d", value)
    if type(value) is complex:
        return struct.pack("<dd", value.real, value.imag)
    return repr(value).encode("utf-8", "surrogatepass")


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return None


def _attributes(value: Any) -> dict[str, Any] | None:
    """Return the attributes that an instance of a subclass of a built-in type has."""
    return getattr(value, "__dict__", None) or None


def state(obj: Any) -> Any:
    """Return what tells *obj* apart from others of its class: its attributes, or what its class pickles.

    Cached properties are left out: they follow from the other attributes and are there only after they were used. The
    result is a class where *obj* cannot be told apart: that of the error which it raises, or its own.
    """
    cls = type(obj)
    own_getstate = getattr(cls, "__getstate__", None)
    if own_getstate is not None and own_getstate is not getattr(object, "__getstate__", None):
        try:
            return own_getstate(obj)
        except Exception as error:
            return type(error)
    slots = [
        (name, hasattr(obj, name) and getattr(obj, name))
        for base in cls.__mro__
        if "__slots__" in vars(base)
        for name, value in vars(base).items()
        if isinstance(value, pytypes.MemberDescriptorType)
    ]
    if _size_of_attributes(cls, len(slots)) != cls.__basicsize__ or cls.__itemsize__:
        return _reduced(obj)
    found: dict[str, Any] = {**_class_data(cls), **dict(slots)}
    for name, value in getattr(obj, "__dict__", {}).items():
        if not isinstance(inspect.getattr_static(cls, name, None), functools.cached_property):
            found[name] = value
    return found


def _class_data(cls: type) -> dict[str, Any]:
    """Return the attributes of *cls* that are neither functions nor other descriptors."""
    return {
        name: value
        for base in reversed(cls.__mro__[:-1])
        if not is_versioned(base)
        for name, value in vars(base).items()
        if not name.startswith(("__", "_abc_")) and not hasattr(type(value), "__get__")
    }


def _size_of_attributes(cls: type, slots: int) -> int:
    """Return the size of an instance of *cls* that has nothing but attributes. A larger one has state of its own."""
    offsets = (cls.__dictoffset__, cls.__weakrefoffset__)
    return object.__basicsize__ + _POINTER_SIZE * (slots + sum(offset > 0 for offset in offsets))


def _reduced(obj: Any) -> Any:
    """Return what *obj* is pickled as, for a class whose instances have state outside of their attributes."""
    try:
        reduced = obj.__reduce_ex__(4)
    except Exception:
        return type(obj)
    if isinstance(reduced, str):
        return reduced
    return [list(part) if number > 2 and part is not None else part for number, part in enumerate(reduced)]


@functools.lru_cache(maxsize=512)
def _writer(cls: type) -> Callable[[_Values, Any], None]:
    return next(write for kind, write in _WRITERS if issubclass(cls, kind))


_C_FUNCTION = ctypes.CFUNCTYPE(None).__mro__[1]
_C_POINTERS = (ctypes._Pointer, _C_FUNCTION, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_wchar_p, ctypes.py_object)
_C_VALUES = (ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array)

# The first one that fits a value's class encodes it.
_WRITERS: tuple[tuple[Any, Callable[[_Values, Any], None]], ...] = (
    (enum.Enum, _Values._enum),
    ((tuple, list), _Values._sequence),
    ((set, frozenset), _Values._set),
    (Mapping, _Values._mapping),
    (np.generic, _Values._scalar),
    (np.ndarray, _Values._array),
    (np.dtype, _Values._dtype),
    (_NUMBERS, _Values._number),
    (types.Type, _Values._type),
    (type, _Values._class),
    (pytypes.ModuleType, _Values._module),
    (pytypes.FunctionType, _Values._function),
    (pytypes.CodeType, _Values._code),
    (
        (
            pytypes.BuiltinFunctionType,
            pytypes.MethodDescriptorType,
            pytypes.WrapperDescriptorType,
            pytypes.MethodWrapperType,
        ),
        _Values._builtin,
    ),
    (type(functools.lru_cache(len)), _Values._cached_function),
    ((type(threading.Lock()), type(threading.RLock()), *_C_POINTERS), _Values._without_value),
    (ctypes.CDLL, _Values._library),
    (_C_VALUES, _Values._c_value),
    (re.Pattern, _Values._pattern),
    (logging.Logger, _Values._logger),
    (pytypes.MethodType, _Values._method),
    (functools.partial, _Values._partial),
    (ObjectCode, _Values._object_code),
    (LinkableCode, _Values._linkable),
    (os.PathLike, _Values._path),
    ((io.StringIO, io.BytesIO), _Values._text),
    ((bytearray, memoryview), _Values._buffer),
    ((range, slice), _Values._range),
    (object, _Values._object),
)
