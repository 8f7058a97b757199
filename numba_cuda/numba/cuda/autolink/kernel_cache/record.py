# SPDX-License-Identifier: BSD-2-Clause
"""What a cached kernel was linked from, and whether all of it is unchanged.

To check a record runs hooks, which may run at any time, but no compiler and no linker.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, from_item
from numba.cuda.cudadrv.external_code.target import Target

from ..compilation import asking
from ..protocol.asking import with_answer
from ..protocol.call_sites import CallSite
from ..value_fingerprint import fingerprint
from .bodies import Body
from .references import code_label, is_numba_cuda_global

_Subject = Literal["content", "key", "numba-cuda"]


@dataclass(frozen=True)
class Fact:
    """What was true of one piece of external code.

    Attributes
    ----------
    label:
        What messages call it.
    subject:
        What the digest is of: the ``"content"`` of the code, or the object's link ``"key"``. Code of ``"numba-cuda"``
        itself has no digest: it differs with what a process compiles, and numba-cuda's version identifies it.
    digest:
        SHA-256, or empty.
    """

    label: str
    subject: _Subject
    digest: bytes = b""


@dataclass(frozen=True)
class Record:
    """What was true of a kernel's external code.

    Attributes
    ----------
    target:
        What the kernel was linked for.
    facts:
        One for each entry of the kernel's code library, in order.
    bodies:
        The functions that were compiled into the kernel although it does not reach them by name.
    """

    target: Target
    facts: tuple[Fact, ...]
    bodies: tuple[Body, ...]

    @classmethod
    def of(cls, entries: Iterable[Any], target: Target, bodies: tuple[Body, ...]) -> Record:
        """Return the record of a kernel that was just linked for *target*."""
        return cls(target, tuple(_fact(entry, target) for entry in entries), bodies)

    def change(self, entries: Iterable[Any]) -> str | None:
        """Return what changed, in words, or ``None``. *entries* are those of the code library, found again.

        Hooks are asked, and may raise.
        """
        for body in self.bodies:
            if body.changed:
                return f"{body.module}.{body.name}, which is compiled into it, changed"
        for fact, entry in zip(self.facts, entries, strict=True):
            if _fact(entry, self.target, fact.subject).digest != fact.digest:
                return f"the code of {fact.label} changed"
        return None


def _fact(entry: Any, target: Target, subject: _Subject | None = None) -> Fact:
    """Return what is true of *entry* now. *subject* is that of an earlier fact of it, if there is one."""
    if isinstance(entry, CallSite):
        return _fact_of_call(entry, target, subject)
    is_path = isinstance(entry, (str, os.PathLike))
    if subject is None:
        subject = "numba-cuda" if not is_path and is_numba_cuda_global(entry) else "content"
    label = os.fspath(entry) if is_path else code_label(entry)
    return Fact(label, subject, _content((from_item(entry),), target) if subject == "content" else b"")


def _fact_of_call(site: CallSite, target: Target, subject: _Subject | None) -> Fact:
    link_key = site.callee.link_key
    key, code = b"", None
    if link_key is not None:
        with asking(target):
            code = with_answer(site, target).answer.code if subject is None else site.callee.code_digest()
            key = fingerprint(link_key(*site.argtypes), code)
    if subject is None:
        by_key = link_key is not None and code is not None and with_answer(site, target).answer.in_memory
        subject = "key" if by_key else "content"
    if subject == "key":
        return Fact(str(site), subject, fingerprint(link_key is None, key, _meaning(site, target)))
    answer = with_answer(site, target).answer
    return Fact(str(site), subject, fingerprint(key, _content(answer.inputs(), target), _meaning(site, target)))


def _meaning(site: CallSite, target: Target) -> Any:
    """Return which C function a device callable says that the call means."""
    says = getattr(site.callee.obj, "__numba_cuda_call__", None)
    if says is None:
        return None
    parameters = inspect.signature(says).parameters.values()
    # A call to one of the object's methods has other parameters. The method's own meaning follows from the attributes
    # and the code of the object, which are parts of the kernel's key.
    by_name = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    split = len(site.argtypes) - len(by_name)
    arguments = site.argtypes[:split], dict(zip(by_name, site.argtypes[max(split, 0) :], strict=False))
    try:
        inspect.signature(says).bind(*arguments[0], **arguments[1])
    except TypeError:
        return None
    with asking(target):
        return says(*arguments[0], **arguments[1])


def _content(inputs: Iterable[LinkInput], target: Target) -> bytes:
    from numba.cuda.cudadrv.external_code.compile import programs

    inputs = tuple(inputs)
    callbacks = [(each.setup_callback is not None, each.teardown_callback is not None, each.nrt) for each in inputs]
    return fingerprint(callbacks, [programs.fingerprint(each, target) for each in inputs])
