# SPDX-License-Identifier: BSD-2-Clause
"""The code of a hook: what its answer depends on besides the link key, whose author need not think of it."""

from __future__ import annotations

import functools
import inspect
import os
import types as pytypes
from collections.abc import Callable, Iterator
from typing import Any

from ..object_state import own_attributes
from ..patched import look_at_types
from ..python_code import file_digest, origin_of
from ..value_encoders import Unordered
from ..value_fingerprint import fingerprint_of_hook

_CODE = (pytypes.FunctionType, functools.partial, type)


def code_digest(obj: Any, hook: Callable[..., Any]) -> bytes | None:
    """Return a digest of the code of *hook*, of that of the class of *obj* and its bases, and of the functions, classes
    and files in its attributes; None if unknown, as it is where a library of C++ is among them.

    An author who changes the code that a hook generates, or a template of it, need not change the link key.
    """
    parts: list[Any] = []
    owner = getattr(obj, "__self__", obj)
    while isinstance(hook, (functools.partial, pytypes.MethodType)):
        if isinstance(hook, functools.partial):
            parts.append((hook.args, hook.keywords))
        elif hook.__self__ is not owner and not isinstance(hook.__self__, type):
            parts.append(hook.__self__)  # the link key stands for the owner, not for another object
        hook = hook.func if isinstance(hook, functools.partial) else hook.__func__
    look_at_types()
    try:
        attributes = {} if inspect.isclass(owner) else own_attributes(owner)
        # The classes of its attributes, too, may have methods that the hook calls.
        kinds = list(dict.fromkeys(map(type, attributes.values())))
        held = list(_held(attributes, {id(owner)}))
        return fingerprint_of_hook(parts, hook, owner if inspect.isclass(owner) else [type(owner), *kinds], held)
    except Exception:  # `UnknownValueError`, or what a foreign object raises when it is looked at
        return None


def _held(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the functions, classes, files and libraries of C++ that *value* is or holds: in containers, and in the
    attributes of objects whose class is in the program itself."""
    if isinstance(value, (int, float, complex, bytes, type(None))) or id(value) in seen:
        return
    if isinstance(value, (str, os.PathLike)):
        if (digest := file_digest(value)) is not None:
            yield digest  # not the path: the same sources in another folder have the same answer
        return
    seen.add(id(value))
    if isinstance(value, pytypes.MethodType):
        yield value.__func__
        yield from _held(value.__self__, seen)
    elif isinstance(value, pytypes.BuiltinFunctionType):
        if isinstance(value.__self__, (pytypes.ModuleType, type(None))):  # not of an object, written in C
            yield value
    elif (
        isinstance(value, _CODE)
        or hasattr(type(value), "cxx_reads_files")
        or isinstance(getattr(value, "py_func", None), pytypes.FunctionType)
    ):
        yield value
    elif isinstance(value, (set, frozenset)):
        yield Unordered(zip(list(_held(each, seen)) for each in value))
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _held(each, seen)
    elif origin_of(type(value).__module__) is None:
        for each in own_attributes(value).values():
            yield from _held(each, seen)
