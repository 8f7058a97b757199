# SPDX-License-Identifier: BSD-2-Clause
"""CUDA C++ source as linkable code, and how to compile it."""

from __future__ import annotations

import dataclasses
import numbers
import os
import pathlib
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.linkable_code import CUSource

from numba_cuda_autolink.files import read_regular_file
from numba_cuda_autolink.given_sources import note_source
from numba_cuda_autolink.short_tracebacks import is_frame_of_compiler

from ..diagnostics import messages
from .program_options import NO_OPTIONS, OPTION_TYPES, RESERVED_OPTIONS, ProgramOptions

# The host's headers, with the names of libcu++.
HOST_HEADERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host_headers")
# Of include paths or macros: an iterable with more of them may never end.
_MOST = 10_000


@dataclass(frozen=True)
class CompileOptions:
    """How to compile a CUDA C++ source: include directories in order of search, macros, and those of `ProgramOptions`.

    Sources of one ``unit`` (other than ``""``) may be compiled together, after one ``prologue``. Relative paths are
    those of the ``working_directory``, which is ``""`` if there were none.
    """

    include_paths: tuple[str, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    unit: str = ""
    prologue: str = ""
    working_directory: str = dataclasses.field(default="", compare=False)

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The include paths, macros and options as pairs of a name and a text, macros as ``-DTILE``."""
        paths = (("include_paths", os.pathsep.join(self.include_paths)),) if self.include_paths else ()
        options = ((name, str(value)) for name, value in self.options)
        return (*paths, *((f"-D{name}", value) for name, value in self.defines), *options)

    def list_differences(self, other: CompileOptions) -> Iterator[str]:
        """Yield a line for each field that is different in *other*, with both values: but for ``unit``, and for the
        ``prologue``, which is a whole source."""
        for field in dataclasses.fields(self):
            values = [getattr(each, field.name) for each in (self, other)]
            if field.name in ("defines", "options"):
                values = list(map(dict, values))
            if values[0] != values[1] and field.name not in ("unit", "prologue"):
                yield f"{field.name}: {values[0]!r} and {values[1]!r}"


@messages.suggest_names
class CUDASource(CUSource):
    """CUDA C++ source to be compiled and linked, with its own include paths, macros and compile options.

    Parameters
    ----------
    code : str or path-like
        The source, or a path: the file is read for each kernel, so that an edit takes effect in the next one, and finds
        headers in its own folder. For a path as text see `from_file`.
    name : str, optional
        Its name in the compiler's messages. Default: the path.
    include_paths : iterable of path-like, optional
        Directories to search for headers, before the CUDA toolkit's.
    defines : mapping or iterable, optional
        Macros: ``{"TILE": 16, "DEBUG": None}``, or an iterable of names and ``(name, value)`` pairs. ``None`` defines
        the macro as 1.
    options : ProgramOptions, optional
        Compile options by name, such as ``{"std": "c++20", "use_fast_math": True}``.
    unit : str, optional
        The sources of a kernel that name the same unit are compiled as one translation unit, in the order of their
        first use, if their include paths, macros and options are equal. Nearly all compile time is spent on headers,
        so a hundred small sources take hardly longer than one. Such sources see each other's macros and declarations;
        what they define must have distinct names.
    prologue : str, optional
        Text that is compiled before the source; before those of one unit, which then have equal ones, only once.
    setup_callback, teardown_callback : callable, optional
        Called with the loaded module, and before it is unloaded.
    nrt : bool, optional
        Whether the code calls numba-cuda's runtime (NRT).
    host_headers : bool, optional
        Whether ``<cmath>``, ``<limits>`` and others of the host's headers are found, after those in *include_paths*:
        ``std`` then has the names of ``cuda::std``. ``std::string``, ``std::vector``, streams and the like are declared
        only: a kernel that calls code with them is an error of its build. ``throw`` stops the kernel.

    Raises
    ------
    TypeError
        If the code is neither text nor a path, or an option has a wrong type.
    ValueError
        For an unknown option, one that the link sets itself (architecture, link-time optimisation), or a path as text.
    """

    _public: tuple[str, ...] = ("data", "from_file", "name", "path")

    def __init__(
        self,
        code: str | os.PathLike[str],
        *,
        name: str | None = None,
        include_paths: Iterable[str | os.PathLike[str]] = (),
        defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]] = (),
        options: ProgramOptions = NO_OPTIONS,
        unit: str | None = None,
        prologue: str = "",
        setup_callback: Callable[[Any], object] | None = None,
        teardown_callback: Callable[[Any], object] | None = None,
        nrt: bool = False,
        host_headers: bool = False,
    ):
        if not isinstance(code, (str, os.PathLike)):
            raise TypeError(f"CUDASource takes the source as a str, or a pathlib.Path, got {type(code).__name__}")
        if isinstance(code, str) and is_path(code) and os.path.splitext(code)[1]:
            raise ValueError(
                f"CUDASource takes the source as text, and {code!r} is a path\n"
                f"  what to do: write CUDASource.from_file({code!r}), or pass a pathlib.Path"
            )
        if unit is not None and not isinstance(unit, str):
            raise TypeError(f"CUDASource takes the name of a translation unit as a str, got {type(unit).__name__}")
        if not isinstance(prologue, str):
            raise TypeError(f"CUDASource takes the prologue as a str, got {type(prologue).__name__}")
        others = {"setup_callback": setup_callback, "teardown_callback": teardown_callback, "nrt": nrt}
        # The simulator's base class takes no other arguments.
        super().__init__(code, name, **{key: value for key, value in others.items() if value})
        self.given = None if isinstance(code, str) else os.fsdecode(code)
        self.path = None if self.given is None else os.path.abspath(self.given)
        if self.path is not None:
            self._name = name or os.fsdecode(code)
        elif not is_frame_of_compiler(caller := sys._getframe(2)):  # the frame between checks the names of arguments
            note_source(str(code), (caller.f_code.co_filename, caller.f_lineno))
        own = () if self.path is None else (os.path.dirname(self.path),)
        folders = folders_given("include_paths=", include_paths)
        paths = folders if self.path is None else [os.fspath(code), *folders]
        self.compile_options = CompileOptions(
            tuple(map(os.path.abspath, (*own, *folders, *([HOST_HEADERS] if host_headers else [])))),
            _macros(defines),
            _check_options(options or {}),
            unit or "",
            prologue,
            "" if all(map(os.path.isabs, paths)) else os.getcwd(),
        )

    def __repr__(self) -> str:
        return f"<autolink.CUDASource {self.name}>"

    def __dir__(self) -> list[str]:
        """Return the names for users."""
        return sorted([*(name for name in super().__dir__() if name.startswith("__")), *self._public])

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **options: Any) -> CUDASource:
        """Return the source in the file at *path*, with the other parameters of the class as *options*."""
        return cls(pathlib.Path(messages.path("from_file()", path)), **options)

    @property
    def data(self) -> Any:
        """The source; of a file, as it is now."""
        return self._data if self.path is None else read_regular_file(self.path).decode()

    @data.setter
    def data(self, data: Any) -> None:  # the simulator's base class sets it
        self._data = data

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CUDASource) or self.path is None:
            return self is other
        return (type(self), *vars(self).values()) == (type(other), *vars(other).values())

    def __hash__(self) -> int:
        return object.__hash__(self) if self.path is None else hash(self.path)


def is_path(text: str) -> bool:
    """Whether *text* is a path, not C++, which has one of these characters if it is not empty."""
    return bool(text.strip()) and re.search(r"[\n;{}#<>\"]|^\s*/[/*]", text) is None


def folders_given(what: str, paths: Any) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        paths = (paths,)
    return [messages.path(what, each) for each in messages.items(what, paths, "a list of directories", _MOST)]


def _macros(defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    if isinstance(defines, str):
        defines = (defines,)
    what, expected = "defines=", "such as {'TILE': 16, 'DEBUG': None}, or ['DEBUG', ('TILE', 16)]"
    items = list(defines.items()) if isinstance(defines, Mapping) else messages.items(what, defines, expected, _MOST)
    pairs = [(item, True) if isinstance(item, str) else item for item in items]
    for pair in pairs:
        is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], str)
        if not is_pair or "=" in pair[0]:
            pair = pair[0] if is_pair else pair
            raise TypeError(f"{what} have an item that is not a macro: {messages.shown(pair)}\n  expected: {expected}")
        if not isinstance(pair[1], (str, numbers.Number, type(None))):
            raise TypeError(f"{what} give {pair[0]!r} no text or number\n  got: {messages.shown(pair[1])}")
    return tuple((name, _macro_text(True if value is None else value)) for name, value in pairs)


def _macro_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _check_options(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    if not isinstance(options, Mapping):
        raise TypeError(f"options= must be a mapping, such as {{'use_fast_math': True}}, not {type(options).__name__}")
    for option in options:
        if not isinstance(option, str):
            raise TypeError(f"options= are called by names, got {messages.shown(option)}")
        if hint := RESERVED_OPTIONS.get(option):
            raise ValueError(f"compile option {option!r} cannot be set by a source: {hint}")
        if option not in OPTION_TYPES:
            near = messages.did_you_mean(option, list(OPTION_TYPES))
            raise ValueError(f"compile option {option!r} is not a field of cuda.core.ProgramOptions{near}")
        if (expected := _kind_expected(option, options[option])) is not None:
            got = messages.shown(options[option])
            raise TypeError(f"compile option {option!r} has a wrong type: got {got}, expected {expected}")
    return tuple(sorted((name, tuple(v) if isinstance(v, list) else v) for name, v in options.items()))


def _kind_expected(option: str, value: Any) -> str | None:
    """Return the types that an option can have; ``None`` if *value* is of one of them."""
    kinds = typing.get_args(OPTION_TYPES[option])
    wider = {bool: (numbers.Integral,), int: (numbers.Integral,), str: (str, os.PathLike)}  # 1 stands for True
    plain = tuple(each for kind in kinds for each in wider.get(kind, (typing.get_origin(kind) or kind,)))
    if not kinds or isinstance(value, plain) or (bool in kinds and type(value).__name__ in ("bool", "bool_")):
        return None
    return " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds if kind is not type(None))
