# SPDX-License-Identifier: BSD-2-Clause
"""The Python functions that a kernel is compiled from, as the cache's history describes them: nothing of this is in a
key."""

from __future__ import annotations

import contextlib
import dis
import enum
import hashlib
import inspect
import os
import platform
import re
import sys
import time
import types
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ..cache.entry import CLASS, FILE, MODULE, PLACE_OF, Facts, LineDigests, digests_of_lines

_imported = time.time()
_LONGEST = 60  # characters of a value
_MOST_TEXT = 1 << 17  # characters of the files of a kernel's functions, to show which lines were edited
_MOST_ELEMENTS = 16  # of an array that is shown
_CLOSURE, _DEFAULT = "closure ", "default "
_OWN = "numba.", "numba_cuda"  # modules of the front ends and of this project
_Values: TypeAlias = tuple[tuple[str, str], ...]
_Home: TypeAlias = tuple[str, str, str]
_HOOKS = ("__numba_cuda_link__", "__numba_cuda_call__")
_SCALARS = (bool, int, float, complex, str, bytes, types.NoneType)
# The modules of Numba types of the front ends, and the types that kernels have as constants, which are their dtypes.
_TYPES = ("numba.cuda.types", "numba_cuda_mlir.numba_cuda.types")
_DTYPES = (
    "Number",
    "Boolean",
    "Record",
    "Array",
    "BaseTuple",
    "NPDatetime",
    "NPTimedelta",
    "CharSeq",
    "UnicodeCharSeq",
)


# Those of the environment that are the defaults of options.
_VARIABLES = {"debug": "NUMBA_CUDA_DEBUGINFO", "opt": "NUMBA_OPT"}


@dataclass(frozen=True)
class PythonFunction:
    """A Python function: its *name*, its file's *path* and *line*, a digest of the lines at which its instructions are,
    its *places*, and one of its code, but for the names of its *parameters*, and the *values* that are constants in it:
    ``value NAME`` of globals, attributes of modules and members of enums, ``closure NAME`` and, of parameters,
    ``default NAME``, with their texts. *homes* are the files and classes in which the values of globals, modules and
    enums are, and *options* those of its own that change its code, of a device function, where they are
    known; *module* is the name of its module, which is in the compiled code. *objects* are the functions and objects
    that it closes over, ``closure NAME``, and those that it knows by another name than their own, ``object NAME``, each
    with what it is, such as ``Power(n=2)``, and of a closure with its place."""

    name: str
    path: str
    line: int
    places: str
    digest: str
    parameters: str
    values: tuple[tuple[str, str], ...]
    homes: tuple[tuple[str, str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    module: str = ""
    objects: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    def of(cls, function: types.FunctionType) -> PythonFunction:
        code = function.__code__
        path = os.path.abspath(code.co_filename) if os.path.exists(code.co_filename) else code.co_filename
        parameters = ", ".join(code.co_varnames[: code.co_argcount])
        name = function.__qualname__.rpartition("<locals>.")[2]
        places, digest = (_digest(each) for each in (_places(code), _content(code, code.co_argcount)))
        values, homes, objects = _values(function)
        how = code.co_firstlineno, places, digest, parameters, values, homes
        return cls(name, path, *how, module=function.__module__, objects=objects)

    @property
    def content(self) -> str:
        """A digest of its code, values and options, wherever it is in a file."""
        content = self.digest, self.parameters, self.values, self.options
        return hashlib.sha256(repr(content).encode()).hexdigest()[:12]

    def facts(self, name: str, *, with_lines: bool) -> Facts:
        """Return what users know of it, who know it by *name*; *with* its *lines* if the compiled code has lines."""
        line = [(name, "lines", self.places)] if with_lines else []
        values = [(name, *each) for each in self.values]
        for label, named, place in self.objects:
            values += [(name, label, named), *([(name, f"{PLACE_OF}{label}", place)] if place else [])]
        defined_at = f"{shown_name(self.path)}:{self.line}"
        values += [(name, f"{PLACE_OF}{label}", defined_at) for label, _ in self.values if label.startswith(_DEFAULT)]
        for label, path, of_class in self.homes:
            if place := _place_of(_last_name(label), path, of_class):
                values.append((name, f"{PLACE_OF}{label}", place))
        values += [(name, option, text) for option, text in self.options]
        return ((name, "code", self.digest), (name, "parameters", self.parameters), *values, *line)

    def lines(self, name: str) -> LineDigests:
        """Return digests of the lines of the function that users know by *name*, after one empty text for each line
        before it; nothing if its file was written since this process began."""
        try:
            block = inspect.getblock(self._lines_of_file()[self.line - 1 :])
        except (OSError, SyntaxError, ValueError, IndexError):
            return ()
        return ((f"code {name}", ("",) * (self.line - 1) + digests_of_lines("".join(block))),)

    def _lines_of_file(self) -> list[str]:
        return _text_of_file(self.path).splitlines(keepends=True)


def shown_name(path: str) -> str:
    """Return the name of a file, that of a package's ``__init__.py`` with its folder."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.basename(folder), name) if name == "__init__.py" else name


def _last_name(label: str) -> str:
    return label.rpartition(" ")[2].rpartition(".")[2]


def _place_of(name: str, path: str, of_class: str) -> str:
    """Return where a name of the module in a file, or of a class in it, is assigned, as ``m.py:8``; empty if that is
    not one line, or is not known. A name that the module imports is assigned in the other one."""
    try:
        text = _text_of_file(path)
    except (OSError, ValueError):
        return ""
    start, end = 0, len(text)
    if of_class:
        start, end = _span_of_class(of_class, text)
    indent = r"[ \t]+" if of_class else ""
    assigned = re.compile(rf"^{indent}{re.escape(name)}[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
    found = [match.start() for match in assigned.finditer(text, start, end)]
    if len(found) == 1:
        number = text.count("\n", 0, found[0]) + 1
        return f"{shown_name(path)}:{number}"
    names = rf"(?:[^(\n]*|\([^)]*)\b{re.escape(name)}\b"
    imported = re.search(rf"^from ([\w.]+) import {names}", text, re.MULTILINE) if not (found or of_class) else None
    other = _file_of(sys.modules.get(imported[1])) if imported is not None else ""
    return _place_of(name, other, "") if other not in ("", path) else ""


def _file_of(module: Any) -> str:
    return getattr(module, "__file__", None) or ""


def _span_of_class(name: str, text: str) -> tuple[int, int]:
    """Return where a class of a module begins and ends in its *text*; an empty span if it is not there."""
    found = re.search(rf"^class {name}\b", text, re.MULTILINE)
    if found is None:
        return 0, 0
    start = found.start()
    with contextlib.suppress(SyntaxError, IndexError, ValueError):  # as of a text that is not Python
        return start, start + len("".join(inspect.getblock(text[start:].splitlines(keepends=True))))
    return 0, 0


def _text_of_file(path: str) -> str:
    """Return the text of a file; none if it was written since this process began. Raise `OSError` or `ValueError`."""
    if os.stat(path).st_mtime >= _imported:
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


class CalledObject(NamedTuple):
    """An object of a user that a kernel calls: the *origin* that the code it returns has in a link's plan, what the
    object is, ``Power(n=2)``, and its class with the *path* of its file."""

    origin: str
    text: str
    of_class: str
    path: str

    @classmethod
    def of(cls, origin: str, obj: Any) -> CalledObject | None:
        """Return what *obj* is; ``None`` if it is not a user's, or not known."""
        text, module = object_text(obj), type(obj).__module__
        if not text or module.startswith(_OWN):
            return None
        return cls(origin, text, type(obj).__name__, _file_of(sys.modules.get(module)))


@dataclass(frozen=True)
class PythonKernel:
    """A kernel: its *name* with those of the functions that enclose it, the *types* of its arguments as signatures have
    them, its *functions*, itself first, the *front_end* that compiles it, its *options* that are not the defaults, and
    the *objects* that it calls, those that are known."""

    name: str
    types: str
    functions: tuple[PythonFunction, ...]
    front_end: str = "numba-cuda"
    options: tuple[tuple[str, str], ...] = ()
    objects: tuple[CalledObject, ...] = ()

    @property
    def state(self) -> str:
        """A digest of the content of its functions, and of when their files and those of its objects were written."""
        stamps = []
        for path in dict.fromkeys((*self.paths, *(each.path for each in self.objects))):
            with contextlib.suppress(OSError):
                stamps.append(os.stat(path).st_mtime_ns)
        return _digest(([(each.content, each.objects) for each in self.functions], stamps))

    def facts(self, *, with_lines: bool) -> Facts:
        """Return what users know of it; *with* the *lines* of its functions if the compiled code has them."""
        own = self.functions[0]
        return (
            ("", "path", own.path),
            ("", "kernel", self.name),
            ("", "types", self.types),
            ("", MODULE, own.module),
            ("", "Python", platform.python_version()),
            *(("", name, value) for name, value in self.options),
            *self._set_by_environment(),
            *(fact for name, each in self._named() for fact in each.facts(name, with_lines=with_lines)),
        )

    def _set_by_environment(self) -> Facts:
        """Return the variables of the environment that set options, each as the place where its option is set."""
        variables = _VARIABLES if self.front_end == "numba-cuda" else {}
        given = (
            (name, variables[name], os.environ.get(variables[name], ""))
            for name, _ in self.options
            if name in variables
        )
        return tuple(("", f"{PLACE_OF}{name}", f"{variable}={value}") for name, variable, value in given if value)

    @property
    def paths(self) -> list[str]:
        """The files of its functions."""
        return list(dict.fromkeys(each.path for each in self.functions))

    def find_text(self, text: str) -> tuple[str, int] | None:
        """Return the name of the file of its functions that contains *text* once, and the line at which that begins."""
        for path in self.paths:
            with contextlib.suppress(OSError, ValueError):
                before, *others = _text_of_file(path).split(text)
                if len(others) == 1:
                    return os.path.basename(path), before.count("\n") + 1
        return None

    def lines(self) -> LineDigests:
        """Return digests of the lines of its functions, and of the files that they are in."""
        found, left = [line for name, each in self._named() for line in each.lines(name)], _MOST_TEXT
        for path in self.paths:
            text = ""
            with contextlib.suppress(OSError, ValueError):
                text = _text_of_file(path)
            left -= len(text)
            if text and left > 0:
                found.append((f"{FILE}{os.path.basename(path)}", digests_of_lines(text)))
        for of_class, path in dict.fromkeys((each.of_class, each.path) for each in self.objects):
            with contextlib.suppress(OSError, ValueError):
                start, end = _span_of_class(of_class, text := _text_of_file(path))
                before = ("",) * text.count("\n", 0, start)
                found.append((f"{CLASS}{of_class} in {shown_name(path)}", before + digests_of_lines(text[start:end])))
        return tuple(dict(found).items())

    def _named(self) -> list[tuple[str, PythonFunction]]:
        """Return its functions with their names for users: those of another file with that, ``helpers.py:shift``."""
        own = self.functions[0].path
        return [
            (each.name if each.path == own else f"{shown_name(each.path)}:{each.name}", each) for each in self.functions
        ]


def _digest(content: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def _places(code: types.CodeType) -> tuple[Any, ...]:
    """Return the lines of code, and of the code within it."""
    inner = tuple(_places(each) for each in code.co_consts if isinstance(each, types.CodeType))
    return code.co_firstlineno, *(line for _, _, line in code.co_lines()), *inner


def _content(code: types.CodeType, parameters: int = 0) -> tuple[Any, ...]:
    """Return what code consists of, without lines and the names of its first *parameters*."""
    constants = tuple(_content(each) if isinstance(each, types.CodeType) else repr(each) for each in code.co_consts)
    names = code.co_names, code.co_varnames[parameters:], code.co_freevars, code.co_cellvars
    return code.co_code, constants, names, code.co_argcount, code.co_flags


def _values(function: types.FunctionType) -> tuple[_Values, tuple[_Home, ...], tuple[_Home, ...]]:
    """Return the values of `PythonFunction`, their homes and those of its objects, and the objects."""
    names: dict[str, Any] = {}
    homes: dict[str, tuple[str, str]] = {}
    owner: Any = None
    for each in dis.get_instructions(function):
        name = each.argval
        if each.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(owner, (types.ModuleType, enum.EnumMeta)):
            value = getattr(owner, name, None)
            label, is_class = f"value {owner.__name__}.{name}", isinstance(owner, type)
            names[label] = value.value if isinstance(value, enum.Enum) else value
            module = sys.modules.get(owner.__module__) if is_class else owner
            homes[label] = _file_of(module), owner.__name__ if is_class else ""
            owner = value
        elif each.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name in function.__globals__:
            names[f"value {name}"] = owner = function.__globals__[name]
            homes[f"value {name}"] = function.__code__.co_filename, ""
        else:
            owner = None
    names |= {f"{_CLOSURE}{name}": value for name, value in _closed_over(function).items()}
    positional, defaults = function.__code__.co_varnames[: function.__code__.co_argcount], function.__defaults__ or ()
    given = {**dict(zip(positional[::-1], defaults[::-1], strict=False)), **(function.__kwdefaults__ or {})}
    names |= {f"{_DEFAULT}{name}": value for name, value in given.items()}
    for label, value in [*names.items()]:
        if label.startswith("value ") and isinstance(value, enum.Enum):
            kind = type(value)
            member = f"value {kind.__name__}.{value.name}"
            names |= {label: _Named(f"{kind.__name__}.{value.name}"), member: value.value}
            homes[member] = _file_of(sys.modules.get(kind.__module__)), kind.__name__
    shown = ((name, constant_text(value)) for name, value in names.items())
    # A class or type under its own name, as `np.float32`, is what the code says.
    values = tuple((name, text) for name, text in shown if text and text != _last_name(name))
    objects, found = [], {label: homes[label] for label, _ in values if label in homes}
    for label, value in names.items():
        text = object_text(value) if not constant_text(value) else ""
        if text and label.startswith(_CLOSURE):
            objects.append((label, text, _place_of_object(value)))
        elif text and text not in (_last_name(label), "<lambda>"):
            label_of_object = f"object {label.partition(' ')[2]}"
            objects.append((label_of_object, text, ""))
            found |= {label_of_object: homes[label]} if label in homes else {}
    return values, tuple((label, *home) for label, home in found.items()), tuple(objects)


def object_text(value: Any) -> str:
    """Return what a function or another object is: its name, or of an object with a hook its class with those of its
    attributes that are constants, ``Power(n=2)``, or a tuple of these; empty if that is not known."""
    named = _attribute(value, "__name__") if not isinstance(value, types.ModuleType) else None
    if type(named) is str:
        return named
    if isinstance(value, tuple):
        parts = [constant_text(each) or object_text(each) for each in value]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})" if parts and all(parts) else ""
    if all(_attribute(value, each) is None for each in _HOOKS) or type(value).__module__.startswith(_OWN):
        return ""
    attributes = ((name, constant_text(each)) for name, each in (_attribute(value, "__dict__") or {}).items())
    shown = ", ".join(f"{name}={text}" for name, text in attributes if text and name[:1] != "_")
    return f"{type(value).__qualname__}({shown})"


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute of any object; ``None`` if it has none, or its own code raises an exception."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def _place_of_object(value: Any) -> str:
    function = _attribute(value, "py_func")
    code = _attribute(value if function is None else function, "__code__")
    return _place_of_code(code) if isinstance(code, types.CodeType) else ""


def _closed_over(function: types.FunctionType) -> dict[str, Any]:
    """Return the variables that a *function* closes over, with their values, but for those that have none."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if cell != types.CellType()}


def _place_of_code(code: types.CodeType) -> str:
    """Return the file and line of a function, and of a lambda, of which a line may have several, the column of its
    expression where Python knows it."""
    place = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    positions: Any = getattr(code, "co_positions", tuple)() if code.co_name == "<lambda>" else ()  # since Python 3.11
    column = next((column for _, _, column, _ in positions if column), None)
    return place if column is None else f"{place}:{column + 1}"


@dataclass(frozen=True)
class _Named:
    """A value that is known by its *name*, apart from what that stands for."""

    name: str


def constant_text(value: Any) -> str:
    """Return a *value* that Numba compiles as a constant as text, also a class, a type of Numba or a dtype of NumPy; a
    long one and an array as a digest in ``<>``; empty if it is something else."""
    text = _text(value)
    return text if len(text) <= _LONGEST else f"<{hashlib.sha256(text.encode()).hexdigest()[:16]}>"


def _text(value: Any) -> str:
    if type(value) in _SCALARS:
        return repr(value)
    if isinstance(value, _Named):
        return value.name
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name} ({_text(value.value)})"
    if isinstance(value, tuple):
        parts = [_text(each) for each in value]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})" if all(parts) else ""
    if isinstance(value, type):
        return str(value.__name__)
    if any(isinstance(value, tuple(getattr(each, name, ()) for name in _DTYPES)) for each in _numba_types()):
        return str(value)
    numpy = sys.modules.get("numpy")  # of which the value is none where that is not imported
    if numpy is not None and isinstance(value, numpy.dtype):
        return str(value)
    if numpy is not None and isinstance(value, numpy.generic):
        return f"{type(value).__name__}({value})"
    if numpy is not None and type(value) is numpy.ndarray and not value.dtype.hasobject:
        shown = f"{value.dtype} {value.tolist()}" if value.size <= _MOST_ELEMENTS else ""
        if shown and len(shown) <= _LONGEST:
            return shown
        return f"<{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()[:16]}>"
    return ""


def _numba_types() -> list[types.ModuleType]:
    return [sys.modules[each] for each in _TYPES if each in sys.modules]
