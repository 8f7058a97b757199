# SPDX-License-Identifier: BSD-2-Clause
"""The protocol: asking objects for the code that a call of them needs.

An object takes part by having a method ``__numba_cuda_link__(*argtypes)``. It is called with the Numba types of a
call's arguments and returns what is to be linked: nothing (``None``), one item, or an iterable of items. An item is a
``numba.cuda`` ``LinkableCode``, a ``cuda.core.ObjectCode`` or a path whose suffix tells its kind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from numba.cuda.cudadrv.external_code import progress
from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, LinkInputError, from_item, is_item
from numba.cuda.cudadrv.external_code.safe_repr import safe_repr
from numba.cuda.cudadrv.external_code.target import Target

from ..compilation import asking
from .callee import KEY_HOOK, Callee, _is_method
from .errors import AskedAgainError, CallError, HookError
from .frames import raised_at, raised_by_hook


class Answer:
    """What an object returned for one signature and target.

    Files are read again each time, so that an edited file is seen by the next kernel. ``seconds`` is how long the
    answer took; ``stored`` tells that it was given for the same link key before, maybe in another process.
    """

    def __init__(self, items: tuple[Any, ...], seconds: float = 0.0, stored: bool = False):
        self._items = items
        self.seconds = seconds
        self.stored = stored
        self.inputs()  # a missing file is the call's error, not the link's

    @property
    def in_memory(self) -> bool:
        """Whether it is finished code in memory, without callbacks: no file that could change has a part in it."""
        return all(
            isinstance(item, LinkInput)
            and item.kind is not kinds.CUDA
            and item.setup_callback is None
            and item.teardown_callback is None
            for item in self._items
        )

    def difference_from(self, later: Answer) -> str:
        """In what a *later* answer to the same question differs; empty if it is the same code."""
        before, now = self._items, later._items
        if len(before) != len(now):
            return f"first {len(before)} pieces of code, then {len(now)}"
        for one, other in zip(before, now, strict=True):
            if one != other:
                return f"first {_told(one)}, then {_told(other)}"
        return ""

    def inputs(self) -> tuple[LinkInput, ...]:
        """The code as link inputs, in the order in which it was returned."""
        return tuple(item if isinstance(item, LinkInput) else from_item(item) for item in self._items)


def _told(item: Any) -> str:
    if not isinstance(item, LinkInput):
        return os.fsdecode(item)
    return f"{item.kind} {item.name!r} ({len(item.code)} bytes, SHA-256 {item.digest[:12]})"


def _named(callee: Callee, link_input: LinkInput) -> LinkInput:
    """*link_input*, with the type of the object for a name where it has none."""
    if not link_input.name.startswith("<unnamed"):
        return link_input
    return dataclasses.replace(link_input, name=f"{callee.name}{link_input.kind.suffixes[0]}")


class _Memory:
    """Answers by (object, argument types, target), for as long as the object lives."""

    def __init__(self) -> None:
        self._answers: dict[Callee, dict[Any, Answer]] = {}

    def of(self, callee: Callee) -> dict[Any, Answer]:
        answers = self._answers.get(callee)
        if answers is None:
            answers = self._answers[_Forgetful(callee, self._answers)] = {}
        return answers


class _Forgetful(Callee):
    """The key of an object's answers. It holds no reference to an object that can be referred to weakly; when that
    object dies its answers go, before another object can have its identity."""

    __slots__ = ()

    def __init__(self, callee: Callee, answers: dict[Callee, Any]):
        self._identity = callee._identity
        self.obj = None
        owner = callee.obj.__self__ if _is_method(callee.obj) else callee.obj
        try:
            weakref.finalize(owner, answers.pop, self, None).atexit = False
        except TypeError:
            self.obj = callee.obj


_memory = _Memory()
_being_asked: list[tuple[Callee, Any]] = []


def ask(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> Answer:
    """Ask *callee* for the code of a call with *argtypes*: once for each signature and target.

    Raises
    ------
    HookError
        If the object raises, returns what cannot be linked, or compiles a call of itself; where the cache is verified,
        also if it answers otherwise than before. It does not name the call site, which the caller knows.
    """
    answers = _memory.of(callee)
    question = (argtypes, target)
    if question in answers:
        if current_store().settings.verify:
            _verify(callee, argtypes, target, answers[question])
    else:
        if (callee, question) in _being_asked:
            raise AskedAgainError(callee, argtypes, "is asked again while it is still answering")
        _being_asked.append((callee, question))
        try:
            answers[question] = _ask(callee, argtypes, target)
        finally:
            _being_asked.pop()
    return answers[question]


def _ask(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> Answer:
    value = None
    if callee.link_key is not None:
        with asking(target), _hook_errors(callee, argtypes, f"{KEY_HOOK} "):
            value = callee.link_key(*argtypes)
    asked = False

    def ask() -> tuple[Any, ...]:
        nonlocal asked
        asked = True
        return _asked(callee, argtypes, target)

    start = time.perf_counter()
    with _hook_errors(callee, argtypes):
        if value is None:
            items = ask()
        else:
            from .stored_answers import stored

            items = stored(callee, value, argtypes, target, ask)
        answer = Answer(items, time.perf_counter() - start, stored=not asked)
        _refuse_misfits(answer, target)
        return answer


def _refuse_misfits(answer: Answer, target: Target) -> None:
    finished = [link_input for link_input in answer.inputs() if link_input.kind is not kinds.CUDA]
    if finished:
        from numba.cuda.cudadrv.external_code.formats import structure as link_checks

        for link_input in finished:
            if why := link_checks.misfit(link_input, target):
                raise LinkInputError(f"{link_input.kind} {link_input.name!r} does not fit: {why}")


def _asked(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> tuple[Any, ...]:
    """What the hook returns: link inputs, and paths as they are."""
    if not callable(callee.hook):
        raise HookError(callee, argtypes, f"is not callable: it is {safe_repr(callee.hook)}")
    with asking(target), progress.step(f"asking {callee.name} for its code"):
        items = _items(callee.hook(*argtypes))
    return tuple(item if isinstance(item, (str, os.PathLike)) else _named(callee, from_item(item)) for item in items)


@contextlib.contextmanager
def _hook_errors(callee: Callee, argtypes: tuple[Any, ...], which: str = "") -> Iterator[None]:
    """Turn what a hook raises into `HookError`."""
    try:
        yield
    except HookError:
        raise
    except LinkInputError as error:
        raise HookError(callee, argtypes, f"{which}returned what cannot be linked: {error}") from error
    except Exception as error:
        if isinstance(error, CallError) and isinstance(error.hook_error, AskedAgainError):
            message = (
                f"compiles a call of itself with the same types, at {error.call_site.place}, so that it would never"
                " come to an answer\n"
                "  what to do: let the code that it compiles call something else, or return CUDA C++"
            )
            raise HookError(callee, argtypes, message, raised_at=raised_by_hook(error)) from error
        message = f"{which}raised {type(error).__name__}: {error}"
        raise HookError(callee, argtypes, message, raised_at=raised_at(error)) from error


def _verify(callee: Callee, argtypes: tuple[Any, ...], target: Target, before: Answer) -> None:
    """Ask again, and refuse an answer of other code than *before*: what is cached would be one of several."""
    if (callee, (argtypes, target)) in _being_asked:
        return
    now = _ask(callee, argtypes, target)
    difference = before.difference_from(now)
    if difference:
        raise HookError(
            callee,
            argtypes,
            f"changes its answer between calls: {difference}\n  what to do: make the code depend on nothing but the"
            " object's own constant attributes, the argument types and autolink.current_target()",
        )


def _items(returned: Any) -> tuple[Any, ...]:
    if returned is None:
        return ()
    if is_item(returned):
        return (returned,)
    if isinstance(returned, Iterable) and not isinstance(returned, (bytes, bytearray, memoryview, Mapping)):
        return tuple(returned)
    raise LinkInputError.unknown_item(returned)
