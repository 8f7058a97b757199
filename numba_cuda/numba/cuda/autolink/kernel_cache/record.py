# SPDX-License-Identifier: BSD-2-Clause
"""What a cached kernel was linked from, and whether all of it is still the same.

To check a record runs hooks, which may run at any time, but no compiler and no linker.
"""

from __future__ import annotations

import inspect
import io
import os
import pickle
import sys
import types as pytypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numba.cuda
from numba.cuda import types
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, from_item
from numba.cuda.cudadrv.external_code.target import Target
from numba.cuda.serialize import NumbaPickler

from ..compilation import asking
from ..protocol.asked_call import with_answer
from ..protocol.call_sites import CallSite
from ..protocol.callee import identity
from .fingerprint import fingerprint
from .reachable import Reached

_HOST = os.path.dirname(os.path.abspath(numba.cuda.__file__))


def is_host_file(path: str | os.PathLike[str]) -> bool:
    """Whether it is one of numba-cuda's own files."""
    return os.path.abspath(path).startswith(_HOST + os.sep)


class NotCacheableError(Exception):
    """External code of a kernel could not be found again, and so not be checked, in another process."""


@dataclass(frozen=True)
class Fact:
    """What was true of one piece of external code.

    ``how`` says what the digest is of: the ``"content"``, or the object's link ``"key"`` that stands for it. Nothing is
    checked of what is ``"numba-cuda"``'s own, which differs with what a process compiles; its version says what it is.
    """

    label: str
    how: str
    digest: bytes = b""


@dataclass(frozen=True)
class Record:
    """What was true of a kernel's external code, for each of its library's entries, in order.

    ``files`` are the other Python files with call sites, and their modification times and sizes.
    """

    target: Target
    facts: tuple[Fact, ...]
    files: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, entries: Iterable[Any], target: Target, own_file: str) -> Record:
        """The record of a kernel that was just linked for *target*; numba-cuda looks after the kernel's *own_file*."""
        entries = tuple(entries)
        filenames = dict.fromkeys(entry.filename for entry in entries if isinstance(entry, CallSite))
        filenames.pop(own_file, None)
        files = tuple((filename, _stamp(filename)) for filename in filenames)
        return cls(target, tuple(_fact(entry, target) for entry in entries), files)

    def change(self, entries: Iterable[Any]) -> str | None:
        """What is not as it was, in words; None if all is. *entries* are those of the record, found again.

        Hooks are asked, and may raise.
        """
        for filename, stamp in self.files:
            if _stamp(filename) != stamp:
                return f"{filename} was edited"
        for fact, entry in zip(self.facts, entries, strict=True):
            if _fact(entry, self.target, fact.how).digest != fact.digest:
                return f"the code of {fact.label} changed"
        return None


def _stamp(filename: str) -> Any:
    try:
        found = os.stat(filename)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _fact(entry: Any, target: Target, how: str | None = None) -> Fact:
    """What is true of *entry*; *how* is None where that is still to be decided."""
    if isinstance(entry, CallSite):
        return _fact_of_call(entry, target, how)
    is_path = isinstance(entry, (str, os.PathLike))
    if how is None:
        how = "numba-cuda" if not is_path and _name_in(entry, _host_modules()) else "content"
    label = os.fspath(entry) if is_path else _named(entry)
    return Fact(label, how, _content((from_item(entry),), target) if how == "content" else b"")


def _fact_of_call(site: CallSite, target: Target, how: str | None) -> Fact:
    link_key = site.callee.link_key
    key = b""
    if link_key is not None:
        with asking(target):
            key = fingerprint(link_key(*site.argtypes), site.callee.source_stamp)
    if how is None:
        sure = link_key is not None and with_answer(site, target).answer.in_memory
        how = "key" if sure else "content"
    if how == "key":
        return Fact(str(site), how, fingerprint(link_key is None, key))
    answer = with_answer(site, target).answer
    return Fact(str(site), how, fingerprint(key, _content(answer.inputs(), target), _meant(site, target)))


def _meant(site: CallSite, target: Target) -> Any:
    """Which C function a device callable says that the call means."""
    says = getattr(site.callee.obj, "__numba_cuda_call__", None)
    if says is None:
        return None
    parameters = inspect.signature(says).parameters.values()
    by_name = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    split = len(site.argtypes) - len(by_name)
    with asking(target):
        extern = says(*site.argtypes[:split], **dict(zip(by_name, site.argtypes[split:], strict=True)))
    return extern.symbol, extern.returns, extern.args


def _content(inputs: Iterable[LinkInput], target: Target) -> bytes:
    from .code_fingerprint import code_fingerprint

    callbacks = [(each.setup_callback is not None, each.teardown_callback is not None, each.nrt) for each in inputs]
    return fingerprint(callbacks, [code_fingerprint(each, target) for each in inputs])


# Finding objects again: what a kernel reaches by its number, other things by the name of a module's global.


class RecordPickler(NumbaPickler):
    """Pickles what belongs to a kernel, with references to the objects that it reaches in place of the objects.

    Raises
    ------
    NotCacheableError
        If one of the *entries* can neither be reached by name nor is a global of the module that calls it.
    """

    def __init__(self, file: io.BytesIO, reached: Reached, entries: Iterable[Any]):
        super().__init__(file, protocol=5)
        self._reached = reached
        self._names: dict[Any, tuple[str, ...]] = {}
        linked = [os.fspath(item) for item in reached.linked if isinstance(item, (str, os.PathLike))]
        for entry in entries:
            if isinstance(entry, CallSite):
                self._locate(entry.callee.obj, _modules_at(entry.filename), str(entry))
            elif not isinstance(entry, (str, os.PathLike)):
                self._locate(entry, _host_modules(), _named(entry))
            elif os.fspath(entry) not in linked and not is_host_file(entry):
                raise NotCacheableError(_unreachable(os.fspath(entry)))

    def _locate(self, obj: Any, modules: Iterable[pytypes.ModuleType], label: str) -> None:
        if self._reached.number(obj) is not None or isinstance(obj, types.Type):
            return
        owner = getattr(obj, "__self__", obj)
        if self._reached.number(owner) is None:
            name = _name_in(owner, modules) or _own_name(owner)
            if name is None:
                raise NotCacheableError(_unreachable(label))
            self._names[identity(owner)] = ("global", *name)

    def persistent_id(self, obj: Any) -> Any:
        """The reference that stands for *obj*; None if it is to be pickled itself."""
        known_as = identity(obj)
        if known_as in self._names:
            return self._names[known_as]
        number = self._reached.number(obj)
        return None if number is None else ("reached", number)


class RecordUnpickler(pickle.Unpickler):
    """Reads what `RecordPickler` wrote; the references become the objects that are reached now."""

    def __init__(self, file: io.BytesIO, reached: Reached):
        super().__init__(file)
        self._reached = reached

    def persistent_load(self, reference: Any) -> Any:
        """The object that *reference* stands for."""
        if reference[0] == "reached":
            return self._reached.things[reference[1]]
        _, module, name = reference
        found: Any = sys.modules.get(module)
        if found is None:
            raise pickle.UnpicklingError(f"module {module} is not imported")
        for part in name.split("."):
            found = getattr(found, part)
        return found


def _named(code: Any) -> str:
    return f"{type(code).__name__} {code.name!r}"


def _unreachable(label: str) -> str:
    return (
        f"{label} is neither a global nor a closure variable of the kernel or of a device function that it calls, nor"
        " an attribute or element of one, so that nothing could check in another process whether it changed"
    )


def _modules_at(filename: str) -> Iterator[pytypes.ModuleType]:
    for module in tuple(sys.modules.values()):
        if getattr(module, "__file__", None) == filename:
            yield module


def _host_modules() -> Iterator[pytypes.ModuleType]:
    for name, module in tuple(sys.modules.items()):
        if name.startswith("numba.cuda.") and not name.startswith("numba.cuda.tests"):
            yield module


def _name_in(obj: Any, modules: Iterable[pytypes.ModuleType]) -> tuple[str, str] | None:
    for module in modules:
        for name, value in tuple(vars(module).items()):
            if value is obj:
                return module.__name__, name
    return None


def _own_name(obj: Any) -> tuple[str, str] | None:
    """Module and name of a function or class that can be found under them."""
    module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (module, name) if found is obj else None
