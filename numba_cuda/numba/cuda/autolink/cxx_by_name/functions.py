# SPDX-License-Identifier: BSD-2-Clause
"""Functions of C++ as device callables."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from numba.cuda import types
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr, shown, suggest_names
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapabilityLike

from numba_cuda_autolink.assigned_names import Assigned
from numba_cuda_autolink.printable_texts import did_you_mean

from ..c_abi.c_types import CABIError, numba_type_of
from ..c_abi.extern import Extern
from ..c_abi.record_values import EnumeratorType, RecordValue
from ..compilation.context import current_target
from ..device_callable.base_class import DeviceCallable, call_python, not_simulated, simulate
from ..device_functions.definition import DeviceFunction
from ..frontend_api.typing_rounds import DeferredCallError, Use
from .argument_orders import explain_order
from .calls import CALLEE, ELEMENT, FIRST, WAYS, Call, CallPattern, Parameter, make_parameter
from .cxx_errors import CxxError
from .declared_names import Declared
from .enumerators import explain_enumerator
from .library_source import LibrarySource
from .other_records import explain_record
from .python_arguments import PythonArgument, PythonArguments, is_python_function, name_python_function
from .questions import explain_value, list_declared, list_texts, resolve_for
from .shown_signatures import read_signature
from .structs import Struct

if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource
    from numba.cuda.typing.templates import Signature

_LONGEST_NAME = 50
_NAME = re.compile(r"[A-Za-z_]\w*(?:::\w+)*")
_DOC = """A function of C++, which kernels call. C++ chooses the overload, and the type of the result.

signature(*argtypes)    the types of a call with arguments of these types
passing(*ways)          the function with its arguments passed in certain ways
python                  decorates a Python function that does the same
"""
_Function = TypeVar("_Function", bound=Callable[..., Any])


def assignment_refused(obj: object, name: str, what: str) -> AttributeError:
    """Return the error for Python code that assigns to the attribute *name* of *obj*, an object of C++, *what* users
    call it."""
    return AttributeError(
        f"cannot assign to {name!r} of {what}: its names are those of C++\n"
        "  what to do: write the value in the C++ text; for one that changes, use an argument or an autolink.Variable",
        name=name,
        obj=obj,
    )


class _UnknownAttributeError(AttributeError):
    """Its text, for which headers may be read, is found when it is shown: compilers ask for many attributes."""

    def __str__(self) -> str:
        function: Any = self.obj
        return str(function._explain_unknown(str(self.name)))


_UnknownAttributeError.__module__, _UnknownAttributeError.__qualname__ = "builtins", "AttributeError"
_UnknownAttributeError.__name__ = "AttributeError"


class _Documentation:
    """The ``__doc__`` of a class, *text*, and of its objects, which describe themselves to ``help()``."""

    def __init__(self, text: str | None):
        self._text = text

    def __get__(self, obj: CxxFunction | None, owner: type) -> str | None:
        return self._text if obj is None else obj._describe()


class CxxFunction(DeviceCallable):
    """A function of C++, or any expression that can be called, which kernels call: ``lib.f`` of `cxx`."""

    _cxx_reads_files = "calls"  # headers, which may change between two kernels
    __numba_cuda_link_types__ = "numba-cuda"
    _public: tuple[str, ...] = ("passing", "python", "signature")
    _doc = _DOC

    def __init__(self, source: LibrarySource, pattern: CallPattern):
        self._source = source
        self._pattern = pattern
        self._python: Callable[..., Any] | None = None
        self._calls: dict[Any, Call] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__doc__ = _Documentation(cls.__doc__)  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self._source!r}[{self.__name__!r}]"

    def __reduce__(self) -> Any:
        return get_function, (self._source, self._pattern)

    def __getstate__(self) -> Any:
        """Return what distinguishes it from other functions, without what was asked of it: for fingerprints."""
        return self._source.__getstate__(), self._pattern

    def __getattr__(self, name: str) -> Any:
        if name == "__signature__" and self._python is None:  # of C++, else of that function
            declared, _ = self._declared()
            last = declared[0].name.rpartition("::")[2] if len(declared) == 1 else ""
            if found := read_signature(declared[0].text, last) if last else None:
                return found
        raise _UnknownAttributeError(name=name, obj=self)

    def _explain_unknown(self, name: str) -> str:
        """Return what is said of an attribute that this has not."""
        text = f"{self.__name__!r} of C++ has no attribute {name!r}"
        if name.startswith("_"):
            return text
        enumerator = explain_enumerator(f"{self.__name__}::{name}", list_texts(self._source))
        diagnosis, remedy = enumerator or ("", self._describe_inside(name))
        return f"{text}{diagnosis and ': '}{diagnosis}\n  what to do: {remedy}"

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise assignment_refused(self, name, f"{self.__name__!r} of C++")
        object.__setattr__(self, name, value)

    @property
    def _referred(self) -> tuple[int, ...]:
        """The positions of the arguments of which C++ gets the place."""
        return tuple(number for number, way in enumerate(self._pattern.passing) if way == ELEMENT)

    @property
    def _given_text(self) -> tuple[str, tuple[str, int]]:
        """The text of the library, and where it was given."""
        return self._source.text, self._source.place

    @property
    def _expression(self) -> tuple[str, Assigned] | None:
        """The C++ expression that is called, and the variable that holds it; ``None`` of a function."""
        return (self._pattern.callee, self._pattern.given) if self._pattern.callee else None

    def _describe_inside(self, name: str) -> str:
        return f"for a name in it, write lib[{f'{self.__name__}::{name}'!r}]"

    def _cxx_value(self, shown: str) -> tuple[str, str] | None:
        """Return what is wrong where a kernel, which calls it *shown*, uses it as a value, and what to do; ``None`` if
        it is a function."""
        name = self._pattern.name
        return explain_value(self._source, name, shown) if _NAME.fullmatch(name) else None

    def __getitem__(self, index: Any) -> NoReturn:
        name = re.escape(self.__name__.rpartition("::")[2])
        if re.search(rf"\b__global__\s[^;{{}}()]*\b{name}\s*\(", self._source.text):
            raise CABIError(
                f"{self.__name__} is a kernel of C++ (__global__), which Python does not launch\n"
                "  what to do: move its body into a __device__ function, and call that in a kernel of Python"
            )
        arguments = index if type(index) is int else "..."
        raise CABIError(
            f"{self.__name__} is a C++ function, which has no index\n"
            f'  what to do: template arguments are a part of its name: lib["{self.__name__}<{arguments}>"]'
        )

    def __dir__(self) -> list[str]:
        """Return the names for users: none of a namespace, whose names ``lib["inner::f"]`` has."""
        declared, inside = self._declared()
        public = () if inside and not declared else self._public
        return sorted([*(name for name in super().__dir__() if name.startswith("__")), *public])

    @property
    def __name__(self) -> str:
        name = self._pattern.name
        return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."

    @property
    def _cxx_text(self) -> str:
        """The C++ text of a call, with placeholders for the arguments."""
        return self._pattern.text.replace(CALLEE, f"({self._pattern.callee})")

    @suggest_names
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
                near = did_you_mean(way, WAYS)
                raise ValueError(
                    f"passing() takes {', '.join(map(repr, WAYS))} or None, got {safe_repr(way, 30)}{near}"
                )
        return self._change(passing=ways)

    @suggest_names
    def signature(self, *argtypes: Any, cc: ComputeCapabilityLike | None = None) -> Signature:
        """Return the Numba signature of a call with arguments of these types, as C++ resolves it.

        *argtypes* are Numba types, their names, or NumPy dtypes. It is resolved for the compute capability *cc*: by
        default that of the current GPU, or 9.0 without one.

        Raises
        ------
        CxxError
            If C++ refuses the call; the message has its reasons.
        """
        from numba.cuda.typing.templates import signature

        given = tuple(numba_type_of(each) for each in argtypes)
        with resolve_for(cc):
            return signature(self.__numba_cuda_call__(*given).returns, *given)

    def python(self, function: _Function) -> _Function:
        """Decorate a Python function that does the same: kernels in the simulator call it, and ``help()`` shows its
        docstring and its parameters."""
        if not callable(function):
            raise TypeError(f".python of {self.__name__!r} decorates a function, got {shown(function)}")
        self._python = simulate(function)
        self.__wrapped__ = function  # of which the signature is
        return function

    def __call__(self, *args: Any) -> Any:
        """Call the function. In kernels C++ chooses the overload and the result's type; in Python and in the simulator
        this calls the function that `python` was given.
        """
        if self._python is None:
            raise not_simulated(self, "decorate a Python function that does the same with its .python")
        return call_python(self._python, *args)

    def _describe(self) -> str:
        """Return how it is called and what it does: the parameters and the docstring of a Python function that does the
        same, else the declarations in C++ that are known, with their comments, and what users do with it."""
        if self._python is not None and (text := inspect.getdoc(self.__wrapped__)):
            return f"{self.__name__}{_show_parameters(self.__wrapped__)}\n\n{text}"
        declared, inside = self._declared()
        shown = [each.text + textwrap.indent(f"\n{each.comment}", "    ").rstrip() for each in declared]
        what = self._doc
        if inside and not declared:
            what = "\n".join(["A namespace of C++. Its names are", *(f"lib[{each!r}]" for each in inside)])
        elif declared and all(each.is_constant for each in declared):
            what = f"A constant of C++. Its value is lib.eval({declared[0].name!r}), if the compiler knows it."
        return "\n\n".join([*shown, what])

    def _declared(self) -> tuple[list[Declared], list[str]]:
        """Return the declarations of this name that are known, and the names in a namespace of this name."""
        name = re.sub(r"<.*>\Z", "", self._pattern.name, flags=re.DOTALL).removeprefix("::")
        known = list_declared(self._source)
        inside = {each.name: None for each in known if each.name.startswith(f"{name}::")}
        return [each for each in known if each.name == name], sorted(inside)

    def _change(self, **changes: Any) -> CxxFunction:
        """Return the function that is called by another pattern, with these *changes*."""
        return get_function(self._source, dataclasses.replace(self._pattern, **changes))

    def _is_call_of(self, written: CxxFunction) -> bool:
        """Return whether a kernel that calls *written* may call this function, to which it passes places of numbers."""
        ways: dict[str, Any] = {"passing": (), "temporaries": (), "constants": (), "read_only": ()}
        one, other = (dataclasses.replace(each._pattern, **ways) for each in (self, written))
        return self._source is written._source and one == other

    def _get_refusal(self, argtypes: Sequence[types.Type]) -> CxxError | None:
        """Return why a call with these types was refused in the compilation in progress; None if it was not."""
        try:
            call = self._call([drop_number(each) for each in argtypes])
        except CABIError:
            return None
        return self._source.resolver.get_refusal(call)

    @staticmethod
    def _ask_together(calls: Iterable[tuple[CxxFunction, Sequence[types.Type]]]) -> None:
        """Find out the C functions of all calls of a kernel, in the order in which it links them: apart, each would
        cost a run of the compiler."""
        of_libraries: dict[LibrarySource, list[Call]] = {}
        for function, argtypes in calls:
            of_libraries.setdefault(function._source, []).append(function._call(argtypes))
        for source, each in of_libraries.items():
            source.resolver.resolve_linked(each)

    def _call(self, argtypes: Sequence[types.Type]) -> Call:
        """Return the call with arguments of these types. Raise `CABIError` if one cannot be passed to C++."""
        records = self._source.records
        has_python = any(map(is_python_function, argtypes))
        key = tuple(argtypes), tuple(records.items()), current_target() if has_python else None
        if key not in self._calls:
            make_call = functools.partial(self._make_call, argtypes)
            if has_python:
                source = self._source
                found = PythonArguments(argtypes, make_call, source.resolver.compile_alone, records, source.namespace)
                self._calls[key] = found.resolve()
            else:
                self._calls[key] = make_call({})
        return self._calls[key]

    def _make_call(self, argtypes: Sequence[types.Type], python: Mapping[int, PythonArgument]) -> Call:
        parameters = tuple(self._parameters(argtypes, python))
        shown = [
            f"{_show(each.dtype, self._source.records)}&"
            if number in self._referred and isinstance(each, types.Array)
            else _show(each, self._source.records)
            for number, each in enumerate(argtypes)
        ]
        label = f"{self._pattern.name}({', '.join(shown)})"
        functions = tuple(overload.function for each in python.values() for overload in each.overloads)
        return Call(self._source.head, self._pattern, parameters, label, tuple(argtypes), functions)

    def _parameters(self, argtypes: Sequence[types.Type], python: Mapping[int, PythonArgument]) -> Iterator[Parameter]:
        ways = self._pattern.passing
        if len(ways) > len(argtypes):
            raise CABIError(f"passing() names {len(ways)} arguments, but the call has {len(argtypes)}")
        if not argtypes and FIRST in self._pattern.text:
            raise CABIError(f"{self.__name__} takes an object first\n  what to do: pass the object")
        records = self._source.records
        for number, (numba_type, way) in enumerate(itertools.zip_longest(argtypes, ways), 1):
            callee = getattr(numba_type, "numba_cuda_link_object", None)
            if isinstance(callee, CxxFunction) and callee._source is not self._source:
                raise CABIError(f"argument {number}: {callee!r} is a function of another library")
            if number - 1 in python:
                yield python[number - 1].make_parameter()
                continue
            try:
                made = make_parameter(numba_type, way, records, number - 1 in self._pattern.read_only)
            except CABIError as error:
                raise CABIError(f"argument {number}: {error}") from None
            if number - 1 in self._pattern.temporaries:
                made = dataclasses.replace(made, cxx=f"{made.cxx}&", is_number=False, bits=0)
            elif number - 1 in self._pattern.constants:
                made = dataclasses.replace(made, cxx=f"const {made.cxx}", is_number=False, bits=0)
            yield made

    def __numba_cuda_call__(self, *args: types.Type) -> Extern:
        """Return the C function for arguments of these types. Raise `CxxError` if C++ refuses the call."""
        try:
            return self._source.resolver.resolve(self._call(args), current_target())
        except CxxError as error:
            if error._explained is None:
                refused = explain_record(self._source, args, error)
                error._explained = explain_order(self._call, self._source.resolver, args, refused, current_target())
            refused = error._explained
        raise refused

    def _guess_result(self, args: Sequence[types.Type], use: Use) -> types.Type:
        """Return what a call with arguments of these types probably returns, and note the call, while types are
        guessed. Raise `DeferredCallError` if nothing is likely, as for a call with Python functions: C++ decides for
        which types they are compiled."""
        if any(map(is_python_function, args)):
            raise DeferredCallError
        return self._source.resolver.guess(self._call(args), use, current_target())

    def __numba_cuda_link__(self, *args: types.Type) -> list[CUDASource | DeviceFunction]:
        """Return the source of the call, with those of the calls that were declared together with it; and the code of
        the Python functions that C++ gets."""
        call = self._call(args)
        called = (getattr(each, "numba_cuda_link_object", None) for each in args)
        python = [each for each in (*called, *call.python) if isinstance(each, DeviceFunction)]
        return [*self._source.resolver.sources(call, current_target()), *python]


CxxFunction.__doc__ = _Documentation(CxxFunction.__doc__)  # type: ignore[assignment]


def _show_parameters(function: Callable[..., Any]) -> str:
    try:
        return str(inspect.signature(function))
    except ValueError:  # of a function in C without them
        return "(...)"


def drop_number(numba_type: types.Type) -> types.Type:
    """Return the type of a constant as calls have it: without the value of a number, with that of a string."""
    return numba_type if isinstance(numba_type, types.StringLiteral) else types.unliteral(numba_type)


def _show(numba_type: types.Type, structs: Mapping[types.Type, Struct]) -> str:
    if isinstance(numba_type, types.StringLiteral):
        text = numba_type.literal_value  # quotes and backslashes would mean something in C++
        return f"'{text}'" if text.isalnum() and text.isascii() and len(text) < 20 else "string"
    if is_python_function(numba_type):
        return name_python_function(numba_type)
    numba_type = types.unliteral(numba_type)
    if isinstance(numba_type, types.Array):
        return f"array({_show(numba_type.dtype, structs)}, {numba_type.ndim}d, {numba_type.layout})"
    numba_type = numba_type.of_record if isinstance(numba_type, RecordValue) else numba_type
    if isinstance(numba_type, types.Record):
        struct = structs.get(numba_type)
        return struct.name if struct else f"record of {', '.join(numba_type.fields)}"
    if isinstance(numba_type, EnumeratorType):
        return numba_type.cxx_type
    callee = getattr(numba_type, "numba_cuda_link_object", None)
    return str(numba_type) if callee is None else getattr(callee, "__name__", str(numba_type))


def get_function(source: LibrarySource, pattern: CallPattern) -> CxxFunction:
    """Return the function of a library that is called by *pattern*, always the same object."""
    return source.get_object(pattern, lambda: CxxFunction(source, pattern))
