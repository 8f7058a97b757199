# SPDX-License-Identifier: BSD-2-Clause
"""`cxx`: a library of C++ whose functions, types and constants are used by name."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from numba.cuda.cudadrv.external_code.fork_lock import fork_lock
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CompileOptions, CUDASource, folders_given
from numba.cuda.cudadrv.external_code.safe_repr import safe_repr
from numba.cuda.cudadrv.external_code.target import ComputeCapability, ComputeCapabilityLike

from ..device_callable.c_abi import CABIError, numba_type_of
from ..device_callable.objects import DeviceCallable
from .call_text import call_text
from .calls import Call, CallPattern, Head
from .classes import CxxType, layout_of
from .constants import evaluated
from .functions import CxxFunction, function_of
from .placeholders import ALL, CALLEE
from .records import record_dtype
from .resolving import Resolver
from .structs import Struct, newest
from .targets import targeting

_PATH = re.compile(r"[^\n;{}#<>\"]+\.(?:cu|cuh|h|hh|hpp|hxx|inl)")
# What ends a declaration, or hides what follows a type.
_MORE_THAN_A_TYPE = re.compile(r";|//|/\*|\\\s*\Z")
# Attributes that Python protocols and Numba look for in any object: not names of C++.
_NOT_CXX = ("_", "numba_cuda_", "targetoptions")
_T = TypeVar("_T")
# The include paths and working directories of libraries of equal text, with their numbers.
_folders: dict[str, dict[Any, int]] = {}
_folders_lock = fork_lock()


class CxxLibrary(DeviceCallable):
    """C++ code whose names Python uses; `cxx` makes one.

    ``lib.f`` is the function ``f``; ``lib["f<3>"]``, ``lib["ns::g"]`` and ``lib["functor{}"]`` are what these C++
    expressions name, in Python and in kernels. Each is a device callable, always the same object.
    """

    cxx_reads_files = "constants"  # headers, which may change between two kernels

    def __init__(self, source: Any, arguments: Mapping[str, Any], namespace: str):
        # Each name without the prefix "_" or "cxx_" hides a function of that name in C++.
        self._given = source, dict(arguments), namespace
        self._namespace = namespace
        self._source, self._arguments = _text_of(source, arguments)
        self._identity = _identity(self._source, CUDASource(self._source, **self._arguments).compile_options, namespace)
        self._objects: dict[Any, Any] = {}
        self.cxx_records: dict[Any, Struct] = {}  # by their Numba types
        self.cxx_resolver = Resolver(self.cxx_source, lambda: list(newest(self.cxx_records).values()))

    def __repr__(self) -> str:
        source = self._given[0]
        shown = repr(source) if isinstance(source, os.PathLike) else repr(" ".join(str(source).split())[:60])
        return f"cxx({shown}{f', namespace={self._namespace!r}' if self._namespace else ''})"

    def __reduce__(self) -> Any:
        return CxxLibrary, self._given

    def __getstate__(self) -> Any:
        """Return what distinguishes it from other libraries, without what was asked of it: for fingerprints."""
        return self._given, self._identity, tuple(self.cxx_records.items())

    def __getattr__(self, name: str) -> CxxFunction:
        if name.startswith(_NOT_CXX):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self[name]

    def __getitem__(self, name: str) -> CxxFunction:
        _check_text("a name", name)
        return function_of(self, CallPattern(name, f"{name}({ALL})"))

    def __numba_cuda_call__(self, *args: Any) -> NoReturn:
        """Refuse the call: kernels call the library's functions."""
        raise CABIError("a C++ library is not a function\n  what to do: call one of its functions, lib.name(...)")

    def expr(self, text: str) -> CxxFunction:
        """Return a C++ expression whose value is called, as a device callable: a lambda or another function object.

        ``lib.expr("[](auto x, auto y) { return x * x + y; }")``. Names in it resolve as in ``lib[...]``. It may have
        several lines.
        """
        if isinstance(text, str):
            text = " ".join(re.sub(r"//[^\n]*", "", text).split()) if "\n" in text else text
        _check_text("an expression", text)
        return function_of(self, CallPattern(text, f"{CALLEE}({ALL})", callee=text))

    def eval(self, text: str, cc: ComputeCapabilityLike | None = None) -> bool | int | float:
        """Return the value of a constant expression of C++, such as ``sizeof(T)`` or an enumerator, as a number.

        It is evaluated for the compute capability *cc*: by default that of the current GPU, or 9.0 without one. As a
        global or closure variable it is a constant in kernels, which can be the shape of an array.

        Raises
        ------
        CxxError
            If it is not a constant expression of arithmetic or enumeration type.
        """
        _check_text("an expression", text)
        cc = _checked_cc(cc)
        return evaluated(self, text, cc)

    def type(self, name: str, cc: ComputeCapabilityLike | None = None) -> CxxType:
        """Return the class *name*, ``"cub::BlockReduce<float, 128>"``: its size and alignment, and its member functions
        as device callables.

        Its size is that for the compute capability *cc*: by default that of the current GPU, or 9.0 without one.
        Raises `CxxError` if *name* is not a complete object type.
        """
        _check_text("a type", name)
        cc = _checked_cc(cc)
        size, align = layout_of(self, name, cc)
        found = self.cxx_object(("type", name, cc, size, align), lambda: CxxType(self, name, cc, size, align))
        found.register()
        return found

    def record(self, name: str, dtype: Any = None, cc: ComputeCapabilityLike | None = None) -> Any:
        """Return the NumPy dtype of the C++ struct *name*. Records of this dtype are then that struct for the library:
        they are passed to its functions by reference, and its functions return them.

        The fields are those of C++, at the same offsets. With a *dtype*, its fields are compared with those of C++.

        Raises
        ------
        CxxError
            If *name* is not a struct of numbers, pointers, arrays and such structs; if *dtype* has other fields; if the
            records of another struct of this library have the same dtype.
        """
        _check_text("a type", name)
        cc = _checked_cc(cc)
        return record_dtype(self, name, cc).registered(self, dtype, cc)

    def declare(self, calls: Iterable[tuple[str | CxxFunction, Sequence[Any]]], cc: Any = None) -> None:
        """Resolve several calls with one run of the compiler, which takes hardly longer than one call.

        *calls* are pairs of a name, or a function of this library, and the Numba types of the arguments:
        ``lib.declare([("hypot", (float32, float32)), ("erf", (float64,))])``. Kernels that call these functions with
        these types then link the code of all of them, which is compiled together.

        Raises
        ------
        CxxError
            If C++ refuses one of the calls.
        TypeError
            If *calls* are not such pairs.
        """
        with targeting(cc) as target:
            if made := [self._declared(each) for each in _listed(calls)]:
                self.cxx_resolver.declare(made, target)

    def _declared(self, given: Any) -> Call:
        """Return a call that `declare` is given: a name or function, and the types of its arguments."""
        function, argtypes = given if isinstance(given, (tuple, list)) and len(given) == 2 else (None, None)
        function = self[function] if isinstance(function, str) else function
        if not isinstance(function, CxxFunction) or not isinstance(argtypes, (tuple, list)):
            raise TypeError(
                f"declare() takes pairs of a function and the list of its arguments' types\n  got: {safe_repr(given)}\n"
                '  expected: such as ("hypot", ["float32", "float32"])'
            )
        return function.call([numba_type_of(each) for each in argtypes])

    def cxx_head(self) -> Head:
        """Return what its calls share."""
        records = tuple(self.cxx_records[each] for each in newest(self.cxx_records).values())
        return Head(self._source, self._identity, self._namespace, records)

    def cxx_source(self, call: Call) -> CUDASource:
        """Return the source of one call, which shares its translation unit with other calls of this library."""
        unit = f"cxx_{self._identity}"
        return CUDASource(call_text(call), name=call.label, unit=unit, prologue=call.head.text, **self._arguments)

    def cxx_unit(self, text: str, label: str, **options: Any) -> CUDASource:
        """Return a source of its own with *text* after the library's source, with further compile options."""
        arguments = {**self._arguments, "options": {**self._arguments["options"], **options}}
        return CUDASource(text, name=label, prologue=self.cxx_head().text, **arguments)

    def cxx_object(self, key: Any, make: Callable[[], _T]) -> _T:
        """Return what *make* makes, the first time it is asked for under *key*."""
        if key not in self._objects:
            self._objects.setdefault(key, make())
        found: _T = self._objects[key]
        return found


def cxx(
    source: str | os.PathLike[str] = "",
    *,
    include_paths: Iterable[str | os.PathLike[str]] = (),
    defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]] | None = None,
    options: Mapping[str, Any] | None = None,
    namespace: str = "",
) -> CxxLibrary:
    """Use C++ by name: without declarations, bindings or result types.

    ::

        lib = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std")
        hypot = lib.hypot

        @cuda.jit
        def kernel(x, y, r):
            i = cuda.grid(1)
            if i < r.size:
                r[i] = hypot(x[i], y[i])

    NVRTC resolves each call as C++ does: overloads, templates, default arguments, argument-dependent lookup. The same
    run tells the type of the result and makes the code. A call that C++ refuses is an error at its line in Python.

    Parameters
    ----------
    source : str or path-like
        C++ text, often an ``#include``; or the path of a ``.cu`` file or header, which finds headers in its own folder.
    include_paths, defines, options
        As for `CUDASource`. The language is C++17 or later.
    namespace : str, optional
        Names resolve as inside this namespace. Qualified names work in any case.

    Raises
    ------
    FileNotFoundError
        If *source* is the path of no file.
    TypeError, ValueError
        As for `CUDASource`.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"cxx() takes C++ text or a path, got {type(source).__name__}")
    if not isinstance(namespace, str) or not re.fullmatch(r"(?:(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)?", namespace):
        raise ValueError(f"cxx() takes the namespace as a name such as 'a::b', got {namespace!r}")
    if not isinstance(options, (Mapping, type(None))):
        raise TypeError(
            f"cxx() takes options as a dict, got {type(options).__name__}\n  got: {safe_repr(options)}\n"
            "  what to do: write the compile options by name, such as options={'std': 'c++20'}"
        )
    paths = folders_given("include_paths of cxx()", include_paths)
    # Functions without __device__ are device functions: a library of plain C++ can be called. NVRTC 13.0 takes generic
    # lambdas for functions of the host otherwise.
    all_options = {"device_as_default_execution_space": True, **(options or {})}
    arguments = {"include_paths": paths, "defines": {} if defines is None else defines, "options": all_options}
    return CxxLibrary(source, arguments, namespace.removeprefix("::"))


def _text_of(source: Any, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the text of a library, and the other arguments of a `CUDASource` with it: those given, with the folder of
    the file that *source* is the path of."""
    if isinstance(source, str) and not _PATH.fullmatch(source):
        return source, dict(arguments)
    path = os.path.abspath(os.fsdecode(source))
    if not os.path.isfile(path):
        raise FileNotFoundError(f"cxx() finds no file {os.fsdecode(source)!r}")
    folder, name = os.path.split(path)
    return f"#include <{name}>", {**arguments, "include_paths": [folder, *arguments["include_paths"]]}


def _identity(text: str, options: CompileOptions, namespace: str) -> str:
    """Return digits that no other library has here. Folders do not count, so that another checkout of the same sources
    has the same symbols: the first library of a text in a process has no number, those in other folders have one."""
    content = text, dataclasses.replace(options, include_paths=(), working_directory=""), namespace
    digest = hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    folders = options.include_paths, options.working_directory
    with _folders_lock:
        number = _folders.setdefault(digest, {}).setdefault(folders, len(_folders[digest]))
    return f"{digest}_{number}" if number else digest


def _listed(calls: Any) -> list[Any]:
    if isinstance(calls, (str, Mapping)) or not isinstance(calls, Iterable):
        raise TypeError(
            f"declare() takes a list of calls, got {type(calls).__name__}\n"
            '  expected: such as [("sin", ["float32"]), ("cos", ["float32"])]'
        )
    return list(calls)


def _checked_cc(cc: ComputeCapabilityLike | None) -> ComputeCapability | None:
    return None if cc is None else ComputeCapability.parse(cc)


def _check_text(what: str, text: Any) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{what} of C++ is a str, got {type(text).__name__}")
    if not text.strip() or "\n" in text or "\0" in text:
        raise ValueError(f"{what} of C++ is one line of text, got {text!r}")
    if what == "a type" and _MORE_THAN_A_TYPE.search(text):
        raise ValueError(f"{what} of C++ is its name alone, without ';' and comments, got {text!r}")
