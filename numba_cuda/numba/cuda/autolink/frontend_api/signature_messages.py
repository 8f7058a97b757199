# SPDX-License-Identifier: BSD-2-Clause
"""What is wrong with what is given as a signature: an unknown type in its text, or something that is not a type."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import traceback
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_text, shown

from numba_cuda_autolink.errors import at_call
from numba_cuda_autolink.printable_texts import did_you_mean
from numba_cuda_autolink.short_tracebacks import is_frame_of_compiler, place_of_user

_EXAMPLE = "void(float32[::1], int32)"
_OF_ARRAYS = frozenset(("size", "shape", "ndim", "strides", "dtype", "T", "flat"))
_NOT_SEVERAL = re.compile(r"evaluates to '(\w+)' instead of tuple or Signature")
_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")


def example_for(function: Any, returns: str = "void") -> str:
    """Return a signature with one type for each parameter of a Python *function*: of an array with as many dimensions
    as it has indices, and of a number for what is not used as an array."""
    indices: dict[str, int] = {}
    try:
        nodes = list(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))))
    except (OSError, TypeError, SyntaxError):  # there is no source
        nodes = []
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            given = len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
            indices[node.value.id] = max(given, indices.get(node.value.id, 1))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _OF_ARRAYS:
            indices.setdefault(node.value.id, 1)
    number = "int32" if returns == "void" else returns
    shown = []
    for parameter in inspect.signature(function).parameters:
        dimensions = indices.get(parameter, 0)
        shown.append(f"float32[{', '.join([':'] * (dimensions - 1) + ['::1'])}]" if dimensions else number)
    return f"{returns}({', '.join(shown)})"


def describe_refused(signature: Any, error: Exception, names: Mapping[str, Any], example: str = _EXAMPLE) -> str:
    """Return what is wrong with a *signature* over which a front end raised *error*; *names* are those of its types."""
    if not isinstance(signature, str):
        given = signature if isinstance(signature, tuple) else (signature,)
        meant = next(((each, name) for each in given if (name := type_meant_by(each))), None)
        expected = f"such as {_EXAMPLE!r} or (types.float32[::1], types.int32)"
        if meant is not None:
            expected = f"such as (types.{meant[1]},): Numba's type for {meant[0]!r}"
        return (
            f"a signature is text or a tuple of Numba types, got {shown(signature)}\n  reason: {safe_text(error)}\n"
            f"  expected: {expected}"
        )
    # Text is evaluated as Python, and may raise anything.
    why = error.msg if isinstance(error, SyntaxError) else str(error).partition("\n")[0] or "Numba has no such type"
    unknown = [each for each in _NAME.findall(signature) if each not in names]
    near = did_you_mean(unknown[0], names) if unknown else ""
    advice = f"write the types, such as {example!r}"
    if (written := _as_signature(signature, names)) != signature:
        advice, near = f"write {written!r}", ""
        if _PRINTED.search(signature):
            why = "that is how Numba prints types"
        elif found := _OF_PYTHON_ALONE.search(signature):
            why = f"{found[0]} is a type of Python, and Numba's has another name"
    if (found := _NOT_SEVERAL.search(why)) and isinstance(names.get(found[1]), type):
        why, advice = "it is one type", f"write 'void({signature})' for one argument of that type"
    return f"{signature!r} is not a signature: {why}{near}\n  what to do: {advice}"


# An array as Numba prints its type: ``array(float32, 2d, C)``.
_PRINTED = re.compile(r"\b[aA]rray\((?P<dtype>\w+), (?P<ndim>[1-9])d, (?P<layout>[ACF])\)")
_OF_PYTHON = {"float": "float64", "int": "int64", "bool": "boolean", "complex": "complex128"}
_OF_PYTHON_ALONE = re.compile(r"(?<![\w.])(?:float|int|bool|complex)\b")


def _as_signature(text: str, names: Mapping[str, Any]) -> str:
    """Return a signature in which types are those of NumPy, of Python or as Numba prints them, as Numba reads it, where
    it has these *names*; any other *text* as it is."""

    def array(found: re.Match[str]) -> str:
        indices = [":"] * int(found["ndim"])
        if found["layout"] != "A":
            indices[-1 if found["layout"] == "C" else 0] = "::1"
        return f"{found['dtype']}[{', '.join(indices)}]"

    meant = re.sub(r"\b(?:np|numpy|types|numba|cuda)\.(?=\w)", "", _PRINTED.sub(array, text))
    meant = _OF_PYTHON_ALONE.sub(lambda found: _OF_PYTHON[found[0]], meant)
    is_known = all(each in names for each in _NAME.findall(meant))
    if meant == text or not is_known:
        return text
    return meant if "(" in meant else f"void({meant})"


def type_meant_by(given: Any) -> str:
    """Return the name of the Numba type of values of *given*, a class of numbers in Python or NumPy, or a dtype; empty
    for all else."""
    is_class = isinstance(given, type) and issubclass(given, (bool, int, float, complex, np.generic))
    name = np.dtype(given).name if is_class or isinstance(given, np.dtype) else ""
    name = "boolean" if name == "bool" else name
    return name if isinstance(getattr(types, name, None), types.Type) else ""


def signature_message(error: Exception) -> str | None:
    """Return the message of an *error* that a front end raised over a signature that the user gave; ``None`` for every
    other."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == "normalize_signature" and is_frame_of_compiler(frame):
            message = describe_refused(frame.f_locals["sig"], error, vars(frame.f_globals["types"]))
            return at_call(message, "at", place_of_user(error))
    return None
