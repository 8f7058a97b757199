# SPDX-License-Identifier: BSD-2-Clause
"""Fingerprints of Python values: the same in every process in which the value is the same.

Numbers, strings, dtypes, arrays, enumerations, containers, functions and types are told apart by what they are, other
objects by their class and attributes, to any depth. What has no value of its own (locks, handles, arrays on a device)
counts by its class alone.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import io
import os
import re
import types as pytypes
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from cuda.core import ObjectCode
from numba.cuda import types
from numba.cuda.cudadrv.linkable_code import LinkableCode

# An object that refers to half of the program is told apart by this many of the values that it leads to, this deep.
_MOST_VALUES = 10_000
_DEEPEST = 50
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_NUMBERS = (bool, int, float, complex, str, bytes)
_PRIMITIVES = (*_NUMBERS, type(None), type(Ellipsis))


def fingerprint(*values: Any) -> bytes:
    """SHA-256 of *values*."""
    fingerprints = _Values()
    fingerprints.add("values", *values)
    return fingerprints.digest()


def plain(value: Any) -> bool:
    """Whether *value* is a number, string, dtype, array or the like, or a tuple of such."""
    if isinstance(value, (tuple, frozenset)):
        return all(plain(element) for element in value)
    return isinstance(value, (*_PRIMITIVES, enum.Enum, np.generic, np.ndarray, np.dtype, types.Type, range, slice))


class _Values:
    """Writes values into a hash, each as a label and what it holds, framed, so that no two can run into each other."""

    def __init__(self, outer: _Values | None = None) -> None:
        self._hash = hashlib.sha256()
        # The objects that what is being written is part of, which may refer back to them.
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
            self._frame(value if type(value) is bytes else repr(value).encode("utf-8", "surrogatepass"))
            return
        self._count[0] += 1
        if id(value) in self._inside:
            self.add("inside", len(self._inside) - self._inside.index(id(value)))
        elif self._count[0] > _MOST_VALUES or len(self._inside) > _DEEPEST:
            self.add("more", type(value).__name__)
        else:
            self._inside.append(id(value))
            try:
                _writer(type(value))(self, value)  # type: ignore[arg-type]
            finally:
                self._inside.pop()

    # How each kind of value is written

    def _enum(self, value: enum.Enum) -> None:
        self.add("enum", type(value), value.name, value.value)

    def _number(self, value: Any) -> None:
        base = next(base for base in _NUMBERS if isinstance(value, base))
        self.add("number", type(value), base(value))

    def _tuple(self, value: tuple[Any, ...] | list[Any]) -> None:
        self.add("sequence", type(value), *value)

    def _set(self, value: Iterable[Any]) -> None:
        self._unordered("set", value)

    def _mapping(self, value: Mapping[Any, Any]) -> None:
        self._unordered("mapping", value.items())

    def _scalar(self, value: np.generic) -> None:
        self.add("scalar", value.dtype, value.tobytes())

    def _array(self, value: np.ndarray[Any, Any]) -> None:
        content = list(value.flat) if value.dtype.hasobject else value.tobytes()
        self.add("array", value.dtype, value.shape, value.flags.f_contiguous and not value.flags.c_contiguous, content)

    def _dtype(self, value: np.dtype[Any]) -> None:
        self.add("dtype", repr(value), value.itemsize, value.isalignedstruct)

    def _type(self, value: Any) -> None:
        obj = getattr(value, "numba_cuda_link_object", None)
        if obj is None and isinstance(value, types.Dispatcher):
            obj = value.dispatcher
        # The names of types of functions hold addresses.
        self.add("type", type(value), _ADDRESS.sub("", str(value)) if obj is None else obj)

    def _class(self, value: type) -> None:
        self.add("class", value.__module__, value.__qualname__)

    def _module(self, value: pytypes.ModuleType) -> None:
        self.add("module", value.__name__)

    def _function(self, value: pytypes.FunctionType) -> None:
        cells = [_cell(cell) for cell in value.__closure__ or ()]
        self.add("function", value.__module__, value.__qualname__, value.__code__, cells, value.__defaults__)

    def _code(self, value: pytypes.CodeType) -> None:
        self.add("code", value.co_code, value.co_consts, value.co_names, value.co_varnames, value.co_freevars)

    def _builtin(self, value: Any) -> None:
        owner = getattr(value, "__self__", None)
        named = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        self.add("builtin", named, None if isinstance(owner, pytypes.ModuleType) else owner)

    def _method(self, value: Any) -> None:
        self.add("method", value.__self__, getattr(value.__func__, "__qualname__", value.__func__))

    def _partial(self, value: functools.partial[Any]) -> None:
        self.add("partial", value.func, value.args, value.keywords)

    def _object_code(self, value: ObjectCode) -> None:
        self.add("object code", value.code_type, value.code)

    def _linkable(self, value: LinkableCode) -> None:
        callbacks = value.setup_callback is not None, value.teardown_callback is not None
        options = getattr(value, "compile_options", None)
        self.add("linkable", type(value), value.data, value.nrt, callbacks, options)

    def _path(self, value: os.PathLike[Any]) -> None:
        self.add("path", os.fspath(value))

    def _text(self, value: Any) -> None:
        self.add("text", value.getvalue())

    def _buffer(self, value: Any) -> None:
        self.add("buffer", bytes(value))

    def _range(self, value: Any) -> None:
        self.add("range", type(value), value.start, value.stop, value.step)

    def _object(self, value: Any) -> None:
        if type(value).__module__ in ("_ctypes", "ctypes") or hasattr(type(value), "__cuda_array_interface__"):
            self.add("object", type(value))
        elif isinstance(getattr(value, "py_func", None), pytypes.FunctionType):
            options = getattr(value, "targetoptions", {})
            self.add("jit", value.py_func, {name: options[name] for name in options if name != "extensions"})
        else:
            self.add("object", type(value), state(value))


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return None


def state(obj: Any) -> Any:
    """What tells *obj* apart from others of its class: its attributes, or what it wants to be pickled.

    Cached properties follow from the other attributes and are there only after they were used.
    """
    cls = type(obj)
    own_getstate = getattr(cls, "__getstate__", None)
    if own_getstate is not None and own_getstate is not getattr(object, "__getstate__", None):
        try:
            return own_getstate(obj)
        except Exception as error:
            return type(error)
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[:-1]):
        for name, value in vars(base).items():
            if isinstance(value, pytypes.MemberDescriptorType):
                if "__slots__" in vars(base) and hasattr(obj, name):
                    found[name] = getattr(obj, name)
            elif isinstance(value, functools.cached_property):
                found[name] = None
            elif not name.startswith("__") and (plain(value) or isinstance(value, type)):
                found[name] = value
    for name, value in getattr(obj, "__dict__", {}).items():
        if not isinstance(inspect.getattr_static(cls, name, None), functools.cached_property):
            found[name] = value
    return found


@functools.lru_cache(maxsize=512)
def _writer(cls: type) -> Callable[[_Values, Any], None]:
    return next(write for kind, write in _WRITERS if issubclass(cls, kind))


# The first that fits.
_WRITERS: tuple[tuple[Any, Callable[[_Values, Any], None]], ...] = (
    (enum.Enum, _Values._enum),
    ((tuple, list), _Values._tuple),
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
    (pytypes.BuiltinFunctionType, _Values._builtin),
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
