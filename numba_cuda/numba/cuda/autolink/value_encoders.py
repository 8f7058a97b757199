# SPDX-License-Identifier: BSD-2-Clause
"""The kinds of Python values that have a fingerprint, with everything in which two values of a kind can differ.

An object of another class counts by its class and its attributes, if all of its state is in them. Locks have no value,
and count by their type.
"""

from __future__ import annotations

import abc
import array
import builtins
import collections
import contextlib
import ctypes
import datetime
import decimal
import enum
import functools
import io
import logging
import operator
import pathlib
import re
import struct
import sys
import threading
import types as pytypes
from _abc import _get_dump  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from cuda.core import ObjectCode
from numba.cuda import types
from numba.cuda.cudadrv.linkable_code import LinkableCode

from .object_state import attributes, state
from .patched import set_on, set_on_bases, set_on_type, set_on_types
from .protocol.calling_code import CallingCode
from .python_code import environment_of, globals_used, imports_of, is_versioned, names_used, origin_of

NUMBERS = (bool, int, float, complex, str, bytes)


class UnknownValueError(Exception):
    """A value cannot be fingerprinted: nothing says whether it equals another of its type."""


class Unordered(list[tuple[Any, ...]]):
    """The elements of a set, each in a tuple, or the items of a mapping, which are sorted by their keys."""


def _number(value: Any) -> Iterable[Any]:
    base: Any = next(base for base in NUMBERS if isinstance(value, base))
    return type(value), base.__new__(base, value), attributes(value)


def _sequence(value: tuple[Any, ...] | list[Any]) -> Iterable[Any]:
    base: Any = tuple if isinstance(value, tuple) else list
    # A time.struct_time and its like have fields that are no elements.
    reduced: Any = value.__reduce__() if hasattr(type(value), "n_unnamed_fields") else (None, None)
    return type(value), getattr(type(value), "_fields", None), reduced[1], attributes(value), *base.__iter__(value)


def _unordered(value: Any) -> Iterable[Any]:
    elements = Unordered(dict.items(value) if isinstance(value, dict) else zip(value))
    return type(value), attributes(value), getattr(value, "default_factory", None), elements


def _array(value: np.ndarray[Any, Any]) -> Iterable[Any]:
    whole = value.view(np.ndarray)  # with what a mask hides
    content = list(whole.flat) if value.dtype.hasobject else whole.tobytes()
    flags = value.flags
    layout = flags.c_contiguous, flags.f_contiguous, flags.aligned, flags.writeable, value.strides
    # Around a view there is more, which can be read. What other packages keep an array in counts by its type.
    base = value.base if isinstance(value.base, (np.ndarray, bytes, bytearray)) else type(value.base)
    return type(value), value.dtype, value.shape, layout, attributes(value), content, base


def _dtype(value: np.dtype[Any]) -> Iterable[Any]:
    fields = [(name, *value.fields[name]) for name in value.names] if value.fields and value.names else None
    return repr(value), value.itemsize, value.isalignedstruct, value.subdtype, fields, value.metadata


def _type(value: types.Type) -> Iterable[Any]:
    obj = getattr(value, "numba_cuda_link_object", None)
    if obj is None and isinstance(value, (types.Dispatcher, types.BaseFunction)):
        obj = value.dispatcher if isinstance(value, types.Dispatcher) else value.typing_key
    if obj is not None:
        return type(value), obj
    if re.search("0x[0-9a-fA-F]+", str(value)):
        raise UnknownValueError(f"the Numba type {value} is named by an address")
    return type(value), str(value), None if value.key is value else value.key, set_on_type(value)


def _class(value: type) -> Iterable[Any]:
    """A class is its attributes, with the functions in them, and those of its bases and of its metaclass."""
    origin = origin_of(value.__module__)
    name = value.__module__, value.__qualname__
    if origin is not None and not _is_made_at_run_time(value):
        return name, origin
    is_enum = issubclass(value, enum.Enum)
    left_out = {*_OF_CLASSES, *(_OF_ENUMERATIONS if is_enum else ())}
    own = {attribute: found for attribute, found in vars(value).items() if attribute not in left_out}
    members = dict(value.__members__) if is_enum else None  # type: ignore[attr-defined]
    subclasses = Unordered(zip(_registered_with(value))) if isinstance(value, abc.ABCMeta) else None
    return name, own, members, subclasses, value.__bases__, type(value), set_on_bases(value)


def _is_made_at_run_time(value: type) -> bool:
    """Return whether a class of a module is another one than the module's of that name, as ``make_dataclass`` and
    ``CFUNCTYPE`` make them."""
    found: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is not value and bool(value.__flags__ & _MADE_BY_CODE)


def _registered_with(value: abc.ABCMeta) -> list[type]:
    """Return the classes for which ``value.register`` was called."""
    return [cls for reference in _get_dump(value)[0] if (cls := reference()) is not None]


def _function(value: pytypes.FunctionType) -> Iterable[Any]:
    """A function is its code, and what the code names: closure variables, globals, and attributes of modules."""
    name = value.__module__, value.__qualname__
    unfilled = pytypes.CellType()
    cells = [None if cell == unfilled else cell.cell_contents for cell in value.__closure__ or ()]
    defaults = value.__defaults__, value.__kwdefaults__
    origin = origin_of(value.__globals__.get("__name__"))
    if origin is not None:
        return name, origin, cells, defaults
    told = value.__name__, value.__doc__, value.__annotations__, vars(value)  # what a caller may look at
    return name, value.__code__, cells, defaults, told, list(_named(value)), list(environment_of(value))


def _named(function: pytypes.FunctionType) -> Iterator[Any]:
    """Yield what the globals and the modules that *function* names mean."""
    names = names_used(function.__code__)
    for name in globals_used(function.__code__):
        yield from _meant(name, function.__globals__.get(name, getattr(builtins, name, NotImplemented)), names)
    for imported in imports_of(function.__code__):
        package = function.__globals__.get("__package__") or ""
        module = sys.modules.get(imported) or sys.modules.get(f"{package}.{imported}")
        if module is not None:
            yield from _meant(imported, module, names)
        elif not is_versioned(imported):
            raise UnknownValueError(f"{function.__qualname__} imports {imported or package}, which is not imported yet")
    yield from set_on_types(names)


def _meant(name: str, value: Any, names: Iterable[str], outer: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Yield *value*, with its name, and those attributes of a module that are among *names*."""
    if not isinstance(value, pytypes.ModuleType):
        yield name, value
        if isinstance(value, type) and origin_of(value.__module__) is not None:
            yield from set_on(value, names)
        return
    yield name, value.__name__, (origin := origin_of(value.__name__))
    if origin is not None:
        yield from set_on(value, names)
    elif value not in outer:
        for attribute, found in attributes_of(value, names):
            yield from _meant(attribute, found, names, (*outer, value))


def attributes_of(module: pytypes.ModuleType, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield those attributes of *module* that are among *names*. A module, or its class, may make them when asked."""
    found = vars(module)
    makes = "__getattr__" in found or type(module) is not pytypes.ModuleType
    for name in names:
        if name in found:
            yield name, found[name]
        elif makes and not is_versioned(module.__name__):
            with contextlib.suppress(AttributeError):
                yield name, getattr(module, name)


def _module(value: pytypes.ModuleType) -> Iterable[Any] | None:
    origin = origin_of(value.__name__)
    return None if origin is None else (value.__name__, origin)


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


def _calling_code(value: CallingCode) -> Iterable[Any]:
    """Code is what it links: its name in C is made of its own content, and the objects that it calls bring theirs."""
    return type(value), str(value), [each.digest for _, each in value.traced_inputs("")]


def _c_value(value: Any) -> Iterable[Any] | None:
    cls = type(value)
    is_unknown = value if issubclass(cls, _C_POINTERS) else _holds_pointer(cls)
    return None if is_unknown else (cls, attributes(value), bytes(memoryview(value)))


def _holds_pointer(cls: Any) -> bool:
    if issubclass(cls, ctypes.Array):
        return _holds_pointer(cls._type_)
    fields = [field for base in cls.__mro__ for field in vars(base).get("_fields_", ())]
    return issubclass(cls, _C_POINTERS) or any(_holds_pointer(field[1]) for field in fields)


def _view(value: memoryview) -> Iterable[Any]:
    return value.format, value.shape, value.strides, value.readonly, bytes(value), value.obj


def _pickled(value: Any) -> Iterable[Any]:
    """A value whose class, written in C, pickles all of it."""
    reduced = value.__reduce_ex__(4)
    parts = [list(part) if number > 2 and part is not None else part for number, part in enumerate(reduced)]
    return type(value), parts, attributes(value)


def _object(value: Any) -> Iterable[Any] | None:
    if isinstance(getattr(value, "py_func", None), pytypes.FunctionType):
        options = getattr(value, "targetoptions", {})
        return "jit", value.py_func, {name: options[name] for name in options if name != "extensions"}
    if hasattr(type(value), "__cuda_array_interface__") or isinstance(found := state(value), type):
        return None
    return type(value), found


_MADE_BY_CODE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
# Attributes of classes that say nothing about what their instances do.
_OF_CLASSES = (
    *("__dict__", "__weakref__", "__module__", "__annotate__", "__abstractmethods__"),
    *("_abc_impl", "__orig_bases__", "__parameters__", "__type_params__"),
    *("__firstlineno__", "__static_attributes__"),
)
# What the enum module notes of a class: its members, which count, by name and by value, and what it makes of them.
_OF_ENUMERATIONS = (
    *("_member_names_", "_member_map_", "_value2member_map_", "_hashable_values_", "_unhashable_values_"),
    *("_unhashable_values_map_", "_new_member_", "_use_args_", "_value_repr_", "_member_type_", "_flag_mask_"),
    *("_singles_mask_", "_all_bits_", "_inverted_", "__new__", "__new_member__"),
)


def _by(*names: str) -> Callable[[Any], Any]:
    """Return the encoder of values that are equal where these attributes are."""
    return lambda value: [getattr(value, name) for name in names]


def _member(value: enum.Enum) -> list[Any]:
    """A member of an enumeration may have attributes of its own."""
    own = {name: each for name, each in vars(value).items() if not (name.startswith("_") and name.endswith("_"))}
    return [type(value), value.name, value.value, own]


_PROPERTY = operator.attrgetter("__class__", "fget", "fset", "fdel", "__doc__")
_C_POINTERS = (
    *(ctypes._Pointer, ctypes.CFUNCTYPE(None).__mro__[1], ctypes.py_object),
    *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_wchar_p),
)
# Values with these labels are what they contain: Python may make a new one, or use one twice.
WITHOUT_IDENTITY = frozenset(
    ("enum", "tuple", "frozenset", "scalar", "dtype", "number", "type", "code", "builtin", "method", "range")
)
# The first row that fits a value's class encodes it: a label, and everything in which values of the class can differ.
_ENCODERS: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = (
    (enum.Enum, "enum", _member),
    (tuple, "tuple", _sequence),
    (list, "list", _sequence),
    (frozenset, "frozenset", _unordered),
    (set, "set", _unordered),
    (collections.OrderedDict, "ordered", lambda value: (type(value), attributes(value), list(value.items()))),
    (dict, "mapping", _unordered),
    (pytypes.MappingProxyType, "mapping proxy", lambda value: [Unordered(value.items())]),
    (np.generic, "scalar", lambda value: (type(value), value.dtype, value.tobytes(), attributes(value))),
    (np.ndarray, "array", _array),
    (np.dtype, "dtype", _dtype),
    (np.ufunc, "ufunc", lambda value: (value.__name__,) if getattr(np, value.__name__, None) == value else None),
    (NUMBERS, "number", _number),
    (types.Type, "type", _type),
    (type, "class", _class),
    (pytypes.ModuleType, "module", _module),
    (pytypes.GenericAlias, "generic alias", _by("__origin__", "__args__")),
    (pytypes.UnionType, "union", _by("__args__")),
    (pytypes.FunctionType, "function", _function),
    (pytypes.CodeType, "code", _code),
    ((pytypes.BuiltinFunctionType, pytypes.MethodWrapperType), "builtin", _builtin),
    ((pytypes.MethodDescriptorType, pytypes.WrapperDescriptorType), "method of a built-in type", _builtin),
    (type(functools.lru_cache(len)), "cached function", lambda value: (value.cache_parameters(), vars(value))),
    ((classmethod, staticmethod), "method of a class", _by("__class__", "__func__", "__dict__")),
    (property, "property", lambda value: (*_PROPERTY(value), attributes(value))),
    (functools.cached_property, "cached property", _by("__class__", "func")),
    (functools.partialmethod, "partial method", _by("__class__", "func", "args", "keywords")),
    ((pytypes.MemberDescriptorType, pytypes.GetSetDescriptorType), "slot", _by("__name__")),
    (type(vars(collections.namedtuple("_", "x"))["x"]), "field", _by("__class__")),
    ((type(threading.Lock()), type(threading.RLock())), "without value", _by("__class__")),
    (ctypes.CDLL, "shared library", _by("_name")),
    (
        type(vars(type("_", (ctypes.Union,), {"_fields_": [("x", ctypes.c_int)]}))["x"]),
        "C field",
        _by("offset", "size"),
    ),
    ((*_C_POINTERS, ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array), "C value", _c_value),
    (re.Pattern, "pattern", _by("pattern", "flags")),
    (logging.Logger, "logger", _by("name")),
    (pytypes.MethodType, "method", _by("__self__", "__func__")),
    (ObjectCode, "object code", _by("code_type", "code")),
    (LinkableCode, "linkable", _linkable),
    (CallingCode, "calling code", _calling_code),
    (pathlib.PurePath, "path", lambda value: (type(value), str(value))),
    ((io.StringIO, io.BytesIO), "text", lambda value: (type(value), value.getvalue(), value.tell())),
    (struct.Struct, "struct", _by("__class__", "format")),
    (bytearray, "buffer", lambda value: (type(value), bytes(value), attributes(value))),
    (memoryview, "view", _view),
    ((range, slice), "range", _by("__class__", "start", "stop", "step")),
    ((datetime.date, datetime.time, datetime.timedelta, datetime.timezone), "time", _pickled),
    ((operator.itemgetter, operator.attrgetter, operator.methodcaller), "getter", _pickled),
    ((decimal.Decimal, array.array, collections.deque), "pickled", _pickled),
    (
        functools.partial,
        "partial",
        lambda value: (type(value), value.func, value.args, value.keywords, attributes(value)),
    ),
    (object, "object", _object),
)


@functools.lru_cache(maxsize=512)
def encoder_of(cls: type) -> tuple[str, Callable[[Any], Any]]:
    return next((label, encode) for kind, label, encode in _ENCODERS if issubclass(cls, kind))
