# SPDX-License-Identifier: BSD-2-Clause
"""A compiled kernel as bytes: what the front end made of it, and which calls of objects it links.

There is no external code in it. A kernel that is loaded asks its objects and is linked, as one that was just compiled:
unless something changed, its link is found by content. Objects that the walk over a kernel met are references: another
process has its own.
"""

from __future__ import annotations

import importlib.util
import io
import os
import pickle
import sys
import types as pytypes
from collections.abc import Iterable, Iterator
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.serialize import NumbaPickler

from ..compilation.context import asking
from ..frontends.numba_cuda.code_library import LinkingCodeLibrary
from ..function_code.call_graph import callees_first
from ..protocol.answers import CallingCode
from ..protocol.ask import with_answer
from ..protocol.call_sites import CallSite
from ..protocol.loaded_modules import UnknownValueError, file_digest, origin_of, record_of
from ..protocol.value_digest import codes, value_digest, walk
from .kernel_values import KernelValues

_ATOMS = (str, bytes, int, float, tuple, list, dict, pytypes.NoneType, types.Type)


class KernelChangedError(Exception):
    """A stored kernel is not what would be compiled now."""


def dump_kernel(kernel: Any, values: KernelValues, imported: set[str]) -> bytes:
    """Return *kernel*, which was just compiled, as bytes. *values* are what it is made of; modules outside *imported*
    were imported meanwhile. Raise `UnknownValueError` if another process could not find out whether it changed."""
    library: LinkingCodeLibrary = kernel._codelibrary
    target = library.own_target()
    calls = [each.calls for each in callees_first(library.function_code, lambda each: each.calls.lines)][::-1]
    meanings = [meaning for each in calls for meaning in each.meanings.values()]
    bodies = [meaning for meaning in meanings if _is_python(meaning[2])]
    c_functions = [meaning for meaning in meanings if not _is_python(meaning[2])]
    file, walks = io.BytesIO(), [values]
    pickler = _KernelPickler(file, walks)
    names = sorted({*map(_module_to_compare, set(sys.modules) - imported)} - {""})
    loaded = {name: _content_of(name) for name in names}
    pickler.dump((target, loaded, len(bodies)))
    for obj, arguments, returned in bodies:
        _check_reached(walks, [(obj, f"{obj}")])
        pickler.dump((obj, arguments, _check_and_digest(obj, arguments, returned, target)))
        walks.append(_walk(returned))
    sites = library.function_code.call_sites
    _check_reached(walks, [*_find_called(sites), *((obj, f"{obj}") for obj, *_ in c_functions)])
    pickler.dump([(obj, arguments) for obj, arguments, _ in c_functions])
    pickler.dump([_check_and_digest(*each, target) for each in c_functions])
    functions = (each for walked in walks for each in walked.things if isinstance(each, pytypes.FunctionType))
    known = {code for function in functions for code in codes(function.__code__)}
    for function in (function for each in calls for function in each.functions.values()):
        if function.__code__ not in known and origin_of(function.__globals__.get("__name__")) is None:
            name = f"{function.__module__}.{function.__qualname__}"
            raise UnknownValueError(f"{name}, which is compiled into the kernel, is not reached by name")
    own = {name: value for name, value in kernel._reduce_states().items() if name != "codelibrary"}
    pickler.dump((own, library.state(), _digests_of_callers(sites, target)))
    return file.getvalue()


def load_kernel(data: bytes, values: KernelValues) -> dict[str, Any]:
    """Return what numba-cuda rebuilds the kernel from that `dump_kernel` wrote, with references to the objects that
    *values* met now. Ask hooks, which may raise; raise `KernelChangedError` if the kernel calls them otherwise. *data*
    is unpickled: it must come from a store that nobody else can write to."""
    walks = [values]
    unpickler = _KernelUnpickler(io.BytesIO(data), walks)
    target, imported, count = unpickler.load()
    for module, content in imported.items():
        if _content_of(module) != content:
            raise KernelChangedError(f"module {module} changed")
    for _ in range(count):
        obj, arguments, digest = unpickler.load()
        walks.append(_walk_unchanged(obj, arguments, target, digest))
    calls, digests = unpickler.load(), unpickler.load()
    _ask_together(calls, target)
    for (obj, arguments), digest in zip(calls, digests, strict=True):
        _walk_unchanged(obj, arguments, target, digest)
    kernel, state, callers = unpickler.load()
    library = LinkingCodeLibrary.restore(**state)
    if _digests_of_callers(library.function_code.call_sites, target) != callers:
        raise KernelChangedError("a Python function that C++ calls changed")
    functions = [each for walked in walks for each in walked.things if isinstance(each, pytypes.FunctionType)]
    for code in callees_first(library.function_code, lambda each: each.calls.lines):
        code.calls.relocate(functions)
    library.plan(target.cc)  # a file may be missing
    return {**kernel, "codelibrary": library}


class _KernelPickler(NumbaPickler):
    """Pickles parts of a kernel. Objects that *walks* met before, and files that are linked, are references."""

    def __init__(self, file: io.BytesIO, walks: list[KernelValues]):
        super().__init__(file, protocol=5)
        self._walks = walks

    def reducer_override(self, obj: Any) -> Any:
        """Let the type of a function that is written in a kernel hold it: nothing else does in another process."""
        if isinstance(obj, types.Dispatcher):
            return _type_of_function, (type(obj), obj.dispatcher)
        return super().reducer_override(obj)

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, (str, os.PathLike)):
            found = ((place, each.paths) for place, each in enumerate(self._walks) if os.fspath(obj) in each.paths)
            return next((("linked", place, paths.index(os.fspath(obj))) for place, paths in found), None)
        place = None if isinstance(obj, _ATOMS) else _place(obj, self._walks)
        return None if place is None else ("met", *place)


class _KernelUnpickler(pickle.Unpickler):
    """Reads what `_KernelPickler` wrote."""

    def __init__(self, file: io.BytesIO, walks: list[KernelValues]):
        super().__init__(file)
        self._walks = walks

    def persistent_load(self, reference: Any) -> Any:
        kind, place, number = reference
        return (self._walks[place].paths if kind == "linked" else self._walks[place].things)[number]


def _place(obj: Any, walks: Iterable[KernelValues]) -> tuple[int, int] | None:
    numbers = ((place, each.number(obj)) for place, each in enumerate(walks))
    return next(((place, number) for place, number in numbers if number is not None), None)


def _type_of_function(cls: Any, dispatcher: Any) -> types.Dispatcher:
    found = cls(dispatcher)
    found.numba_cuda_autolink_held = dispatcher
    return found


def _find_called(sites: Iterable[CallSite]) -> Iterator[tuple[Any, str]]:
    for site in sites:
        yield site.callee.obj, str(site)
        for given in (getattr(argtype, "numba_cuda_link_object", None) for argtype in site.argtypes):
            if not isinstance(given, CallingCode):
                yield given, f"{given}, an argument of {site},"


def _check_reached(walks: list[KernelValues], objects: Iterable[tuple[Any, str]]) -> None:
    for obj, label in objects:
        owner = getattr(obj, "__self__", obj)
        if obj is not None and not isinstance(owner, types.Type) and _place(owner, walks) is None:
            raise UnknownValueError(
                f"{label} is neither a global nor a closure variable of the kernel or of a function that it calls, nor"
                " an attribute or element of one: nothing could check in another process whether it changed; to have it"
                " cached, assign it to a global of the kernel's module, and call that"
            )


def _ask_together(calls: Iterable[tuple[Any, Any]], target: Target) -> None:
    """Let objects find out what they answer in all *calls* at once, if their class can."""
    asked: dict[Any, list[tuple[Any, Any]]] = {}
    for obj, arguments in calls:
        if (ask := getattr(type(obj), "_ask_together", None)) is not None:
            asked.setdefault(ask, []).append((obj, arguments.types))
    with asking(target):
        for ask, each in asked.items():
            ask(each)


def _ask_meaning(obj: Any, arguments: Any, target: Target) -> Any:
    with asking(target):
        return arguments.apply(obj.__numba_cuda_call__)


def _is_python(meaning: Any) -> bool:
    return isinstance(getattr(meaning, "py_func", meaning), pytypes.FunctionType)


def _walk(meaning: Any) -> KernelValues:
    return walk(getattr(meaning, "py_func", meaning), KernelValues)


def _check_and_digest(obj: Any, arguments: Any, returned: Any, target: Target) -> bytes:
    """Return the digest of what *obj* *returned* for a call, or raise `UnknownValueError` if it now differs."""
    digest = _walk(returned).digest
    if _walk(_ask_meaning(obj, arguments, target)).digest != digest:
        raise UnknownValueError(f"what {obj} returns for a call has changed since that was compiled")
    return digest


def _walk_unchanged(obj: Any, arguments: Any, target: Target, digest: bytes) -> KernelValues:
    """Walk over what *obj* returns now for a call. Raise `KernelChangedError` if that has another *digest*."""
    found = _walk(_ask_meaning(obj, arguments, target))
    if found.digest != digest:
        raise KernelChangedError(f"what {obj} returns for a call changed")
    return found


def _digests_of_callers(sites: Iterable[CallSite], target: Target) -> list[bytes]:
    """Return the digests of the Python functions that C++ calls, on which the kernel's own code depends."""
    answers = (with_answer(site, target).answer for site in sites)
    return [value_digest(*answer.calling) for answer in answers if answer.calling]


def _module_to_compare(module: str) -> str:
    """Return the name of *module*, or that of an installed package which it is part of; nothing for Python's own."""
    if getattr(sys.modules[module], "__file__", None) is None or (origin := origin_of(module)) == "versioned":
        return ""
    return module if origin is None else module.partition(".")[0]


def _content_of(module: str) -> Any:
    if (record := record_of(module)) is not None:
        return record[0], file_digest(record[1])
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return None if found is None or found.origin is None else file_digest(found.origin)
