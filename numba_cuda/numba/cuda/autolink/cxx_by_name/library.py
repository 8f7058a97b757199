# SPDX-License-Identifier: BSD-2-Clause
"""`cxx`: a library of C++ whose functions, types and constants are used by name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, cast

import numpy as np
from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr, shown, suggest_names
from numba.cuda.cudadrv.external_code.inputs.cuda_source import folders_given
from numba.cuda.cudadrv.external_code.inputs.program_options import NO_OPTIONS, ProgramOptions
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, ComputeCapabilityLike
from numpy.typing import DTypeLike

from numba_cuda_autolink.assigned_names import find_assigned

from ..c_abi.c_types import CABIError, numba_type_of
from ..device_callable.base_class import DeviceCallable
from .calls import ALL, CALLEE, Call, CallPattern
from .classes import CxxType, get_class
from .functions import CxxFunction, assignment_refused, get_function
from .in_simulator import UnknownClass
from .library_source import LibrarySource
from .questions import evaluate, list_declared, resolve_for
from .records import ask_record, read_dtype

# What ends a declaration, or hides what follows a type.
_MORE_THAN_A_TYPE = re.compile(r";|//|/\*|\\\s*\Z")
# Attributes that Python protocols and Numba look for in any object: not names of C++.
_NOT_CXX = ("_", "numba_cuda_", "targetoptions")


class CxxLibrary(DeviceCallable):
    """C++ code whose names Python uses; `cxx` makes one.

    ``lib.f`` is the function ``f``; ``lib["f<3>"]``, ``lib["ns::g"]`` and ``lib["functor{}"]`` are what these C++
    expressions name, in Python and in kernels. Each is a device callable, always the same object.
    """

    _cxx_reads_files = "constants"  # headers, which may change between two kernels
    # What to do where the name of a function varies in a kernel.
    _constant_index = "make the function before the kernel, f = lib[f'power<{n}>'], and call that in it, f(x)"

    def __init__(self, source: LibrarySource):
        # Each name without the prefix "_" hides a function of that name in C++.
        self._source = source

    def __repr__(self) -> str:
        return repr(self._source)

    def __reduce__(self) -> Any:
        return CxxLibrary, (self._source,)

    def __getstate__(self) -> Any:
        """Return what distinguishes it from other libraries, without what was asked of it: for fingerprints."""
        return self._source.__getstate__()

    def __dir__(self) -> list[str]:
        """Return the methods, and the functions, types, constants and namespaces that the library's text and, as far as
        they are known, its headers seem to declare in its namespace."""
        methods = [name for name in vars(CxxLibrary) if not name.startswith(_NOT_CXX)]
        return sorted({*methods, *(each.name.partition("::")[0] for each in list_declared(self._source))})

    def _ipython_key_completions_(self) -> list[str]:
        """Return what IPython offers after ``lib["``: those names, and the names in namespaces with these."""
        return sorted({each.name for each in list_declared(self._source)})

    def __getattr__(self, name: str) -> CxxFunction:
        if name.startswith(_NOT_CXX):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise assignment_refused(self, name, "a C++ library")
        object.__setattr__(self, name, value)

    def __getitem__(self, name: str) -> CxxFunction:
        _check_text("a name", name)
        return get_function(self._source, CallPattern(name, f"{name}({ALL})"))

    def __numba_cuda_call__(self, *args: Any) -> NoReturn:
        """Refuse the call: kernels call the library's functions."""
        raise CABIError("a C++ library is not a function\n  what to do: call one of its functions, lib.name(...)")

    @suggest_names
    def expr(self, text: str) -> CxxFunction:
        """Return a C++ expression whose value is called, as a device callable: a lambda or another function object.

        ``lib.expr("[](auto x, auto y) { return x * x + y; }")``. Names in it resolve as in ``lib[...]``. It may have
        several lines.
        """
        if isinstance(text, str):
            text = " ".join(re.sub(r"//[^\n]*", "", text).split()) if "\n" in text else text
        _check_text("an expression", text)
        return get_function(self._source, CallPattern(text, f"{CALLEE}({ALL})", callee=text, given=find_assigned()))

    @suggest_names
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
        return evaluate(self._source, text, _parse_cc(cc))

    @suggest_names
    def type(self, name: str, cc: ComputeCapabilityLike | None = None) -> CxxType:
        """Return the class *name*, ``"cub::BlockReduce<float, 128>"``: its size and alignment, and its member functions
        as device callables.

        Its size is that for the compute capability *cc*: by default that of the current GPU, or 9.0 without one.
        Raises `CxxError` if *name* is not a complete object type. In the simulator, each use of it does.
        """
        _check_text("a type", name)
        if config.ENABLE_CUDASIM:
            return cast("CxxType", UnknownClass(self._source, name))
        return get_class(self._source, name, _parse_cc(cc))

    @suggest_names
    def record(
        self, name: str, dtype: DTypeLike | None = None, cc: ComputeCapabilityLike | None = None
    ) -> np.dtype[Any]:
        """Return the NumPy dtype of the C++ struct *name*. Records of this dtype are then that struct for the library:
        they are passed to its functions by reference, and its functions return them.

        The fields are those of C++, at the same offsets. With a *dtype*, its fields are compared with those of C++. In
        the simulator, which has no compiler, the result is that *dtype*; without one, its use is a `CxxError`.

        Raises
        ------
        CxxError
            If *name* is not a struct of numbers, pointers, arrays and such structs; if *dtype* has other fields; if the
            records of another struct of this library have the same dtype.
        """
        _check_text("a type", name)
        parsed = _parse_cc(cc)
        if config.ENABLE_CUDASIM:
            return cast("np.dtype[Any]", UnknownClass(self._source, name)) if dtype is None else read_dtype(dtype)
        return ask_record(self._source, name, parsed).register(self._source, dtype, parsed)

    @suggest_names
    def declare(
        self, calls: Iterable[tuple[str | CxxFunction, Sequence[Any]]], cc: ComputeCapabilityLike | None = None
    ) -> None:
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
        with resolve_for(cc) as target:
            if made := [self._make_call(each) for each in _list_calls(calls)]:
                self._source.resolver.declare(made, target)

    def _make_call(self, given: Any) -> Call:
        """Return a call that `declare` is given: a name or function, and the types of its arguments."""
        function, argtypes = given if isinstance(given, (tuple, list)) and len(given) == 2 else (None, None)
        function = self[function] if isinstance(function, str) else function
        if not isinstance(function, CxxFunction) or not isinstance(argtypes, (tuple, list)):
            raise TypeError(
                f"declare() takes pairs of a function and the list of its arguments' types\n  got: {safe_repr(given)}\n"
                '  expected: such as ("hypot", ["float32", "float32"])'
            )
        return function._call([numba_type_of(each) for each in argtypes])


@suggest_names
def cxx(
    source: str | os.PathLike[str] = "",
    *,
    include_paths: Iterable[str | os.PathLike[str]] = (),
    defines: Mapping[str, Any] | Iterable[str | tuple[str, Any]] | None = None,
    options: ProgramOptions = NO_OPTIONS,
    namespace: str = "",
    host_headers: bool = False,
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
        C++ text, often an ``#include``; or the path of a file or header, which finds headers in its own folder.
    include_paths : iterable of path-like, optional
        Directories to search for headers, before the CUDA toolkit's.
    defines : mapping or iterable, optional
        Macros: ``{"TILE": 16, "DEBUG": None}``, or an iterable of names and ``(name, value)`` pairs.
    options : ProgramOptions, optional
        Compile options by name, such as ``{"std": "c++20", "use_fast_math": True}``. The language is C++17 or later.
    host_headers : bool, optional
        Whether ``<cmath>``, ``<limits>`` and other headers of the host are found, with the names of ``cuda::std`` in
        ``std``. ``std::vector``, ``std::string``, streams and the like are declared only: a kernel that calls code with
        them is an error of its build. ``throw`` stops the kernel, as a failed assertion does.
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
        raise TypeError(
            f"cxx() takes C++ text or a path, got {shown(source)}\n"
            '  what to do: pass one text, "\\n".join(lines) for several; or the path of a file, cxx("solver.cu")'
        )
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
    arguments = {
        "include_paths": paths,
        "defines": {} if defines is None else defines,
        "options": all_options,
        "host_headers": bool(host_headers),
    }
    return CxxLibrary(LibrarySource(source, arguments, namespace.removeprefix("::")))


def _list_calls(calls: Any) -> list[Any]:
    if isinstance(calls, (str, Mapping)) or not isinstance(calls, Iterable):
        raise TypeError(
            f"declare() takes a list of calls, got {type(calls).__name__}\n"
            '  expected: such as [("sin", ["float32"]), ("cos", ["float32"])]'
        )
    return list(calls)


def _parse_cc(cc: ComputeCapabilityLike | None) -> ComputeCapability | None:
    return None if cc is None else ComputeCapability.parse(cc)


def _check_text(what: str, text: Any) -> None:
    if not isinstance(text, str):
        todo = "write the name as text, such as lib['power<3>']"
        if what != "a name":
            todo = "for a C++ function of this name, write lib['record'], lib['type'] or the like"
        raise TypeError(f"{what} of C++ is a str, got {type(text).__name__}\n  what to do: {todo}")
    if not text.strip() or "\n" in text or "\0" in text:
        raise ValueError(f"{what} of C++ is one line of text, got {text!r}")
    if what == "a type" and _MORE_THAN_A_TYPE.search(text):
        raise ValueError(f"{what} of C++ is its name alone, without ';' and comments, got {text!r}")
