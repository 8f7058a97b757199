# SPDX-License-Identifier: BSD-2-Clause
"""Functions of C++ as device callables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.target import ComputeCapabilityLike

from ..compilation import current_target
from ..device_callable.c_abi import CABIError, numba_type_of
from ..device_callable.extern import Extern
from ..device_callable.objects import DeviceCallable, simulated
from .calls import Call, known_record
from .parameters import WAYS, parameter_of
from .placeholders import MADE
from .refusals import CxxError
from .results import CxxObject

if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource

    from .library import CxxLibrary


class CxxFunction(DeviceCallable):
    """A function of C++, or any expression that can be called, which kernels call: ``lib.f`` of `cxx`."""

    def __init__(
        self, library: CxxLibrary, name: str, text: str, *, made: str = "", passing: tuple[str | None, ...] = ()
    ):
        self._library = library
        self._name = name
        self._text = text
        self._made_of = made
        self._passing = passing
        self._python: Callable[..., Any] | None = None
        self._calls: dict[Any, Call] = {}

    def __repr__(self) -> str:
        return f"{self._library!r}[{self._name!r}]"

    def __reduce__(self) -> Any:
        return _function_of, (self._library, self._name, self._text, self._made_of, self._passing)

    @property
    def __name__(self) -> str:
        return self._name

    @property
    def cxx_text(self) -> str:
        """The C++ text of a call, with `ALL` in place of the arguments."""
        return self._text.replace(MADE, f"({self._made_of})")

    @property
    def cxx_library(self) -> CxxLibrary:
        """The library that it is a function of."""
        return self._library

    def passing(self, *ways: str | None) -> CxxFunction:
        """Return the function with its arguments passed in certain ways, in their order.

        Arrays are passed as a ``"pointer"`` to the first element; as a ``"span"`` or an ``"mdspan"`` of libcu++, with
        the array's shape and, in elements, its strides; or as the first ``"element"`` itself, to which C++ can write.
        ``None``, as for arguments that are not named, leaves it to the function: it gets a pointer if it takes one,
        else the view that it takes. A strided array is always an ``mdspan``.

        Raises
        ------
        ValueError
            If there is no such way.
        """
        for way in ways:
            if way is not None and way not in WAYS:
                raise ValueError(f"passing() takes {', '.join(map(repr, WAYS))} or None, got {way!r}")
        return function_of(self._library, self._name, self._text, self._made_of, ways)

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
                f"the C++ function {self._name} is device code, which the simulator cannot run\n"
                f"  object: {self!r}\n"
                "  what to do: decorate a Python function that does the same with its .python"
            )
        return self._python(*args)

    def call(self, argtypes: Sequence[Any]) -> Call:
        """Return the call with arguments of these types. Raise `CABIError` if one cannot be passed to C++."""
        ways = (*self._passing, *[None] * (len(argtypes) - len(self._passing)))
        if len(ways) > len(argtypes):
            raise CABIError(f"passing() names {len(ways)} arguments, but the call has {len(argtypes)}")
        names = self._library.cxx_records
        records = {numba_type: known_record(name) for numba_type, name in names.items()}
        key = tuple(argtypes), tuple(records.items())
        if key not in self._calls:
            parameters = []
            for number, (numba_type, way) in enumerate(zip(argtypes, ways, strict=True), 1):
                callee = getattr(numba_type, "numba_cuda_link_object", None)
                if isinstance(callee, CxxFunction) and callee.cxx_library is not self._library:
                    raise CABIError(f"argument {number}: {callee!r} is a function of another library")
                try:
                    parameters.append(parameter_of(numba_type, way, records))
                except CABIError as error:
                    raise CABIError(f"argument {number}: {error}") from None
            label = f"{self._name}({', '.join(_shown(each, names) for each in argtypes)})"
            self._calls[key] = Call(self._library.head(), self._text, tuple(parameters), label, self._made_of)
        return self._calls[key]

    def __numba_cuda_call__(self, *args: Any) -> Extern:
        """Return the C function for arguments of these types. Raise `CxxError` if C++ refuses the call."""
        call = self.call(args)
        answer = self._library.resolver.resolve(call, current_target(), list(self._library.cxx_records))
        if isinstance(answer.returns, CxxObject):
            raise CxxError(
                f"{call.label} returns an object that only C++ knows ({answer.returns.size} bytes)\n"
                "  what to do: let a lambda, lib.expr(...), use the object and return numbers; or keep it in memory of"
                " a lib.type(...)"
            )
        if answer.written:
            numbers = ", ".join(str(n + 1) for n in range(len(args)) if answer.written >> n & 1)
            raise CxxError(
                f"{call.label} writes to argument {numbers}, of which C would pass a copy\n"
                "  what to do: pass an array of one element, and say so: .passing(..., 'element')"
            )
        named = {
            f"args_{number}": way
            for number, (way, parameter) in enumerate(zip(call.ways(answer.mode), call.parameters, strict=True))
            if parameter.is_passed
        }
        extern = Extern(call.symbol, returns=answer.returns, args=named)
        self._library.resolver.note(call, extern, args, current_target())
        return extern

    def __numba_cuda_link__(self, *args: Any) -> list[CUDASource]:
        """Return the source of the call, with those of the calls that were declared together with it."""
        return self._library.resolver.sources(self.call(args), current_target())

    def __numba_cuda_link_key__(self, *args: Any) -> Any:
        """Return what distinguishes the function from others."""
        return self._library.resolver.symbols(self.call(args), current_target())


def _shown(numba_type: Any, names: Mapping[Any, str]) -> str:
    numba_type = types.unliteral(numba_type)
    if isinstance(numba_type, types.Array):
        return f"array({_shown(numba_type.dtype, names)}, {numba_type.ndim}d, {numba_type.layout})"
    if isinstance(numba_type, types.Record):
        return names.get(numba_type, f"record of {', '.join(numba_type.fields)}")
    callee = getattr(numba_type, "numba_cuda_link_object", None)
    return str(numba_type) if callee is None else getattr(callee, "__name__", str(numba_type))


def function_of(
    library: CxxLibrary, name: str, text: str, made: str = "", passing: tuple[str | None, ...] = ()
) -> CxxFunction:
    """Return the function of *library* with this text, always the same object."""
    make = library._once  # the library and its functions are one unit
    return make(
        ("function", name, text, made, passing), lambda: CxxFunction(library, name, text, made=made, passing=passing)
    )


_function_of = function_of
