# SPDX-License-Identifier: BSD-2-Clause
"""What to do about the diagnoses of front ends that kernel authors meet most: plain Python that kernels do not have."""

from __future__ import annotations

import math
import re

import numpy as np
from numba.cuda.cudadrv.external_code.diagnostics.messages import did_you_mean

_UNTYPED = r"Untyped global name '.*': Cannot determine Numba type of <class "
_REMEDIES = {
    re.compile(pattern): remedy
    for pattern, remedy in {
        rf"{_UNTYPED}'function'>": "decorate it with @cuda.jit(device=True)",
        rf"{_UNTYPED}'type'>": "make the object before the kernel, and pass its values, or a record",
        rf"{_UNTYPED}'(?:dict|list|set|str|bytes)'>": (
            "give it as a tuple of numbers, an array, or arguments of the kernel"
        ),
        rf"{_UNTYPED}'[\w.]*device_variables\.Variable'>": (
            "declare it extern in C++, and call a function that reads or writes it"
        ),
        r"No implementation of array\((?:shape[:=] ?)?(?:u?int\d+|(?:Uni)?Tuple\(u?int)": (
            "give the array a shape of constants; dynamic shared memory is cuda.shared.array(0, dtype)"
        ),
        r"No implementation of array\(.*Literal\[str\]": "give the dtype as a NumPy type, such as np.float32",
        r"No implementation of getitem\(Tuple\(": "give the index of a tuple of different types as a constant",
        r"No implementation of exception_match\(|No implementation of mark_try_block": (
            "kernels catch no exceptions: write a condition"
        ),
        r".*(?:\bDictType\[|\b(?:reflected )?[lL]ist(?:Type\[|\()|\bset\()": (
            "kernels have no lists, dictionaries and sets: make an array, with cuda.local.array or before the kernel"
        ),
        r"No conversion from .* to none$": "write the result to an array: kernels return nothing",
        r"non-precise type array\(pyobject": "pass an array of numbers: its dtype is object",
        r"Cannot unify ": "give the variable one type on all paths, or use a variable for each",
        r"cannot type infer runaway recursion": "let the function return on one path before it calls itself",
        r"Cannot modify readonly array": "pass an array that can be written to: kernels read global ones as constants",
        r"Unsupported array index type float": "convert the index with int(...)",
        r"printing unimplemented for values of type unicode_type"
        r"|No implementation of (?:str|format|mod)\((?:Literal\[str\]|\w+\))": (
            "kernels make no text: print values, as in print('x:', x[i])"
        ),
    }.items()
}
_OF_ARRAY = re.compile(r"Unknown attribute '(\w+)' of type (?:readonly )?array\(.*")
_UNKNOWN_NAME = re.compile(r"NameError: (?:global )?name '(\w+)' is not defined")
_LINEAR_ALGEBRA = re.compile(
    r"scipy [\d.]+\+ is required for linear algebra|Unknown attribute '\w+' of type Module\(<module 'numpy.linalg'.*"
)
_COUNT = re.compile(r"(?:not enough|too many) values to unpack \(expected (\d+)(?:, got (\d+))?\)$")


def with_remedy(message: str) -> str:
    """Return the *message* of an error, a diagnosis of a front end, with what to do about it as a last line, if that is
    known."""
    if "what to do: " in message:
        return message
    if count := _COUNT.match(message):  # where a front end takes the arguments of a call apart
        return f"a call takes {count[1]} arguments here{f', got {count[2]}' if count[2] else ', got more'}"
    if (name := _UNKNOWN_NAME.match(message)) and hasattr(math, name[1]):
        return f"{message}\n  what to do: import math, and call math.{name[1]}"
    if _LINEAR_ALGEBRA.match(message):
        return (
            "kernels have no linear algebra of NumPy\n  what to do: write it with loops, call a C++ library,"
            " autolink.cxx(...), or compute it before the kernel"
        )
    if attribute := _OF_ARRAY.match(message):
        return message.replace(attribute[0], attribute[0] + did_you_mean(attribute[1], dir(np.ndarray)), 1)
    remedy = next((remedy for pattern, remedy in _REMEDIES.items() if pattern.match(message)), None)
    return message if remedy is None else f"{message}\n  what to do: {remedy}"
