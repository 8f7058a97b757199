# SPDX-License-Identifier: BSD-2-Clause
"""The C function that a call stands for, and the arguments that are passed to it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.diagnostics import messages
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CPrototype

from ..protocol.callee import find_link_key
from ..protocol.value_digest import UnknownValueError, is_numba_type, is_plain, object_of_type, value_digest
from .c_types import CABIError, CType, ctype, is_passed, numba_type_of, pointer_to
from .conversions import ArrayView, ByReference, ByValue, Exact, State, check_exact, check_pointee, reference
from .structs import is_struct, struct_ctype

_POINTERS = (types.CPointer, types.RawPointer)
_WAYS = (Exact, ByReference, ByValue, ArrayView, State)
_MOST_ARGUMENTS = 10_000  # an iterable with more of them may never end
_SYMBOL = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


@messages.suggest_names
class Extern:
    """An ``extern "C"`` device function, as ``__numba_cuda_call__`` returns it.

    Parameters
    ----------
    symbol : str
        The function's name. Calls with other argument types need another function, so the types usually belong in the
        name: ``f"block_sum_{x}"``, or the element type of an array: ``f"fft_{x.dtype}"``.
    returns : Numba type, its name as in signatures, or NumPy dtype or scalar class, optional
        What it returns: a number (``x``, ``"float32"``, ``np.float32``), a pointer (``types.CPointer(...)``,
        ``types.voidptr``), a struct by value of the layout of a tuple or a record, or nothing (the default). In the
        kernel a struct is a tuple, with the names of the record's fields.
    args : iterable of str, or mapping of str to Numba types, optional
        The names of the parameters whose arguments are passed, in order. The values of a mapping are the Numba types,
        or their names, that the arguments are converted to first, or ``None``: ``args={"n": "int32", "x": None}``.
        Converted to ``types.voidptr``, an array, record or tuple is passed as its address, whatever its layout, an
        ``int64`` or ``uint64`` as the address that it is; converted to ``types.CPointer(T)``, an array or tuple of
        ``T``. `exact` and `by_reference` convert numbers in other ways, `by_value` passes a record or tuple as a
        struct, `span` and `mdspan` pass an array as such a view, and `state` passes any value to a `device_function`
        that C++ calls.
        Without ``args``, all arguments that C has types for are passed in order: numbers by value; contiguous arrays (C
        or Fortran order), records and tuples as a pointer to their data; ``None`` as a null pointer. Dtypes, functions,
        strings and other objects are not passed.
    cooperative : bool, optional
        Whether the function synchronises the grid (``cooperative_groups::this_grid().sync()``): kernels that call it
        are launched cooperatively, as with ``cuda.cg.this_grid()``, all blocks running at once.

    Raises
    ------
    TypeError, ValueError
        If ``symbol`` is not a C identifier, C cannot return ``returns``, or ``args`` is neither of the two.
    """

    def __init__(
        self,
        symbol: str,
        *,
        returns: Any = None,
        args: Iterable[str] | Mapping[str, Any] | None = None,
        cooperative: bool = False,
    ):
        if not isinstance(symbol, str):
            raise TypeError(f"Extern's symbol must be a str, not {type(symbol).__name__}")
        if not _SYMBOL.fullmatch(symbol):
            raise ValueError(
                f"Extern's symbol must be a C identifier, not {symbol!r:.50}\n"
                "  what to do: write its name in C; for an array type, put the dtype into it: f'f_{x.dtype}'"
            )
        self.symbol = symbol
        self.returns = _returnable(returns)
        self.return_ctype = self._describe_result()
        self.args = None if args is None else tuple(_request(args))
        self.cooperative = bool(cooperative)

    def _describe_result(self) -> CType:
        """Return how C sees the result."""
        return struct_ctype(self.returns) if is_struct(self.returns) else ctype(self.returns)

    def __repr__(self) -> str:
        args = "" if self.args is None else f", args={dict(self.args)!r}"
        cooperative = ", cooperative=True" if self.cooperative else ""
        return f"Extern({self.symbol!r}, returns={self.returns}{args}{cooperative})"


def _returnable(returns: Any) -> Any:
    try:
        numba_type = numba_type_of(returns)
    except CABIError as error:
        raise CABIError(f"Extern's returns: {error}") from None
    if is_struct(numba_type):
        return numba_type
    c_type = ctype(numba_type)
    if c_type.kind == "pointer" and not isinstance(numba_type, _POINTERS):
        raise CABIError(
            f"Extern cannot return {numba_type}: C returns numbers, pointers and structs\n"
            "  what to do: let the function write into an array that it is given"
        )
    return numba_type


def _request(args: Iterable[str] | Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(args, str):
        raise TypeError(f"Extern's args must be several parameter names or a mapping, not the str {args!r}")
    expected = "such as {'x': types.float32}, or the parameters' names: ['x', 'n']"
    listed = args.items() if isinstance(args, Mapping) else args
    named = messages.items("Extern's args", listed, expected, _MOST_ARGUMENTS)
    for name, target in named if isinstance(args, Mapping) else ((each, None) for each in named):
        if not isinstance(name, str):
            raise TypeError(f"Extern's args must name parameters of the call, got {safe_repr(name, 40)}")
        yield name, target if target is None or isinstance(target, _WAYS) else _convert(name, target)


def _convert(name: str, target: Any) -> Any:
    try:
        return numba_type_of(target)
    except CABIError as error:
        raise CABIError(f"Extern's args, {name!r}: {error}") from None


@dataclass(frozen=True)
class Passed:
    """One argument of the C function: the argument number *index* of the call, as *numba_type*, in C a *c_type*.
    *asked_for* is what the ``args`` of `Extern` name, and *name* is that of its parameter."""

    index: int
    numba_type: Any
    c_type: CType
    asked_for: Any = None
    name: str = ""


@dataclass(frozen=True)
class Prototype:
    """A C function, and how to call it with arguments of certain Numba types."""

    symbol: str
    returns: Any
    return_ctype: CType
    args: tuple[Passed, ...]
    cooperative: bool = False

    @property
    def c_prototype(self) -> CPrototype:
        return CPrototype(self.return_ctype, tuple(arg.c_type for arg in self.args), self._names)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(arg.name for arg in self.args)

    def with_read_only(self, positions: Sequence[int]) -> CPrototype:
        """Return the types that C sees where the arguments at these *positions* are parts of read-only arrays."""
        found = [
            replace(arg.c_type, cxx=f"const {arg.c_type.cxx.removeprefix('const ')}")
            if arg.index in positions and arg.c_type.kind == "pointer"
            else arg.c_type
            for arg in self.args
        ]
        return CPrototype(self.return_ctype, tuple(found), self._names)

    def __str__(self) -> str:
        return f'extern "C" __device__ {self.c_prototype.declaration(self.symbol)}'


def prototype(extern: Extern, parameters: Mapping[str, Any], typing_context: Any) -> Prototype:
    """Return the C function *extern* for a call whose *parameters* have these Numba types, or raise `CABIError`."""
    names = list(parameters)
    args = []
    for name, target in ((name, None) for name in names) if extern.args is None else extern.args:
        if name not in parameters:
            raise CABIError(
                f"Extern's args name {name!r}, but the parameters of the call are {', '.join(names) or 'none'}"
                "\n  what to do: name these parameters of __numba_cuda_call__ in args=, or leave it out to pass all"
            )
        passed = _passed(name, parameters[name], target, typing_context, chosen=extern.args is not None)
        if passed is not None:
            args.append(Passed(names.index(name), *passed, target, name))
    return Prototype(extern.symbol, extern.returns, extern.return_ctype, tuple(args), extern.cooperative)


def check_values(c_function: Prototype, given: Mapping[str, Any]) -> None:
    """Raise `CABIError` if an argument that is passed exactly has a value that its type in C does not have; the types
    *given* for the parameters of the call are literal for constants."""
    names = list(given)
    for arg in c_function.args:
        if isinstance(arg.asked_for, Exact):
            check_exact(names[arg.index], given[names[arg.index]], arg.asked_for)


def _passed(name: str, given: Any, target: Any, typing_context: Any, chosen: bool) -> tuple[Any, CType] | None:
    source = types.unliteral(given)
    has_address = isinstance(source, (types.Array, types.Record, types.BaseTuple, *_POINTERS)) or source == types.none
    check_pointee(name, source, target)
    if has_address and isinstance(target, _POINTERS):
        is_const = isinstance(source, types.BaseTuple) or (isinstance(source, types.Array) and not source.mutable)
        passed = ctype(target)
        # What a binding declares as an address is whatever C++ takes it for.
        return source, replace(passed, cxx=f"const {passed.cxx}") if is_const and passed.pointee else passed
    if isinstance(target, State):
        return source, pointer_to("const void")
    if isinstance(target, ByReference):
        converted, c_type = reference(name, given, target)
        if typing_context.can_convert(given, converted) is None:
            raise CABIError(f"argument {name!r}: {given} cannot be converted to {converted}")
        return converted, c_type
    if isinstance(target, ArrayView):
        return source, _named_in_errors(name, target.ctype, source)
    if isinstance(target, ByValue):
        if is_struct(source):
            return source, _named_in_errors(name, struct_ctype, source)
        if not isinstance(source, (types.Number, types.Boolean, types.EnumMember)):
            raise CABIError(
                f"argument {name!r}: {given} cannot be passed by value: it is not a record, tuple or number"
            )
        target = None
    if isinstance(target, Exact):
        target = target.numba_type
    if target is not None and target != source:
        if typing_context.can_convert(given, target) is None:
            raise CABIError(
                f"argument {name!r}: {given} cannot be converted to {target} of Extern's args"
                f"\n  what to do: pass a value of that type, or one that converts to it"
            )
        source = target
    elif not is_passed(given):
        if chosen and isinstance(given, types.StringLiteral):
            raise CABIError(
                f"argument {name!r}: Extern passes no strings\n  what to do: call the function by name,"
                " autolink.cxx(...), which passes a constant string as const char*"
            )
        if chosen:
            raise CABIError(f"argument {name!r}: {given} is known only to the compiler and cannot be passed to C")
        return None
    if source == types.none:
        return source, pointer_to("void")
    return source, _named_in_errors(name, ctype, source)


def _named_in_errors(name: str, describe: Callable[[Any], CType], numba_type: Any) -> CType:
    try:
        return describe(numba_type)
    except CABIError as error:
        raise CABIError(f"argument {name!r}: {error}") from None


_LONGEST_PART = 24
_LONGEST_NAME = 80
_REMEDY = "pass what distinguishes it: numbers, strings, types; or give its class a __numba_cuda_link_key__"
_DIGITS = 16  # of the digest: 64 bits


def symbol(name: str, *parts: Any) -> str:
    """Return a C identifier for the instance of a function that *parts* describe.

    Parts are strings, Numba types, dtypes, numbers, enumerations, arrays, tuples of these, and objects that have a
    ``__numba_cuda_link_key__``, which is asked for the Numba types among the parts. They count by their content: the
    symbol is the same in every process in which they are equal, and another one where they differ. It begins with
    *name* and what is readable of the parts, and ends with digits that stand for their content::

        autolink.symbol("reduce", 128, types.float32[::1])  # reduce_128_array_float32_1d_C_...

    Functions, and objects without a link key, are deprecated as parts, and refused from 0.3.0 on.

    Raises `TypeError` if *name* is not a C identifier, or the content of a part is not known: that of an object written
    in C, of an array on the device, or of an object that refers to a large part of the program.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise TypeError(f"symbol() takes a C identifier as the name, got {safe_repr(name)}")
    argtypes = [part for part in parts if is_numba_type(part)]
    digests = []
    for number, part in enumerate(parts, 1):
        try:
            digests.append(value_digest(_content(part, argtypes)))
        except UnknownValueError as error:
            raise TypeError(
                f"symbol() cannot name a {type(part).__qualname__} by its content: {error}\n"
                f"  part {number} of {name!r}: {safe_repr(part)}\n"
                f"  what to do: {_REMEDY}"
            ) from error
    readable = "_".join(filter(None, [name, *map(_readable, parts)]))[:_LONGEST_NAME].rstrip("_")
    return f"{readable}_{value_digest(name, digests).hex()[:_DIGITS]}"


def _content(part: Any, argtypes: Sequence[Any]) -> Any:
    if isinstance(part, (tuple, frozenset)):
        return type(part), [_content(each, argtypes) for each in part]
    meant = object_of_type(part) if is_numba_type(part) else part
    link_key = None if meant is None else find_link_key(meant)
    if link_key is not None:
        return type(meant), link_key(*argtypes)
    is_named = is_plain(part) or isinstance(part, type) or is_numba_type(part)
    if not is_named and not hasattr(type(part), "_cxx_text"):
        value_digest(part)  # raises before it warns
        warnings.warn(
            f"symbol() names a {type(part).__qualname__} by its content, which is deprecated and ends with 0.3.0\n"
            f"  got: {safe_repr(part)}\n  what to do: {_REMEDY}",
            DeprecationWarning,
            stacklevel=3,
        )
    return part


def _readable(part: Any) -> str:
    """Return what a reader recognises of *part*, in characters of identifiers."""
    part = getattr(part, "dispatcher", part)  # of the type of a device function, whose name is that function's
    part = getattr(part, "py_func", part)
    if isinstance(part, (str, bool, int, float, complex)):
        text = str(part)
    elif isinstance(part, tuple):
        text = "_".join(map(_readable, part))
    elif hasattr(part, "__numba_cuda_link__") or type(part).__str__ is object.__str__:
        text = getattr(part, "__name__", type(part).__name__)
    else:
        text = str(getattr(part, "__name__", part))
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:_LONGEST_PART]
