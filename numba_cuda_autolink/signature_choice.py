# SPDX-License-Identifier: BSD-2-Clause
"""Which signature of a kernel fits the arguments of a launch."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from .arguments import Misfit, view_of
from .driver import current_context, device_of
from .errors import ArgumentError, called_at
from .parameters import Parameter, item_size

# The types of Python's numbers, as Numba takes them.
_OWN = {bool: "|b1", int: "<i8", float: "<f8", complex: "<c16"}


def argument_key(args: tuple[Any, ...]) -> Any:
    """Return what tells arguments of different types apart, except for the layout of arrays."""
    return tuple((type(arg), getattr(arg, "dtype", None), getattr(arg, "ndim", None)) for arg in args)


def choose(kernel: str, signatures: Sequence[Any], args: tuple[Any, ...]) -> int:
    """Return the number of the signature that *args* fit best, with the fewest conversions; of several the first. Raise
    `ArgumentError` if they fit none. *signatures* have ``text`` and ``parameters``."""
    ranked = []
    for number, signature in enumerate(signatures):
        if len(signature.parameters) == len(args):
            costs = [_cost(parameter, arg) for parameter, arg in zip(signature.parameters, args, strict=True)]
            if None not in costs:
                ranked.append((sum(cost for cost in costs if cost), number))
    if ranked:
        return min(ranked)[1]
    given, texts = ", ".join(map(_shown, args)), "".join(f"\n    {signature.text}" for signature in signatures)
    raise ArgumentError(
        f"{kernel} has no signature for these arguments{called_at()}\n  expected one of:{texts}\n  got: ({given})"
    )


def _cost(parameter: Parameter, arg: Any) -> int | None:
    """Return how far *arg* is from *parameter*, ``None`` if it does not fit."""
    kind, dtype = parameter.kind, parameter.dtype
    if kind == "array":
        try:
            view = view_of(arg, 0, device_of(current_context()[0]))
        except Misfit:
            return None
        if view.dtype is not None and (view.dtype != dtype or len(view.shape) != parameter.ndim):
            return None
        if view.readonly and not parameter.readonly:
            return None
        if parameter.layout == "A":
            return 1
        return 0 if view.is_contiguous(parameter.layout, item_size(dtype or "")) else None
    if kind == "tuple":
        if not isinstance(arg, tuple) or len(arg) != len(parameter.items):
            return None
        costs = [_cost(item, each) for item, each in zip(parameter.items, arg, strict=True)]
        return None if None in costs else sum(cost for cost in costs if cost)
    if kind == "none":
        return 0 if arg is None else None
    if kind in ("record", "pointer"):
        return None if isinstance(arg, (float, complex, tuple)) or arg is None else 2
    return _cost_of_number(kind, str(dtype), arg)


def _cost_of_number(kind: str, dtype: str, arg: Any) -> int | None:
    own = getattr(getattr(arg, "dtype", None), "str", None) or _OWN.get(type(arg))
    if own == dtype:
        return 0
    if kind == "datetime" or isinstance(arg, bool) or kind == "bool":
        return None
    if isinstance(arg, numbers.Integral):
        if kind == "number" and dtype[1] in "iu":
            bits = 8 * int(dtype[2:])
            low, high = (0, 2**bits) if dtype[1] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
            return 2 + 8 - int(dtype[2:]) if low <= int(arg) < high else None
        return 20
    if isinstance(arg, numbers.Real):
        return (
            None if kind == "number" and dtype[1] in "iu" else 2 + 8 - min(int(dtype[2:]), 8) + 4 * (kind == "complex")
        )
    return 2 if isinstance(arg, numbers.Complex) and kind == "complex" else None


def _shown(arg: Any) -> str:
    try:
        if hasattr(arg, "shape") and hasattr(arg, "dtype"):
            return f"{len(arg.shape)}d array of {arg.dtype}"
    except Exception:  # an attribute of a foreign object
        pass
    return f"{type(arg).__name__} {arg!r:.30}"
