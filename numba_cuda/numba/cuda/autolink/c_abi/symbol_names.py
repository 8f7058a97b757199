# SPDX-License-Identifier: BSD-2-Clause
"""Symbols of C functions, made of what distinguishes one instance of a function from another."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr

from ..protocol.callee import find_callee
from ..protocol.value_digest import UnknownValueError, is_numba_type, is_plain, object_of_type, value_digest

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
    callee = None if meant is None else find_callee(meant)
    if callee is not None and callee.link_key is not None:
        return type(meant), callee.link_key(*argtypes)
    is_named = is_plain(part) or isinstance(part, type) or is_numba_type(part)
    if not is_named and not hasattr(type(part), "cxx_text"):
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
