# SPDX-License-Identifier: BSD-2-Clause
"""Fingerprints of Python values: equal where the values are, in every process.

`_ENCODERS` lists the kinds of values that are known, with everything that tells a value of that kind apart. An object
of another class is told apart by its class and attributes, if all of its state is in them. Any other value raises
`UnknownValueError`: it is never taken as equal to another. Locks have no value, and count by their type.
"""

from __future__ import annotations

import array
import builtins
import collections
import ctypes
import datetime
import decimal
import enum
import functools
import hashlib
import inspect
import io
import logging
import operator
import os
import pathlib
import re
import struct
import sys
import threading
import types as pytypes
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from cuda.core import ObjectCode
from numba.cuda import types
from numba.cuda.cudadrv.linkable_code import LinkableCode

from .python_code import globals_used, imports_of, is_versioned, names_used, origin_of

# An object that refers to half of the program is unknown: so many values, nested so deeply, are looked at.
_MOST_VALUES = 10_000
_DEEPEST = 120
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_NUMBERS = (bool, int, float, complex, str, bytes)
_PRIMITIVES = (*_NUMBERS, type(None), type(Ellipsis), type(NotImplemented))
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
        # The objects that are written already. Which of two equal objects is meant counts.
        self._written: dict[int, tuple[int, Any]] = {}

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

    def _value(self, value: Any) -> None:
        if type(value) in _PRIMITIVES:
            self._frame(type(value).__name__.encode())
            self._frame(_primitive(value))
            return
        self._count[0] += 1
        if id(value) in self._inside:
            self.add("inside", len(self._inside) - self._inside.index(id(value)))
            return
        if not isinstance(value, _WITHOUT_IDENTITY):
            if id(value) in self._written:
                self.add("written", self._written[id(value)][0])
                return
            self._written[id(value)] = len(self._written), value
        if self._count[0] > _MOST_VALUES or len(self._inside) > _DEEPEST:
            raise UnknownValueError(f"it leads to more than {_MOST_VALUES} values, or is nested deeper than {_DEEPEST}")
        self._inside.append(id(value))
        try:
            label, encode = _encoder(type(value))  # type: ignore[arg-type]
            content = encode(value)
            if isinstance(content, _Unordered):
                self.add(label, type(value), *content.others)
                self.add("elements", *(each for _, each in sorted(map(self._sortable, content.values), key=_first)))
            else:
                self.add(label, *content)
        finally:
            self._inside.pop()

    def _sortable(self, element: Any) -> tuple[bytes, Any]:
        each = _Values(self)
        each._value(element[0] if isinstance(element, _Item) else element)
        return each.digest(), element


_first = operator.itemgetter(0)


class _Item(tuple[Any, Any]):
    """A key of a mapping and its value. Items are sorted by their keys."""

    __slots__ = ()


class _Unordered:
    """The content of a value whose elements have no order."""

    def __init__(self, values: Iterable[Any], *others: Any):
        self.values = values
        self.others = others


def _primitive(value: Any) -> bytes:
    """Return the exact content of a number, text or constant: a NaN has a sign and a payload."""
    if type(value) is bytes:
        return value
    if type(value) is float:
        return struct.pack("<d", value)
    if type(value) is complex:
        return struct.pack("<dd", value.real, value.imag)
    return repr(value).encode("utf-8", "surrogatepass")


def _number(value: Any) -> Iterable[Any]:
    base: Any = next(base for base in _NUMBERS if isinstance(value, base))
    return type(value), base.__new__(base, value), _attributes(value)


def _attributes_of_member(value: enum.Enum) -> dict[str, Any]:
    return {name: each for name, each in vars(value).items() if not (name.startswith("_") and name.endswith("_"))}


def _sequence(value: tuple[Any, ...] | list[Any]) -> Iterable[Any]:
    base: Any = tuple if isinstance(value, tuple) else list
    return type(value), getattr(type(value), "_fields", None), _attributes(value), *base.__iter__(value)


def _array(value: np.ndarray[Any, Any]) -> Iterable[Any]:
    content = list(value.flat) if value.dtype.hasobject else value.tobytes()
    flags = value.flags
    layout = flags.c_contiguous, flags.f_contiguous, flags.aligned, flags.writeable, value.strides
    return type(value), value.dtype, value.shape, layout, _attributes(value), content


def _dtype(value: np.dtype[Any]) -> Iterable[Any]:
    fields = [(name, *value.fields[name]) for name in value.names] if value.fields and value.names else None
    metadata = None if value.metadata is None else dict(value.metadata)
    return repr(value), value.itemsize, value.isalignedstruct, value.subdtype, fields, metadata


def _ufunc(value: np.ufunc) -> Iterable[Any]:
    if getattr(np, value.__name__, None) is not value:
        raise UnknownValueError.of(value)
    return (value.__name__,)


def _type(value: types.Type) -> Iterable[Any]:
    obj = getattr(value, "numba_cuda_link_object", None)
    if obj is None and isinstance(value, types.Dispatcher):
        obj = value.dispatcher
    elif obj is None and isinstance(value, types.BaseFunction):
        obj = value.typing_key
    if obj is not None:
        return type(value), obj
    if _ADDRESS.search(str(value)):
        raise UnknownValueError(f"the Numba type {value} is named by an address")
    return type(value), str(value), None if value.key is value else value.key


def _class(value: type) -> Iterable[Any]:
    """A class is its attributes, with the functions in them, and those of its bases and of its metaclass."""
    origin = origin_of(value.__module__)
    name = value.__module__, value.__qualname__
    if origin is not None:
        return name, origin
    members: Any = value
    is_enum = issubclass(value, enum.Enum)
    own = {
        attribute: _parts(found)
        for attribute, found in vars(value).items()
        if attribute not in _OF_CLASSES and not (is_enum and attribute.startswith("_") and attribute.endswith("_"))
    }
    return name, own, list(members) if is_enum else None, value.__bases__, type(value)


def _function(value: pytypes.FunctionType) -> Iterable[Any]:
    """A function is its code, and what the code names: closure variables, globals, and attributes of modules."""
    name = value.__module__, value.__qualname__
    cells = [_cell(cell) for cell in value.__closure__ or ()]
    defaults = value.__defaults__, value.__kwdefaults__
    origin = origin_of(value.__globals__.get("__name__"))
    if origin is not None:
        return name, origin, cells, defaults
    return name, value.__code__, cells, defaults, vars(value), list(_named(value))


def _named(function: pytypes.FunctionType) -> Iterator[Any]:
    """Yield what the globals and the modules that *function* names mean."""
    names = names_used(function.__code__)
    for name in globals_used(function.__code__):
        value = function.__globals__.get(name, getattr(builtins, name, NotImplemented))
        yield name, value
        if isinstance(value, pytypes.ModuleType):
            yield from _attributes_of(value, names, [])
    for imported in imports_of(function.__code__):
        package = function.__globals__.get("__package__") or ""
        module = sys.modules.get(imported) or sys.modules.get(f"{package}.{imported}")
        if module is None and not is_versioned(imported):
            raise UnknownValueError(f"{function.__qualname__} imports {imported or package}, which is not imported yet")
        if module is not None:
            yield imported, module, *_attributes_of(module, names, [])


def _attributes_of(module: pytypes.ModuleType, names: Iterable[str], outer: list[Any]) -> Iterator[Any]:
    if origin_of(module.__name__) is not None or module in outer:
        return
    for name in names:
        if name in vars(module):
            value = vars(module)[name]
            yield module.__name__, name, value
            if isinstance(value, pytypes.ModuleType):
                yield from _attributes_of(value, names, [*outer, module])


def _code(value: pytypes.CodeType) -> Iterable[Any]:
    counts = value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags
    variables = value.co_varnames, value.co_freevars, value.co_cellvars
    handlers = getattr(value, "co_exceptiontable", b"")  # since Python 3.11
    return counts, value.co_name, value.co_code, value.co_consts, value.co_names, variables, handlers


def _builtin(value: Any) -> Iterable[Any]:
    owner = getattr(value, "__self__", getattr(value, "__objclass__", None))
    named = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return named, owner.__name__ if isinstance(owner, pytypes.ModuleType) else owner


def _linkable(value: LinkableCode) -> Iterable[Any]:
    callbacks = value.setup_callback is not None, value.teardown_callback is not None
    return type(value), value.data, value.nrt, callbacks, getattr(value, "compile_options", None)


def _pointer(value: Any) -> Iterable[Any]:
    if value:
        raise UnknownValueError.of(value)  # what it points to is unknown
    return type(value).__module__, type(value).__qualname__


def _holds_pointer(cls: Any) -> bool:
    if issubclass(cls, ctypes.Array):
        return _holds_pointer(cls._type_)
    fields = [field for base in cls.__mro__ for field in vars(base).get("_fields_", ())]
    return issubclass(cls, _C_POINTERS) or any(_holds_pointer(field[1]) for field in fields)


def _c_value(value: Any) -> Iterable[Any]:
    if _holds_pointer(type(value)):
        raise UnknownValueError.of(value)
    return type(value).__module__, type(value).__qualname__, bytes(memoryview(value))


def _pickled(value: Any) -> Iterable[Any]:
    """A value whose class, written in C, pickles all of it."""
    reduced = value.__reduce_ex__(4)
    parts = [list(part) if number > 2 and part is not None else part for number, part in enumerate(reduced)]
    return type(value), parts, _attributes(value)


def _object(value: Any) -> Iterable[Any]:
    if hasattr(type(value), "__cuda_array_interface__"):
        raise UnknownValueError.of(value)  # its content is on a device
    if isinstance(getattr(value, "py_func", None), pytypes.FunctionType):
        options = getattr(value, "targetoptions", {})
        return "jit", value.py_func, {name: options[name] for name in options if name != "extensions"}
    found = state(value)
    if isinstance(found, type):
        raise UnknownValueError.of(value)
    return type(value), found


_NAMED_FIELD = type(vars(collections.namedtuple("_", "x"))["x"])
_OF_CLASSES = (
    *("__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__annotate__", "__abstractmethods__"),
    *("_abc_impl", "__dataclass_fields__", "__orig_bases__", "__parameters__", "__type_params__"),
    *("__firstlineno__", "__static_attributes__"),
)


def _parts(value: Any) -> Any:
    """Return the functions in a descriptor that a class has as an attribute, else *value* itself."""
    if isinstance(value, (classmethod, staticmethod)):
        return [type(value).__name__, value.__func__]
    if isinstance(value, property):
        return ["property", value.fget, value.fset, value.fdel]
    if isinstance(value, functools.cached_property):
        return ["cached property", value.func]
    if isinstance(value, functools.partialmethod):
        return ["partialmethod", value.func, value.args, value.keywords]
    if isinstance(value, (pytypes.MemberDescriptorType, pytypes.GetSetDescriptorType)):
        return ["slot", value.__name__]
    if isinstance(value, _NAMED_FIELD):
        return ["field"]
    return value


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return None


def _slots(value: Any) -> list[tuple[str, Any]]:
    return [
        (name, getattr(value, name, NotImplemented))
        for base in type(value).__mro__
        if "__slots__" in vars(base)
        for name, slot in vars(base).items()
        if isinstance(slot, pytypes.MemberDescriptorType)
    ]


def _attributes(value: Any) -> dict[str, Any] | None:
    """Return the attributes that an instance of a subclass of a built-in type has."""
    return {**getattr(value, "__dict__", {}), **dict(_slots(value))} or None


def state(obj: Any) -> Any:
    """Return what tells *obj* apart from others of its class: its attributes, or what its class pickles.

    Cached properties are left out: they follow from the other attributes and are there only after they were used. The
    result is a class where *obj* cannot be told apart: that of the error which it raises, or its own.
    """
    cls = type(obj)
    own_getstate = getattr(cls, "__getstate__", None)
    if own_getstate is not None and own_getstate is not getattr(object, "__getstate__", None):
        if not isinstance(own_getstate, pytypes.FunctionType):
            return cls  # written in C: it may say nothing
        try:
            return own_getstate(obj)
        except Exception as error:
            return type(error)
    slots = _slots(obj)
    if _size_of_attributes(cls, len(slots)) != cls.__basicsize__ or cls.__itemsize__:
        return cls
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
        if not is_versioned(base.__module__)
        for name, value in vars(base).items()
        if not name.startswith(("__", "_abc_")) and not hasattr(type(value), "__get__")
    }


def _size_of_attributes(cls: type, slots: int) -> int:
    """Return the size of an instance of *cls* that has nothing but attributes. A larger one has state of its own."""
    offsets = (cls.__dictoffset__, cls.__weakrefoffset__)
    return object.__basicsize__ + _POINTER_SIZE * (slots + sum(offset > 0 for offset in offsets))


# Values of these classes are what they contain: Python may make a new one, or use one twice.
_WITHOUT_IDENTITY = (
    *_NUMBERS,
    tuple,
    frozenset,
    enum.Enum,
    np.generic,
    np.dtype,
    types.Type,
    range,
    slice,
    pytypes.CodeType,
    pytypes.MethodType,
    pytypes.BuiltinFunctionType,
    pytypes.MethodWrapperType,
)
_C_FUNCTION = ctypes.CFUNCTYPE(None).__mro__[1]
_C_POINTERS = (ctypes._Pointer, _C_FUNCTION, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_wchar_p, ctypes.py_object)

# The first one that fits a value's class encodes it: a label, and what tells a value of the class apart.
_ENCODERS: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = (
    (enum.Enum, "enum", lambda value: (type(value), value.name, value.value, _attributes_of_member(value))),
    ((tuple, list), "sequence", _sequence),
    ((set, frozenset), "set", lambda value: _Unordered(value, _attributes(value))),
    (
        collections.OrderedDict,
        "ordered",
        lambda value: (type(value), getattr(value, "__dict__", None), list(value.items())),
    ),
    (
        dict,
        "mapping",
        lambda value: _Unordered(
            map(_Item, dict.items(value)), _attributes(value), getattr(value, "default_factory", None)
        ),
    ),
    (pytypes.MappingProxyType, "mapping proxy", lambda value: _Unordered(map(_Item, value.items()))),
    (np.generic, "scalar", lambda value: (value.dtype, value.tobytes())),
    (np.ndarray, "array", _array),
    (np.dtype, "dtype", _dtype),
    (np.ufunc, "ufunc", _ufunc),
    (_NUMBERS, "number", _number),
    (types.Type, "type", _type),
    (type, "class", _class),
    (pytypes.ModuleType, "module", lambda value: (value.__name__,)),
    (pytypes.FunctionType, "function", _function),
    (pytypes.CodeType, "code", _code),
    (
        (
            pytypes.BuiltinFunctionType,
            pytypes.MethodDescriptorType,
            pytypes.WrapperDescriptorType,
            pytypes.MethodWrapperType,
        ),
        "builtin",
        _builtin,
    ),
    (type(functools.lru_cache(len)), "cached function", lambda value: (value.__wrapped__,)),
    (
        (type(threading.Lock()), type(threading.RLock())),
        "without value",
        lambda value: (type(value).__module__, type(value).__qualname__),
    ),
    (_C_POINTERS, "pointer", _pointer),
    (ctypes.CDLL, "shared library", lambda value: (value._name,)),
    ((ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array), "C value", _c_value),
    (re.Pattern, "pattern", lambda value: (value.pattern, value.flags)),
    (logging.Logger, "logger", lambda value: (value.name,)),
    (pytypes.MethodType, "method", lambda value: (value.__self__, value.__func__)),
    (
        functools.partial,
        "partial",
        lambda value: (type(value), value.func, value.args, value.keywords, _attributes(value)),
    ),
    (ObjectCode, "object code", lambda value: (value.code_type, value.code)),
    (LinkableCode, "linkable", _linkable),
    (pathlib.PurePath, "path", lambda value: (type(value), os.fspath(value))),
    ((io.StringIO, io.BytesIO), "text", lambda value: (type(value), value.getvalue())),
    (bytearray, "buffer", lambda value: (type(value), bytes(value), _attributes(value))),
    (memoryview, "buffer", lambda value: (value.format, value.shape, bytes(value))),
    ((range, slice), "range", lambda value: (type(value), value.start, value.stop, value.step)),
    (
        (
            decimal.Decimal,
            datetime.date,
            datetime.time,
            datetime.timedelta,
            datetime.timezone,
            array.array,
            collections.deque,
            operator.itemgetter,
            operator.attrgetter,
            operator.methodcaller,
        ),
        "pickled",
        _pickled,
    ),
    (object, "object", _object),
)


@functools.lru_cache(maxsize=512)
def _encoder(cls: type) -> tuple[str, Callable[[Any], Any]]:
    return next((label, encode) for kind, label, encode in _ENCODERS if issubclass(cls, kind))
