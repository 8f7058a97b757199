# SPDX-License-Identifier: BSD-2-Clause
"""Functions of C++ as device callables."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from numba.cuda import types
from numba.cuda.cudadrv.external_code.safe_repr import safe_repr
from numba.cuda.cudadrv.external_code.target import ComputeCapabilityLike

from ..compilation import current_target
from ..device_callable.c_abi import CABIError, numba_type_of
from ..device_callable.extern import Extern
from ..device_callable.objects import DeviceCallable, simulated
from ..device_functions.definition import DeviceFunction
from .calls import Call, CallPattern
from .parameters import WAYS, Parameter, parameter_of
from .placeholders import CALLEE
from .refusals import CxxError
from .structs import Struct

if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource

    from .library import CxxLibrary

_LONGEST_NAME = 50


class CxxFunction(DeviceCallable):
    """A function of C++, or any expression that can be called, which kernels call: ``lib.f`` of `cxx`."""

    cxx_reads_files = "calls"  # headers, which may change between two kernels
    __numba_cuda_link_types__ = "numba-cuda"

    def __init__(self, library: CxxLibrary, pattern: CallPattern):
        self._library = library
        self._pattern = pattern
        self._python: Callable[..., Any] | None = None
        self._calls: dict[Any, Call] = {}

    def __repr__(self) -> str:
        return f"{self._library!r}[{self.__name__!r}]"

    def __reduce__(self) -> Any:
        return function_of, (self._library, self._pattern)

    def __getstate__(self) -> Any:
        """Return what distinguishes it from other functions, without what was asked of it: for fingerprints."""
        return self._library.__getstate__(), self._pattern

    def __getattr__(self, name: str) -> NoReturn:
        inside = f": for a name in it, write lib[{f'{self.__name__}::{name}'!r}]" if not name.startswith("_") else ""
        raise AttributeError(f"{self.__name__!r} of C++ has no attribute {name!r}{inside}", name=name, obj=self)

    @property
    def __name__(self) -> str:
        name = self._pattern.name
        return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."

    @property
    def cxx_text(self) -> str:
        """The C++ text of a call, with placeholders for the arguments."""
        return self._pattern.text.replace(CALLEE, f"({self._pattern.callee})")

    @property
    def cxx_library(self) -> CxxLibrary:
        """The library that it is a function of."""
        return self._library

    def passing(self, *ways: str | None) -> CxxFunction:
        """Return the function with its arguments passed in certain ways, in their order.

        Arrays are passed as a ``"pointer"`` to the first element; as a ``"span"`` or an ``"mdspan"`` of libcu++, with
        the array's shape and, in elements, its strides; or as the first ``"element"`` itself, to which C++ can write.
        Any value can be passed as the ``"state"`` of a `device_function`: C++ takes it by ``auto``.
        ``None``, as for arguments that are not named, leaves it to the function: it gets a pointer if it takes one,
        else the view that it takes. A strided array is always an ``mdspan``.

        Raises
        ------
        ValueError
            If there is no such way.
        """
        for way in ways:
            if way is not None and not (isinstance(way, str) and way in WAYS):
                raise ValueError(f"passing() takes {', '.join(map(repr, WAYS))} or None, got {safe_repr(way, 30)}")
        return function_of(self._library, dataclasses.replace(self._pattern, passing=ways))

    def signature(self, *argtypes: Any, cc: ComputeCapabilityLike | None = None) -> Any:
        """Return the Numba signature of a call with arguments of these types, as C++ resolves it.

        *argtypes* are Numba types, their names, or NumPy dtypes. It is resolved for the compute capability *cc*: by
        default that of the current GPU, or 9.0 without one.

        Raises
        ------
        CxxError
            If C++ refuses the call; the message has its reasons.
        """
        from numba.cuda.typing.templates import signature

        from .targets import targeting

        given = tuple(numba_type_of(each) for each in argtypes)
        with targeting(cc):
            return signature(self.__numba_cuda_call__(*given).returns, *given)

    def python(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a Python function that does the same: kernels in the simulator call it."""
        self._python = simulated(function)
        return function

    def __call__(self, *args: Any) -> Any:
        """Do what C++ does, in Python: kernels in the simulator call this."""
        if self._python is None:
            raise NotImplementedError(
                f"the C++ function {self._pattern.name} is device code, which Python cannot run\n"
                f"  object: {self!r}\n"
                "  what to do: call it in kernels; to call it in Python and in the simulator, decorate a Python"
                " function that does the same with its .python"
            )
        return self._python(*args)

    def writing(self, written: tuple[int, ...]) -> CxxFunction:
        """Return the function that returns a tuple: its result, and the new values of the arguments *written*."""
        return function_of(self._library, dataclasses.replace(self._pattern, written=written))

    def why_refused(self, argtypes: Sequence[Any]) -> CxxError | None:
        """Return why a call with these types was refused in the compilation in progress; None if it was not."""
        try:
            call = self.call([types.unliteral(each) for each in argtypes])
        except CABIError:
            return None
        return self._library.cxx_resolver.why_refused(call)

    @staticmethod
    def ask_together(calls: Iterable[tuple[CxxFunction, Sequence[Any]]]) -> None:
        """Find out the C functions of all calls of a kernel, in the order in which it links them: apart, each would
        cost a run of the compiler."""
        of_libraries: dict[CxxLibrary, list[Call]] = {}
        for function, argtypes in calls:
            of_libraries.setdefault(function.cxx_library, []).append(function.call(argtypes))
        for library, each in of_libraries.items():
            library.cxx_resolver.resolve_linked(each)

    def call(self, argtypes: Sequence[Any]) -> Call:
        """Return the call with arguments of these types. Raise `CABIError` if one cannot be passed to C++."""
        records = self._library.cxx_records
        key = tuple(argtypes), tuple(records.items())
        if key not in self._calls:
            parameters = tuple(self._parameters(argtypes))
            label = f"{self._pattern.name}({', '.join(_shown(each, records) for each in argtypes)})"
            self._calls[key] = Call(self._library.cxx_head(), self._pattern, parameters, label, tuple(argtypes))
        return self._calls[key]

    def _parameters(self, argtypes: Sequence[Any]) -> Iterator[Parameter]:
        ways = self._pattern.passing
        if len(ways) > len(argtypes):
            raise CABIError(f"passing() names {len(ways)} arguments, but the call has {len(argtypes)}")
        records = self._library.cxx_records
        for number, (numba_type, way) in enumerate(itertools.zip_longest(argtypes, ways), 1):
            callee = getattr(numba_type, "numba_cuda_link_object", None)
            if isinstance(callee, CxxFunction) and callee.cxx_library is not self._library:
                raise CABIError(f"argument {number}: {callee!r} is a function of another library")
            try:
                yield parameter_of(numba_type, way, records)
            except CABIError as error:
                raise CABIError(f"argument {number}: {error}") from None

    def __numba_cuda_call__(self, *args: Any) -> Extern:
        """Return the C function for arguments of these types. Raise `CxxError` if C++ refuses the call."""
        return self._library.cxx_resolver.resolve(self.call(args), current_target())

    def __numba_cuda_link__(self, *args: Any) -> list[CUDASource | DeviceFunction]:
        """Return the source of the call, with those of the calls that were declared together with it; and the code of
        the Python functions that C++ gets."""
        called = (getattr(each, "numba_cuda_link_object", None) for each in args)
        python = [each for each in called if isinstance(each, DeviceFunction)]
        return [*self._library.cxx_resolver.sources(self.call(args), current_target()), *python]

    def __numba_cuda_link_key__(self, *args: Any) -> Any:
        """Return what distinguishes the function from others."""
        return self._library.cxx_resolver.symbols(self.call(args), current_target())


def _shown(numba_type: Any, structs: Mapping[Any, Struct]) -> str:
    numba_type = types.unliteral(numba_type)
    if isinstance(numba_type, types.Array):
        return f"array({_shown(numba_type.dtype, structs)}, {numba_type.ndim}d, {numba_type.layout})"
    if isinstance(numba_type, types.Record):
        struct = structs.get(numba_type)
        return struct.name if struct else f"record of {', '.join(numba_type.fields)}"
    callee = getattr(numba_type, "numba_cuda_link_object", None)
    return str(numba_type) if callee is None else getattr(callee, "__name__", str(numba_type))


def function_of(library: CxxLibrary, pattern: CallPattern) -> CxxFunction:
    """Return the function of *library* that is called so, always the same object."""
    return library.cxx_object(pattern, lambda: CxxFunction(library, pattern))
