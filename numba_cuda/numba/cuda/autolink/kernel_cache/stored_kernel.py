# SPDX-License-Identifier: BSD-2-Clause
"""A compiled kernel with external code as bytes, together with the answers of the objects that it calls.

Whether a kernel is as it was is found out by asking these objects. Their hooks may run at any time, but no compiler and
no linker runs. Objects that the walk over a kernel met are references: another process has its own.
"""

from __future__ import annotations

import importlib.util
import inspect
import io
import os
import pickle
import sys
import types as pytypes
from collections.abc import Iterable, Iterator
from typing import Any

from numba.cuda import types
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, from_item
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.memory_management.nrt import NRT_LIBRARY
from numba.cuda.serialize import NumbaPickler

from ..compilation.context import asking
from ..frontends.numba_cuda.code_library import LinkingCodeLibrary
from ..function_code.call_graph import callees_first
from ..protocol.ask import link_key, with_answer
from ..protocol.call_sites import CallSite
from ..protocol.calling_code import CallingCode
from ..protocol.loaded_modules import file_digest, origin_of, record_of
from ..protocol.value_digest import value_digest, walk
from .kernel_values import KernelValues

_ATOMS = (str, bytes, int, float, tuple, list, dict, pytypes.NoneType, types.Type)


class NotCacheableError(Exception):
    """Another process could not find out whether a kernel changed."""


class KernelChangedError(Exception):
    """A stored kernel is not what would be compiled now."""


def dump_kernel(kernel: Any, values: KernelValues, linked: Iterable[Any], number: int, imported: set[str]) -> bytes:
    """Return *kernel*, which was just linked, as bytes. *values* are what it is made of, *linked* what ``link=`` names;
    functions with smaller numbers than *number* were compiled before, modules outside *imported* meanwhile. Raise
    `NotCacheableError` if another process could not find out whether it changed."""
    library = kernel._codelibrary
    states = library._reduce_states()
    entries, target = states.get("entries", ()), states.get("target") or Target((0, 0))
    callees = callees_first(library.function_code, lambda each: each.calls.lines)
    callers_first = [each.calls for each in callees][::-1]
    for value in (value for each in callers_first if each.number < number for value in each.frozen):
        if value.changed():
            raise NotCacheableError(f"{value}, has changed since that was compiled")
    bodies = [body for each in callers_first for body in each.bodies.values()]
    file, walks = io.BytesIO(), [values]
    pickler = _KernelPickler(file, walks, linked)
    loaded = {name: _content_of(name) for name in sorted({*map(_counted, set(sys.modules) - imported)} - {""})}
    pickler.dump((target, loaded, len(bodies)))
    for body in bodies:
        _check_reached(walks, [(body.obj, f"{body.obj}")])
        digest = _walk_body(body.obj, body.arguments, target).digest
        walks.append(found := walk(body.function, KernelValues))
        if digest != found.digest:
            raise NotCacheableError(f"a Python function that {body.obj} returned has changed since")
        pickler.dump((body.obj, body.arguments, digest))
    _check_reached(walks, _called_in(entries))
    known = {code for each in walks for code in each.codes}
    for function in (function for each in callers_first for function in each.functions.values()):
        if function.__code__ not in known and origin_of(function.__globals__.get("__name__")) is None:
            name = f"{function.__module__}.{function.__qualname__}"
            raise NotCacheableError(f"{name}, which is compiled into the kernel, is not reached by name")
    _ask_together(entries, target)
    answers = tuple(_answer_digest(entry, target) for entry in entries)
    if isinstance(library, LinkingCodeLibrary) and library.function_code.changed_since_linked:
        raise NotCacheableError("a file that it links was edited while it was built")
    own = {name: value for name, value in kernel._reduce_states().items() if name != "codelibrary"}
    pickler.dump((own, library._reduce_class(), states, answers))
    return file.getvalue()


def load_kernel(data: bytes, values: KernelValues, linked: Iterable[Any]) -> dict[str, Any]:
    """Return what numba-cuda rebuilds the kernel from that `dump_kernel` wrote, with references to the objects that
    *values* met now. Ask hooks, which may raise; raise `KernelChangedError` if they answer otherwise. *data* is
    unpickled: it must come from a store that nobody else can write to."""
    walks = [values]
    unpickler = KernelUnpickler(io.BytesIO(data), walks, linked)
    target, imported, bodies = unpickler.load()
    for module, content in imported.items():
        if _content_of(module) != content:
            raise KernelChangedError(f"module {module} changed")
    for _ in range(bodies):
        obj, arguments, digest = unpickler.load()
        walks.append(found := _walk_body(obj, arguments, target))
        if found.digest != digest:
            raise KernelChangedError(f"a Python function of {obj}, which is compiled into it, changed")
    kernel, library_class, states, answers = unpickler.load()
    entries = states.get("entries", ())
    _ask_together(entries, target)
    for answer, entry in zip(answers, entries, strict=True):
        if _answer_digest(entry, target) != answer:
            raise KernelChangedError(f"the code of {entry} changed")
    return {**kernel, "codelibrary": library_class._rebuild(**states)}


class _KernelPickler(NumbaPickler):
    """Pickles parts of a kernel. Objects that *walks* met before, and files that ``link=`` names, are references."""

    def __init__(self, file: io.BytesIO, walks: list[KernelValues], linked: Iterable[Any]):
        super().__init__(file, protocol=5)
        self._walks = walks
        paths = (os.fspath(item) if isinstance(item, (str, os.PathLike)) else None for item in linked)
        self._linked = {path: ("linked", number) for number, path in enumerate(paths) if path is not None}

    def reducer_override(self, obj: Any) -> Any:
        """Pickle the type of a function that is written in a kernel so that it holds the function: nothing else does
        in another process."""
        if isinstance(obj, types.Dispatcher):
            return _type_of_function, (type(obj), obj.dispatcher)
        return super().reducer_override(obj)

    def persistent_id(self, obj: Any) -> Any:
        """Return the reference that stands for *obj*; ``None`` if *obj* itself is pickled."""
        if isinstance(obj, (str, os.PathLike)):
            return self._linked.get(os.fspath(obj))
        return None if isinstance(obj, _ATOMS) else _place(obj, self._walks)


class KernelUnpickler(pickle.Unpickler):
    """Reads what `_KernelPickler` wrote."""

    def __init__(self, file: io.BytesIO, walks: list[KernelValues], linked: Iterable[Any]):
        super().__init__(file)
        self._walks, self._linked = walks, tuple(linked)

    def persistent_load(self, reference: Any) -> Any:
        """Return the object that *reference* stands for."""
        where, number = reference
        return os.fspath(self._linked[number]) if where == "linked" else self._walks[where].things[number]


def _place(obj: Any, walks: Iterable[KernelValues]) -> tuple[int, int] | None:
    """Return which of *walks* met *obj*, and its number there."""
    numbers = ((place, each.number(obj)) for place, each in enumerate(walks))
    return next(((place, number) for place, number in numbers if number is not None), None)


def _type_of_function(cls: Any, dispatcher: Any) -> types.Dispatcher:
    found = cls(dispatcher)
    found.numba_cuda_autolink_held = dispatcher
    return found


def _called_in(entries: Iterable[Any]) -> Iterator[tuple[Any, str]]:
    """Yield the objects that are called or passed in the call sites of *entries*, with names for messages."""
    for site in (entry for entry in entries if isinstance(entry, CallSite)):
        yield site.callee.obj, str(site)
        for given in (getattr(argtype, "numba_cuda_link_object", None) for argtype in site.argtypes):
            if not isinstance(given, CallingCode):
                yield given, f"{given}, an argument of {site},"


def _check_reached(walks: list[KernelValues], objects: Iterable[tuple[Any, str]]) -> None:
    """Raise `NotCacheableError` for a called object that another process could not find."""
    for obj, label in objects:
        owner = getattr(obj, "__self__", obj)
        if obj is not None and not isinstance(owner, types.Type) and _place(owner, walks) is None:
            raise NotCacheableError(
                f"{label} is neither a global nor a closure variable of the kernel or of a function that it calls, nor"
                " an attribute or element of one: nothing could check in another process whether it changed"
            )


def _ask_together(entries: Iterable[Any], target: Target) -> None:
    """Let objects find out what they answer in all calls at once, if their class can."""
    asked: dict[Any, list[tuple[Any, Any]]] = {}
    for entry in entries:
        if isinstance(entry, CallSite) and (ask := getattr(type(entry.callee.obj), "ask_together", None)) is not None:
            asked.setdefault(ask, []).append((entry.callee.obj, entry.argtypes))
    with asking(target):
        for ask, calls in asked.items():
            ask(calls)


def _answer_digest(entry: Any, target: Target) -> bytes:
    """Return the digest of what *entry* links now: of the code, or of the link key that stands for it."""
    if not isinstance(entry, CallSite):
        return b"" if entry is NRT_LIBRARY else value_digest(_content((from_item(entry),), target))
    meaning = _meaning(entry, target)
    key = link_key(entry.callee, entry.argtypes, target)
    package = None if key is None else entry.callee.package()
    # Nothing but the answer itself shows the files that it names, and its callbacks.
    if package is not None and with_answer(entry, target).answer.in_memory:
        return _walked(key, package, meaning)
    return _walked(meaning, _content(with_answer(entry, target).answer.inputs(), target))


def _walked(*values: Any) -> bytes:
    """Return the digest of *values*, in which called objects may be."""
    digest: bytes = walk(values, KernelValues).digest
    return digest


def _meaning(site: CallSite, target: Target) -> Any:
    """Return which C function a device callable says that the call means."""
    says = getattr(site.callee.obj, "__numba_cuda_call__", None)
    if says is None:
        return None
    signature = inspect.signature(says)
    # A call to one of the object's methods has other parameters. What such a method says is met by the walk.
    by_name = [name for name, parameter in signature.parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    split = len(site.argtypes) - len(by_name)
    try:
        named = dict(zip(by_name, site.argtypes[max(split, 0) :], strict=False))
        call = signature.bind(*site.argtypes[:split], **named)
    except TypeError:
        return None
    try:
        with asking(target):
            return says(*call.args, **call.kwargs)
    except Exception as error:  # an object without one, or one that refuses the types of a method's call
        return "raises", type(error)


def _walk_body(obj: Any, arguments: Any, target: Target) -> KernelValues:
    """Walk over the Python function that *obj* returns now for a call."""
    with asking(target):
        returned = arguments.apply(obj.__numba_cuda_call__)
    found: KernelValues = walk(getattr(returned, "py_func", returned), KernelValues)
    return found


def _content(inputs: Iterable[LinkInput], target: Target) -> Any:
    from numba.cuda.cudadrv.external_code.compile import programs

    inputs = tuple(inputs)
    callbacks = [(each.setup_callback is not None, each.teardown_callback is not None, each.nrt) for each in inputs]
    return callbacks, [programs.fingerprint(each, target) for each in inputs]


def _counted(module: str) -> str:
    """Return the name of *module*, or that of an installed package which it is part of; nothing for Python's own."""
    if getattr(sys.modules[module], "__file__", None) is None or (origin := origin_of(module)) == "versioned":
        return ""
    return module if origin is None else module.partition(".")[0]


def _content_of(module: str) -> Any:
    """Return what identifies the code of *module*, which need not be imported."""
    if (record := record_of(module)) is not None:
        return record[0], file_digest(record[1])
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return None if found is None or found.origin is None else file_digest(found.origin)
