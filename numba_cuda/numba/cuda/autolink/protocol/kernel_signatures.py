# SPDX-License-Identifier: BSD-2-Clause
"""Signatures of kernels and device functions, as ``cuda.jit`` takes them, with errors that say what is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from numba.cuda import types

from numba_cuda_autolink.printable_texts import number_of

from ..frontend_api.front_end import NUMBA_CUDA, Vocabulary, core_type, vocabulary_of
from ..frontend_api.launch_messages import wrong_count
from ..frontend_api.signature_messages import describe_refused, example_for
from .callee import find_callee


def normalize(signature: Any, vocabulary: Vocabulary = NUMBA_CUDA, function: Any = None) -> tuple[tuple[Any, ...], Any]:
    """Return the types of the arguments and of the result, ``None`` where *signature* does not give it, as types of the
    front end of the *vocabulary*. Types may be given as those of any front end. An error about text shows a signature
    for the kernel made of the Python *function*, if that is given.

    Raises `ValueError` for text that is not a signature, and `TypeError` for an object among the types.
    """
    given = signature if isinstance(signature, tuple) else ()
    if (called := next(filter(_is_object, given), None)) is not None:
        raise TypeError(
            f"an object cannot be an argument of a kernel: {called!r}\n"
            "  what to do: make the kernel in a function that takes the object, and give the other arguments' types"
        )
    if not isinstance(signature, (str, tuple)) and vocabulary_of(signature).is_type(signature):
        text = type_text(signature)
        raise TypeError(
            f"a signature has the types of all arguments, got the type {text}\n"
            f"  what to do: write 'void({text})' for one argument of that type"
        )
    try:
        argtypes, return_type = vocabulary.sigutils.normalize_signature(_translate(signature, vocabulary))
    except Exception as error:
        kind = ValueError if isinstance(signature, str) else TypeError
        example = () if function is None else (example_for(function),)
        raise kind(describe_refused(signature, error, vars(vocabulary.types), *example)) from None
    return tuple(argtypes), return_type


def type_text(numba_type: Any) -> str:
    """Return the type of an argument as signatures have it: ``float32[:, ::1]``."""
    numba_type = core_type(numba_type)
    if not isinstance(numba_type, types.Array) or not (numba_type.mutable and numba_type.aligned):
        return str(numba_type)
    indices = [":"] * numba_type.ndim
    if numba_type.layout in ("C", "F") and indices:
        indices[-1 if numba_type.layout == "C" else 0] = "::1"
    return f"{type_text(numba_type.dtype)}[{', '.join(indices)}]"


def arguments_text(argtypes: Iterable[Any]) -> str:
    """Return the types of all arguments as signatures have them: ``(float32[::1], int32)``."""
    return f"({', '.join(map(type_text, argtypes))})"


def _is_object(given: Any) -> bool:
    """Whether what stands in a signature is a called object or its type. A Numba type with a hook of its own is one of
    kernel arguments that provide code."""
    if vocabulary_of(given).is_type(given) and inspect.getattr_static(given, "numba_cuda_link_object", None) is None:
        return False
    return find_callee(given) is not None


def _translate(signature: Any, vocabulary: Vocabulary) -> Any:
    """Return a *signature* of types of another front end with those of the *vocabulary*, and any other as it is."""
    given = signature if isinstance(signature, tuple) else getattr(signature, "args", ())
    if all(vocabulary_of(each) is vocabulary for each in given):
        return signature
    argtypes = tuple(vocabulary.from_core(core_type(each)) for each in given)
    if isinstance(signature, tuple):
        return argtypes
    return vocabulary.from_core(core_type(signature.return_type))(*argtypes)


def kernel_argument_types(signature: Any, function: Any, vocabulary: Vocabulary = NUMBA_CUDA) -> tuple[Any, ...]:
    """Return the types of the arguments of a kernel, which is made of the Python *function*.

    Raises what `normalize` does, and `TypeError` for a signature that returns, or of another number of arguments.
    """
    argtypes, return_type = normalize(signature, vocabulary, function)
    if return_type not in (None, vocabulary.types.void):
        raise TypeError(
            f"a kernel returns nothing, but the signature returns {return_type}\n"
            "  what to do: write void for it, and results to an array; or, if it is a function that kernels call,"
            f" decorate it: @cuda.jit(device=True) before def {function.__name__}"
        )
    check_count(argtypes, function)
    return argtypes


def check_count(argtypes: tuple[Any, ...], function: Any) -> None:
    if wrong_count(function, len(argtypes)) is not None:
        given = number_of(len(argtypes), "argument")
        raise TypeError(
            f"the signature has {given}, but the kernel is {function.__name__}{inspect.signature(function)}\n"
            f"  what to do: give one type for each parameter of the kernel, such as {example_for(function)!r}"
        )
