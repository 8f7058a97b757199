# SPDX-License-Identifier: BSD-2-Clause
"""A compiled kernel with external code as bytes, together with what was true of all that it was made of.

To find out whether that is unchanged runs hooks, which may run at any time, but no compiler and no linker.
"""

from __future__ import annotations

import inspect
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, from_item
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..compilation.context import asking
from ..frontends.numba_cuda.code_library import LinkingCodeLibrary
from ..protocol.ask import with_answer
from ..protocol.call_sites import CallSite
from ..value_fingerprint import UnknownValueError, fingerprint, fingerprint_of_link_key
from .bodies import Body, ReturnedBody, bodies_of
from .reachable import Reached
from .references import KernelPickler, KernelUnpickler, NotCacheableError, code_label, is_numba_cuda_global

_Subject = Literal["content", "key", "numba-cuda"]


@dataclass(frozen=True)
class Fact:
    """What was true of one piece of external code, which messages call *label*.

    The digest is of the ``"content"`` of the code, or of the object's link ``"key"``. Code of ``"numba-cuda"`` itself
    has none: it differs with what a process compiles, and numba-cuda's version identifies it.
    """

    label: str
    subject: _Subject
    digest: bytes = b""


@dataclass(frozen=True)
class StoredKernel:
    """A kernel that was saved: the types of its arguments, its states without the code library, and the class and the
    states of that; then what it was linked for, what was true of each entry of the code library, in order, and the
    functions that were compiled into it although it does not reach them by name."""

    signature: Any
    kernel: dict[str, Any]
    library_class: Any
    library: dict[str, Any]
    target: Target
    facts: tuple[Fact, ...]
    bodies: tuple[Body | ReturnedBody, ...]

    def change(self, signature: Any) -> str | None:
        """Return what changed since the kernel was saved, in words, or ``None``. Asks hooks, which may raise."""
        if self.signature != signature:
            return "its argument types have the names of other types"
        for body in self.bodies:
            if body.changed(self.target):
                return f"{body}, which is compiled into it, changed"
        entries = self.library.get("entries", ())
        _ask_together(entries, self.target)
        for fact, entry in zip(self.facts, entries, strict=True):
            if _fact(entry, self.target, fact.subject).digest != fact.digest:
                return f"the code of {fact.label} changed"
        return None

    def states(self) -> dict[str, Any]:
        """Return what numba-cuda rebuilds the kernel from."""
        return {**self.kernel, "codelibrary": self.library_class._rebuild(**self.library)}


def dump_kernel(kernel: Any, signature: Any, reached: Reached) -> bytes:
    """Return *kernel*, which was just linked, as bytes. Raises `NotCacheableError` if another process could not find
    out whether it changed."""
    if reached.unknown is not None:
        raise NotCacheableError(reached.unknown)
    library = kernel._codelibrary
    states = library._reduce_states()
    entries = states.get("entries", ())
    file = io.BytesIO()
    bodies = bodies_of(library, kernel.py_func, reached)
    pickler = KernelPickler(file, reached, entries, [each for each in bodies if isinstance(each, ReturnedBody)])
    kernel_states = {name: value for name, value in kernel._reduce_states().items() if name != "codelibrary"}
    target = states.get("target") or Target((0, 0))
    _ask_together(entries, target)
    facts = tuple(_fact(entry, target) for entry in entries)
    if isinstance(library, LinkingCodeLibrary) and library.changed_since_linked:
        raise NotCacheableError("a file that it links was edited while it was built")
    pickler.dump((signature, kernel_states, library._reduce_class(), states, target, facts, bodies))
    return file.getvalue()


def load_kernel(data: bytes, reached: Reached) -> StoredKernel:
    """Return the kernel that `dump_kernel` wrote, with references to what is *reached* now. *data* is unpickled: it
    must come from a store that nobody else can write to."""
    return StoredKernel(*KernelUnpickler(io.BytesIO(data), reached).load())


def _ask_together(entries: Iterable[Any], target: Target) -> None:
    """Let objects find out what they answer in all calls at once, if their class can."""
    asked: dict[Any, list[tuple[Any, Any]]] = {}
    for entry in entries:
        if isinstance(entry, CallSite) and (ask := getattr(type(entry.callee.obj), "ask_together", None)) is not None:
            asked.setdefault(ask, []).append((entry.callee.obj, entry.argtypes))
    with asking(target):
        for ask, calls in asked.items():
            ask(calls)


def _fact(entry: Any, target: Target, subject: _Subject | None = None) -> Fact:
    """Return what is true of *entry* now, as its hooks say; *subject* is that of an earlier fact of it."""
    if isinstance(entry, CallSite):
        return _fact_of_call(entry, target, subject)
    is_path = isinstance(entry, (str, os.PathLike))
    if subject is None:
        subject = "numba-cuda" if not is_path and is_numba_cuda_global(entry) else "content"
    label = os.fspath(entry) if is_path else code_label(entry)
    return Fact(label, subject, _content((from_item(entry),), target) if subject == "content" else b"")


def _fact_of_call(site: CallSite, target: Target, subject: _Subject | None) -> Fact:
    if subject != "content" and (key := _key(site, target, is_new=subject is None)) is not None:
        return Fact(str(site), "key", fingerprint(key, _meaning(site, target)))
    if subject == "key":
        return Fact(str(site), "key")  # it has no key now
    content = _content(with_answer(site, target).answer.inputs(), target)
    return Fact(str(site), "content", fingerprint(_link_key(site, target), content, _meaning(site, target)))


def _key(site: CallSite, target: Target, *, is_new: bool) -> bytes | None:
    """Return the digest of the link key and of the code of the hook, if they stand for the content of the answer."""
    value = _link_key(site, target)
    if value is None or (is_new and not with_answer(site, target).answer.in_memory):
        return None
    code = with_answer(site, target).answer.code if is_new else site.callee.code_digest()
    return None if code is None else fingerprint(value, code)


def _link_key(site: CallSite, target: Target) -> bytes | None:
    """Return the fingerprint of the link key; ``None`` if there is none, or it has no fingerprint."""
    link_key = site.callee.link_key
    if link_key is None:
        return None
    with asking(target):
        value = link_key(*site.argtypes)
    try:
        return None if value is None else fingerprint_of_link_key(value)
    except UnknownValueError:
        return None


def _meaning(site: CallSite, target: Target) -> Any:
    """Return which C function a device callable says that the call means."""
    says = getattr(site.callee.obj, "__numba_cuda_call__", None)
    if says is None:
        return None
    signature = inspect.signature(says)
    # A call to one of the object's methods has other parameters. The method's own meaning follows from the attributes
    # and the code of the object, which are parts of the kernel's key.
    by_name = [name for name, parameter in signature.parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    split = len(site.argtypes) - len(by_name)
    try:
        call = signature.bind(
            *site.argtypes[:split], **dict(zip(by_name, site.argtypes[max(split, 0) :], strict=False))
        )
    except TypeError:
        return None
    try:
        with asking(target):
            return says(*call.args, **call.kwargs)
    except Exception as error:  # an object without one, or one that refuses the types of a method's call
        return "raises", type(error)


def _content(inputs: Iterable[LinkInput], target: Target) -> bytes:
    from numba.cuda.cudadrv.external_code.compile import programs

    inputs = tuple(inputs)
    callbacks = [(each.setup_callback is not None, each.teardown_callback is not None, each.nrt) for each in inputs]
    return fingerprint(callbacks, [programs.fingerprint(each, target) for each in inputs])
