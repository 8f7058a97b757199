# SPDX-License-Identifier: BSD-2-Clause
"""Digests of Python values: equal where the values are, in every process.

Values are pickled, and the pickle is hashed. So pickle knows the kinds of values, and what it refuses has no digest.
Functions, classes and modules, which pickle writes as names, count by their content. A pickle is never read back.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import dis
import enum
import functools
import hashlib
import io
import pickle
import re
import struct
import sys
import threading
import types as pytypes
from _abc import _get_dump  # type: ignore[import-not-found]
from abc import ABCMeta
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
from cuda.core import ObjectCode
from numba.cuda import types
from numba.cuda.cudadrv.linkable_code import LinkableCode

from numba_cuda_autolink.assigned_names import Assigned

from .answers import CallingCode
from .loaded_modules import UnknownValueError, origin_of

__all__ = ["UnknownValueError", "ValuePickler", "codes", "is_numba_type", "is_plain", "value_digest", "walk"]

# Instructions whose names are attributes, of an object that other instructions find. All others may name globals.
_OF_ATTRIBUTES = {"LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"}
# Values that Python may make anew or use twice: which of two equal ones is meant does not count.
_WITHOUT_IDENTITY = (
    *(str, bytes, int, float, complex, tuple, frozenset, pytypes.NoneType, range, slice, types.Type, enum.Enum),
    *(np.generic, np.dtype, pytypes.CodeType, pytypes.MethodType, pytypes.BuiltinFunctionType),
    *(pytypes.GenericAlias, pytypes.UnionType),
)
_NATIVE = frozenset((str, bytes, int, bool, float, tuple, pytypes.NoneType))
_CONTAINERS = frozenset((list, dict, bytearray))
_PLAIN = (
    *(bool, int, float, complex, str, bytes, pytypes.NoneType, enum.Enum, np.generic, np.ndarray, np.dtype),
    *(range, slice),
)
# Attributes of classes that say nothing about what their instances do, or differ between processes.
_OF_CLASSES = frozenset(
    (
        *("__dict__", "__weakref__", "__module__", "__abstractmethods__", "__static_attributes__", "__firstlineno__"),
        *("_abc_impl", "__annotate__", "__annotate_func__", "__parameters__", "__slotnames__"),
    )
)
_MADE_BY_CODE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def value_digest(*values: Any) -> bytes:
    """Return the SHA-256 of *values*, with what functions and classes in them name, or raise `UnknownValueError`."""
    return walk(values).digest


def is_plain(value: Any) -> bool:
    """Return whether *value* is a number, string, dtype, array, type or the like, or a tuple of such values."""
    if isinstance(value, (tuple, frozenset)):
        return all(map(is_plain, value))
    return isinstance(value, _PLAIN) or (is_numba_type(value) and object_of_type(value) is None)


def walk(values: Any, pickler: Any = None, **options: Any) -> Any:
    """Return the *pickler*, a `ValuePickler` with *options*, that has pickled *values*. It looks at those attributes of
    modules whose names functions use: so another one pickles them again until they use no more names."""
    names: frozenset[str] = frozenset()
    while True:
        found = (pickler or ValuePickler)(names, **options)
        found.write(values)
        if found.used <= names:
            return found
        names |= found.used


def codes(code: pytypes.CodeType) -> Iterator[pytypes.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, pytypes.CodeType):
            yield from codes(constant)


class ValuePickler(pickle.Pickler):
    """Pickles values to be hashed."""

    has_lines = False  # whether line numbers and paths of code count
    at: str = ""  # what is pickled now, for messages

    def __init__(self, names: Collection[str] = ()):
        self._file = io.BytesIO()
        super().__init__(self._file, protocol=4)
        self.fast = True  # pickle would tell whether equal texts are one object
        self.names = names  # the names of attributes of modules that count
        self.used: set[str] = set()  # the names that functions use
        self.modules: set[str] = set()  # the modules of the program that values come from
        self.things: list[Any] = []  # all objects that were met, but for numbers, texts and the like, in order
        self._numbers: dict[Any, int] = {}

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(self._file.getbuffer()).digest()

    def write(self, values: Any) -> None:
        try:
            self.dump(values)
        except UnknownValueError:
            raise
        except Exception as error:
            at = f"{self.at}: " if self.at else ""
            raise UnknownValueError(f"{at}{type(error).__name__}: {error}") from error

    def number(self, thing: Any) -> int | None:
        return self._numbers.get(_identity(thing))

    def persistent_id(self, obj: Any) -> Any:
        """Return what is pickled in place of *obj*; ``None`` for *obj* itself."""
        cls = type(obj)
        if cls in _NATIVE:
            return None
        if not issubclass(cls, _WITHOUT_IDENTITY):
            known = _identity(obj)
            if known in self._numbers:
                return "seen", self._numbers[known]
            self._numbers[known] = len(self.things)
            self.things.append(obj)
        kinds: Any = type(self), cls
        return None if cls in _CONTAINERS else (cls.__name__, _encoder(*kinds)(self, obj))

    # What counts of each kind

    def _set(self, obj: Any) -> Any:
        return sorted(self._part(each) for each in obj), type(obj), getattr(obj, "__dict__", None)

    def _part(self, value: Any) -> bytes:
        part = type(self)(self.names)
        part.has_lines = self.has_lines
        part.write(value)
        self.used |= part.used
        self.modules |= part.modules
        return part.digest

    def _origin(self, module: Any) -> Any:
        if (origin := origin_of(module)) is None and isinstance(module, str):
            self.modules.add(module)
        return origin

    def _function(self, obj: pytypes.FunctionType) -> Any:
        unfilled = pytypes.CellType()
        cells = [None if cell == unfilled else cell.cell_contents for cell in obj.__closure__ or ()]
        module = obj.__globals__.get("__name__")
        origin = self._origin(module)
        known = obj.__module__, obj.__qualname__, origin, cells, obj.__defaults__, obj.__kwdefaults__
        if origin is not None:
            return known
        used = [names_in(code) for code in codes(obj.__code__)]
        self.used.update(name for attributes, others in used for name in (*attributes, *others))
        meant = [*self._globals(obj, [name for _, others in used for name in others])]
        own = {name: value for name, value in vars(obj).items() if not name.startswith("__numba_cuda_")}
        return *known, obj.__code__, obj.__doc__, list(obj.__annotations__.items()), own, meant

    def _globals(self, function: pytypes.FunctionType, names: list[str]) -> Iterator[Any]:
        """Yield what the code of *function* means by *names*: globals, and modules that it imports."""
        package = function.__globals__.get("__package__") or ""
        enclosing = [package]
        while enclosing[-1]:
            enclosing.append(enclosing[-1].rpartition(".")[0])
        for name in dict.fromkeys(names):
            if name in function.__globals__:
                yield name, function.__globals__[name]
            elif hasattr(builtins, name):
                yield name, getattr(builtins, name)
            for imported in (f"{each}.{name}".strip(".") for each in enclosing):
                if isinstance(sys.modules.get(imported), pytypes.ModuleType) and origin_of(imported) != "versioned":
                    yield imported, sys.modules[imported]

    def _code(self, obj: pytypes.CodeType) -> Any:
        counts = obj.co_argcount, obj.co_posonlyargcount, obj.co_kwonlyargcount, obj.co_flags
        variables = obj.co_varnames, obj.co_freevars, obj.co_cellvars
        lines = (obj.co_filename, list(obj.co_lines())) if self.has_lines else ()
        handlers = getattr(obj, "co_exceptiontable", b"")  # since Python 3.11
        return counts, obj.co_name, obj.co_code, obj.co_consts, obj.co_names, variables, handlers, lines

    def _module(self, obj: pytypes.ModuleType) -> Any:
        origin, found = self._origin(obj.__name__), vars(obj)
        asked = origin is None and ("__getattr__" in found or type(obj) is not pytypes.ModuleType)
        named = []
        for name in sorted(self.names):
            if name in found and (origin is None or self._counts_of_installed(found[name], origin)):
                named.append((name, found[name]))
            elif name not in found and asked and not name.startswith("__"):
                with contextlib.suppress(AttributeError):
                    named.append((name, getattr(obj, name)))
        return obj.__name__, origin, named

    def _counts_of_installed(self, value: Any, origin: Any) -> bool:
        """Return whether the attribute *value* of an installed module of this *origin* counts: data, or code that is
        not installed."""
        if isinstance(value, (pytypes.FunctionType, type)):
            return origin_of(value.__module__) is None
        return type(value) in _NATIVE and (type(value) is not tuple or is_plain(value))

    def _class(self, obj: type) -> Any:
        origin, name = self._origin(obj.__module__), (obj.__module__, obj.__qualname__)
        if origin is not None and not _is_made_at_run_time(obj):
            return name, origin
        if isinstance(obj, enum.EnumMeta):
            members = [(name, each._value_, _own(each)) for name, each in obj.__members__.items()]  # type: ignore
            kept = [(name, value) for name, value in vars(obj).items() if isinstance(value, pytypes.FunctionType)]
            others = [each for each in kept if each[0] not in ("__new__", "__new_member__", "_generate_next_value_")]
            return name, obj.__bases__, members, others
        registered = sorted(each().__qualname__ for each in _get_dump(obj)[0]) if isinstance(obj, ABCMeta) else ()
        return name, obj.__bases__, type(obj), registered, self._members(obj)

    def _members(self, cls: type) -> list[Any]:
        return [(name, value) for name, value in vars(cls).items() if name not in _OF_CLASSES]

    def _array(self, obj: Any) -> Any:
        if type(obj) is not np.ndarray:
            return self._object(obj)
        layout = obj.flags.c_contiguous, obj.flags.f_contiguous, obj.flags.aligned, obj.flags.writeable, obj.strides
        return obj.dtype, obj.shape, layout, list(obj.flat) if obj.dtype.hasobject else obj.tobytes()

    def _type(self, obj: Any) -> Any:
        if (meant := object_of_type(obj)) is not None:
            return type(obj), meant
        if re.search("0x[0-9a-fA-F]+", str(obj)):
            raise UnknownValueError(f"the Numba type {obj} is named by an address")
        is_programs = origin_of(type(obj).__module__) is None
        own = {name: value for name, value in vars(obj).items() if name != "_code"} if is_programs else None
        return type(obj), str(obj), None if obj.key is obj else obj.key, own

    def _remembering(self, obj: Any) -> Any:
        """A function that remembers results. They may be older than what it would compute now."""
        if obj.cache_info().currsize:
            raise UnknownValueError(f"{obj.__qualname__} remembers what it returned")
        return obj.cache_parameters(), obj.__wrapped__

    def _builtin(self, obj: Any) -> Any:
        owner = getattr(obj, "__self__", getattr(obj, "__objclass__", None))
        owner = None if isinstance(owner, pytypes.ModuleType) else owner
        return getattr(obj, "__module__", None), obj.__qualname__, owner

    def _linkable(self, obj: Any) -> Any:
        callbacks = obj.setup_callback is not None, obj.teardown_callback is not None
        return obj.data, obj.nrt, callbacks, getattr(obj, "compile_options", None)

    def _compiled(self, obj: Any) -> Any:
        return str(obj), [each.digest for _, each in obj._traced_inputs("")]

    def _jit(self, obj: Any) -> Any:
        options = dict(getattr(obj, "targetoptions", {}))
        options.pop("extensions", None)
        options["link"] = [self._linked(item) for item in options.get("link") or ()]
        only = None if getattr(obj, "_can_compile", True) else list(map(str, obj.overloads))
        return obj.py_func, options, only

    def _linked(self, item: Any) -> Any:
        return item

    def _object(self, obj: Any) -> Any:
        """An object of another class is what pickle writes of it."""
        cls = type(obj)
        if isinstance(getattr(obj, "py_func", None), pytypes.FunctionType):
            return self._jit(obj)
        reduced = obj.__reduce_ex__(4)
        if isinstance(reduced, str):
            return cls, self._global(obj, reduced)
        parts = [list(part) if number > 2 and part is not None else part for number, part in enumerate(reduced)]
        if len(parts) > 2 and type(parts[2]) is dict:
            # What a cached property computed is there only after it was used.
            bases = map(vars, cls.__mro__)
            computed = {name for each in bases for name in each if isinstance(each[name], functools.cached_property)}
            parts[2] = {name: value for name, value in parts[2].items() if name not in computed}
        return cls, parts

    def _global(self, obj: Any, name: str, module: str | None = None) -> Any:
        module = module or getattr(obj, "__module__", None) or pickle.whichmodule(obj, name)  # type: ignore[attr-defined]
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not obj:
            raise UnknownValueError(f"{module}.{name} is another object")
        return module, name, self._origin(module)

    kinds: tuple[tuple[Any, Callable[..., Any]], ...] = ()


@functools.lru_cache(maxsize=1024)
def names_in(code: pytypes.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that *code* uses: of attributes alone, as ``threadIdx.x`` does not mean the global ``x``; and
    others, with texts that may be names, as those given to ``getattr``."""
    named = [each for each in dis.get_instructions(code) if each.opcode in dis.hasname]
    others = {each.argval: None for each in named if each.opname not in _OF_ATTRIBUTES}
    texts = {each: None for each in code.co_consts if isinstance(each, str) and each.isidentifier()}
    return tuple(name for name in code.co_names if name not in others), tuple(others | texts)


@functools.cache
def _encoder(pickler: Any, cls: Any) -> Callable[..., Any]:
    if _is_type_class(cls):
        return pickler._type
    return next((row[1] for row in pickler.kinds if issubclass(cls, row[0])), pickler._object)


@functools.lru_cache(maxsize=1024)
def _is_type_class(cls: Any) -> bool:
    return any(base.__name__ == "Type" and base.__module__.endswith(".types.abstract") for base in cls.__mro__)


def is_numba_type(value: Any) -> bool:
    cls: Any = type(value)
    return _is_type_class(cls)


def object_of_type(numba_type: Any) -> Any:
    """Return the object or function that a Numba type stands for; ``None`` for other types."""
    names = ("numba_cuda_link_object", "dispatcher", "typing_key")
    return next(filter(None, (getattr(numba_type, name, None) for name in names)), None)


def _identity(obj: Any) -> Any:
    """Return what identifies *obj* while it lives; a bound method is a new object at every access."""
    if isinstance(obj, pytypes.MethodType) or "__func__" in getattr(obj, "__dict__", ()):
        return id(getattr(obj, "__self__", obj)), id(obj.__func__)
    return id(obj)


def _own(obj: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(obj).items() if not name.startswith("_") and name != "name"}


def _is_made_at_run_time(cls: type) -> bool:
    found: Any = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is not cls and bool(cls.__flags__ & _MADE_BY_CODE)


def _attributes(*names: str) -> Callable[[Any, Any], Any]:
    return lambda pickler, obj: [getattr(obj, name) for name in names]


_C_FIELD = type(vars(type("_", (ctypes.Structure,), {"_fields_": [("x", ctypes.c_int)]}))["x"])
_of_pickler = ValuePickler
ValuePickler.kinds = (
    (Assigned, lambda pickler, obj: None),  # which reports alone show
    (enum.Enum, _attributes("__class__", "name", "_value_")),
    ((np.generic, np.dtype), _of_pickler._object),
    (type, _of_pickler._class),
    (pytypes.FunctionType, _of_pickler._function),
    (pytypes.ModuleType, _of_pickler._module),
    (pytypes.CodeType, _of_pickler._code),
    (np.ndarray, _of_pickler._array),
    ((set, frozenset), _of_pickler._set),
    (np.ufunc, lambda pickler, obj: pickler._global(obj, obj.__name__, "numpy")),
    (type(functools.lru_cache(len)), _of_pickler._remembering),
    (
        (pytypes.BuiltinFunctionType, pytypes.MethodDescriptorType, pytypes.WrapperDescriptorType),
        _of_pickler._builtin,
    ),
    (pytypes.MethodType, _attributes("__func__", "__self__")),
    ((classmethod, staticmethod), _attributes("__func__", "__dict__")),
    (property, _attributes("__class__", "fget", "fset", "fdel")),
    (pytypes.MappingProxyType, lambda pickler, obj: list(obj.items())),
    ((pytypes.MemberDescriptorType, pytypes.GetSetDescriptorType), _attributes("__name__")),
    (_C_FIELD, _attributes("offset", "size")),
    (ctypes.CDLL, _attributes("_name")),
    ((type(threading.Lock()), type(threading.RLock())), lambda pickler, obj: None),
    (re.Pattern, _attributes("pattern", "flags")),
    (struct.Struct, _attributes("format")),
    (memoryview, lambda pickler, obj: (obj.format, obj.shape, obj.strides, obj.readonly, obj.tobytes())),
    ((range, slice), _attributes("start", "stop", "step")),
    (ObjectCode, _attributes("code_type", "code")),
    (LinkableCode, _of_pickler._linkable),
    (CallingCode, _of_pickler._compiled),
)
