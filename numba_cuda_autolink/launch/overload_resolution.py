# SPDX-License-Identifier: BSD-2-Clause
"""Which signature of a kernel fits the arguments of a launch, and why none does."""

from __future__ import annotations

import bisect
import contextlib
import enum
import numbers
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, at_call
from ..plain_types import Parameter, end_of, item_size, leaves
from ..printable_texts import number_of
from .argument_packing import Buffer, is_integer, writers
from .arrays import Misfit, shown, view_of
from .driver import current_device

# The types of Python's numbers, as Numba takes them.
_OWN = {bool: "|b1", int: "<i8", float: "<f8", complex: "<c16"}
# Numbers of bits up to which integers fit the same parameters: bool, signed and unsigned integers, floats.
_BITS = (1, 7, 8, 15, 16, 31, 32, 63, 64, 1023)
_MOST_SHOWN = 8


def differ_in_memory(signatures: Sequence[Any]) -> bool:
    """Return whether two of *signatures* differ in nothing but the layout of arrays, or in whether they are
    read-only."""
    return len({tuple(map(_without_layout, each.parameters)) for each in signatures}) < len(signatures)


def _without_layout(parameter: Parameter) -> Parameter:
    items = tuple(map(_without_layout, parameter.items))
    return parameter._replace(name="", layout="A", readonly=False, items=items)


def argument_key(args: tuple[Any, ...], with_memory: bool) -> Any:
    """Return what the choice of a signature for *args* depends on: types, the ranges of integers and, *with_memory*,
    the layouts of arrays."""
    return tuple([_key(arg, with_memory) for arg in args])


def _key(arg: Any, with_memory: bool) -> Any:
    kind = type(arg)
    if kind is float:
        return kind
    if kind is int:
        return kind, arg < 0, bisect.bisect_left(_BITS, (~arg if arg < 0 else arg).bit_length())
    if with_memory and not issubclass(kind, (tuple, enum.Enum, numbers.Number)):
        with contextlib.suppress(Misfit):
            view = view_of(arg, None, current_device())
            layouts = tuple(view.is_contiguous(layout, item_size(view.dtype or "|u1")) for layout in "CF")
            return kind, view.dtype, len(view.shape), layouts, view.readonly
    try:
        dtype, ndim = getattr(arg, "dtype", None), getattr(arg, "ndim", None)
    except Exception:  # of a foreign object
        return kind
    if ndim:
        return kind, dtype, ndim
    if issubclass(kind, tuple):
        return kind, argument_key(arg, with_memory)
    if issubclass(kind, enum.Enum):
        return kind, _key(arg.value, with_memory)
    if is_integer(arg):
        with contextlib.suppress(Exception):  # of a foreign number
            return kind, dtype, _key(int(arg), with_memory)
    return kind, dtype, ndim


def choose(kernel: str, signatures: Sequence[Any], args: tuple[Any, ...]) -> int:
    """Return the number of the signature that *args* fit best, with the fewest conversions; of several the first. Raise
    `ArgumentError` if they fit none. *signatures* have ``text`` and ``parameters``."""
    ranked, misfits = [], []
    for number, signature in enumerate(signatures):
        if len(signature.parameters) != len(args):
            continue
        found = _misfits(kernel, signature.parameters, args)
        if found:
            misfits.append((len(found), number, found))
        else:
            costs = (_cost(parameter, arg) for parameter, arg in zip(signature.parameters, args, strict=True))
            ranked.append((sum(costs), number))
    if ranked:
        return min(ranked)[1]
    raise _none_fits(kernel, signatures, args, sorted(misfits))


def _misfits(kernel: str, parameters: Sequence[Parameter], args: tuple[Any, ...]) -> list[ArgumentError]:
    """Return an error for each of *args* that does not fit, as a launch would raise it."""
    device, places = current_device(), leaves(parameters)
    unused = Buffer(end_of(places))
    found = []
    for write, arg in zip(writers(kernel, parameters, places, unused, device), args, strict=True):
        try:
            write(arg, None)
        except ArgumentError as error:
            found.append(error)
    return found


def _none_fits(
    kernel: str, signatures: Sequence[Any], args: tuple[Any, ...], misfits: list[tuple[int, int, list[ArgumentError]]]
) -> ArgumentError:
    """Return the error for *args*. *misfits* are those of the signatures of as many parameters, the closest first."""
    if not misfits:
        counts = sorted({len(signature.parameters) for signature in signatures})
        diagnosis = f"takes {' or '.join(map(str, counts))} arguments, got {len(args)}"
        return ArgumentError(at_call(f"{kernel} {diagnosis}{_list(signatures, {})}{_describe_given(args)}"))
    _, _, closest = misfits[0]
    common = set.intersection(*({each.position for each in found} for *_, found in misfits))
    worst = next((each for each in closest if each.position in common), closest[0])
    what = f"argument {worst.position}, {worst.parameter!r},"
    diagnosis = f"{what} fits none of its signatures" if common else f"{what} does not fit the closest signature"
    remedy = f"\n  what to do: {worst.remedy}" if worst.remedy else ""
    listed = _list(signatures, {number: found for _, number, found in misfits})
    error = ArgumentError(at_call(f"{kernel}: {diagnosis}{listed}{_describe_given(args)}{remedy}"))
    error.position, error.parameter, error.got = worst.position, worst.parameter, worst.got
    error.expected = " or ".join(
        dict.fromkeys(each.expected for *_, found in misfits for each in found if each.position == worst.position)
    )
    error.remedy = worst.remedy
    return error


def _list(signatures: Sequence[Any], misfits: dict[int, list[ArgumentError]]) -> str:
    """Return the signatures, the closest first, each with what does not fit it."""
    order = [*misfits, *(number for number in range(len(signatures)) if number not in misfits)]
    lines = []
    for number in order[:_MOST_SHOWN]:
        lines.append(f"    {signatures[number].text}")
        if number not in misfits and misfits:
            lines.append(f"      takes {number_of(len(signatures[number].parameters), 'argument')}")
        for each in misfits.get(number, ()):
            lines.append(
                f"      argument {each.position}, {each.parameter!r}: expected {each.expected}, got {each.got}"
            )
    if len(order) > _MOST_SHOWN:
        lines.append(f"    and {len(order) - _MOST_SHOWN} more")
    return "\n  signatures:\n" + "\n".join(lines)


def _describe_given(args: tuple[Any, ...]) -> str:
    return f"\n  got: ({', '.join(map(_type_shown, args))})"


def _type_shown(arg: Any) -> str:
    """Return the type of an argument as signatures write it."""
    if isinstance(arg, tuple):
        return f"({', '.join(map(_type_shown, arg))})"
    if isinstance(arg, (numbers.Number, str, bytes, list, dict)) or arg is None:
        return shown(arg)
    try:
        return str(view_of(arg, None, current_device()))
    except Misfit as misfit:
        return misfit.got


# How well what fits is passed


def _cost(parameter: Parameter, arg: Any) -> int:
    """Return how far *arg*, which fits, is from *parameter*."""
    kind = parameter.kind
    if parameter.form is not None:
        return int(parameter.layout == "A")
    if kind == "tuple":
        return sum(_cost(item, each) for item, each in zip(parameter.items, arg, strict=True))
    if kind == "none":
        return 0
    if kind in ("record", "pointer"):
        return 40 if isinstance(arg, numbers.Number) else 2
    return _cost_of_number(kind, str(parameter.dtype), arg)


def _cost_of_number(kind: str, dtype: str, arg: Any) -> int:
    if isinstance(arg, enum.Enum):
        arg = arg.value
    if (getattr(getattr(arg, "dtype", None), "str", None) or _OWN.get(type(arg))) == dtype:
        return 0
    if kind in ("bool", "datetime") or isinstance(arg, bool):
        return 30  # what Numba itself does not convert
    size = min(int(dtype[2:]), 8)
    if kind == "number" and dtype[1] in "iu":
        return 10 - size
    if isinstance(arg, numbers.Integral):
        return 20
    return 10 - size + 10 * (kind == "complex" and isinstance(arg, numbers.Real))
