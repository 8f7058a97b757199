# SPDX-License-Identifier: BSD-2-Clause
"""Why C++ does not take an argument as an object of the class that it declares, or as an enumerator, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from numba.cuda.cudadrv.external_code.compile.nvrtc_log import Diagnostic

from .argument_kinds import ask_parameters, describe, find_array, find_kind
from .remedies import NUMPY_TYPES, TAKE_FUNCTION_OBJECT, find_object

_CLASS = re.compile(r"[A-Za-z_][\w:]*")
_CALLED = re.compile(r"(?:\w+::)*\w+(?:<.*>)?")
_OF_RECORD = re.compile(r"record of |Struct\{|(?:const )?void\*")
# What `ask_type` says of a pointer to an array of one element, of two for an enumeration, of three for a class without
# members.
_ASKED = "static_cast<int (*)[1 + __is_enum({0}) + 2 * __is_empty({0})]>(nullptr)"
_CLASS_OF, _ENUMERATION, _EMPTY = "int (*)[1]", "int (*)[2]", "int (*)[3]"


class RefusedObject(NamedTuple):
    """Why an argument is no object: the *diagnosis* and the *remedy*."""

    diagnosis: str
    remedy: str


def explain_object(
    error: Diagnostic,
    called: str,
    arguments: Sequence[str],
    functors: Sequence[str],
    python: Sequence[int],
    ask_type: Callable[[str], str | None],
) -> RefusedObject | None:
    """Return why C++ does not take one of the *arguments* of the function that is *called*, as messages write their
    types, as the class or enumeration that an *error* names; ``None`` for another error. *functors* are the names of
    C++ that are passed, *python* the numbers of the arguments that are Python functions, counted from 1."""
    number, taken = find_object(error)
    if not number and error.place in functors and error.place in arguments:  # in a template that gets the name
        number, taken = arguments.index(error.place) + 1, error.place
    is_class = _CLASS.fullmatch(taken) is not None and taken not in NUMPY_TYPES
    if not 0 < number <= len(arguments) or not is_class or "operator" in called:
        return None
    given, kind = arguments[number - 1], ask_type(_ASKED.format(taken))
    is_function = given in functors or number in python
    is_other = _CLASS.fullmatch(given) is not None and given not in _NUMBERS and find_kind(given) is None
    if kind not in (_CLASS_OF, _ENUMERATION, _EMPTY) or _OF_RECORD.match(given) or (is_other and not is_function):
        return None
    where = called if _CALLED.fullmatch(called) else "C++"
    diagnosis = f"argument {number} is {describe(given)}, and {where} takes {taken}"
    if kind == _ENUMERATION:
        is_number = given in _NUMBERS
        return RefusedObject(diagnosis, f"make it one in the kernel: lib[{taken!r}](x)") if is_number else None
    if array := find_array(given):
        which = "the array" if array.element == taken else f"an array of lib.record({taken!r})"
        return RefusedObject(diagnosis, f"pass an element of {which}, such as x[i]")
    known = ask_parameters(called, ask_type) if _CALLED.fullmatch(called) else None
    count = len(arguments if known is None else known)  # members may have been passed
    made = _make_object(called, count, number, taken, given, is_empty=kind == _EMPTY)
    if given in functors:
        what = f"{given}, the name of a class, and {where} takes an object"
        return RefusedObject(f"argument {number} is {what}", f"let a lambda make the object: {made}")
    if number in python:
        made = f"let a lambda make the {taken}: {made}"
        return RefusedObject(diagnosis, f"{TAKE_FUNCTION_OBJECT};\n    or {made}")
    is_tuple = (of_kind := find_kind(given)) is not None and of_kind.name == "a tuple"
    whole = f"let a lambda make the {taken}{' of its members' if is_tuple else ''}: {made}"
    if given in _NUMBERS and kind != _EMPTY:
        whole += f";\n    or pass an element of an array of lib.record({taken!r})"
    return RefusedObject(diagnosis, whole)


_PARTS = "x.real(), x.imag()"  # of a complex number
# As messages write their types.
_NUMBERS = {name.removeprefix("np.").rstrip("_") for name in NUMPY_TYPES.values()}


def _make_object(called: str, count: int, number: int, taken: str, given: str, *, is_empty: bool) -> str:
    """Return the text of a lambda that makes an object of the class *taken* of the value *given*, for the argument with
    this *number* of *count*, and calls what is *called* with it."""
    others = [chr(ord("a") + each) for each in range(count - 1)]
    parameters = [f"auto&& {each}" for each in others]
    values = "" if is_empty else "x..."
    if given.startswith("complex") and not is_empty:
        parameters.insert(number - 1, "auto x")
        values = "float(x.real()), float(x.imag())" if taken == "float2" and given != "complex64" else _PARTS
    elif not is_empty:
        parameters.append("auto... x")
    others.insert(number - 1, f"{taken}{{{values}}}")
    function = called if _CALLED.fullmatch(called) else "f"
    return f"lib.expr('[]({', '.join(parameters)}) {{ return {function}({', '.join(others)}); }}')"
