# SPDX-License-Identifier: BSD-2-Clause
"""The protocol: asking objects for the code that a call of them needs.

An object takes part by having a method ``__numba_cuda_link__(*argtypes)``. It is called with the Numba types of a
call's arguments and returns what is to be linked: nothing (``None``), one item, or an iterable of items. An item is a
``numba.cuda`` ``LinkableCode``, a ``cuda.core.ObjectCode`` or a path whose suffix tells its kind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import pickle
import time
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from numba.cuda.cudadrv import cache_store, link_inputs, progress
from numba.cuda.cudadrv.link_inputs import LinkInput

from .errors import AskedAgainError, CallError, HookError, safe_repr
from .target import Target, asking

HOOK = "__numba_cuda_link__"
KEY_HOOK = "__numba_cuda_link_key__"


class Callee:
    """An object with linkable code, told apart by identity.

    A bound method is told apart by the identities of its owner and its function, since Python makes a new object of it
    at every access.
    """

    __slots__ = ("_identity", "hook", "obj")

    def __init__(self, obj: Any, hook: Callable[..., Any]):
        self.obj = obj
        self.hook = hook
        self._identity = identity(obj)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return safe_repr(self.obj)

    def __reduce__(self) -> Any:
        return _callee_again, (self.obj,)  # the hook comes with the object

    @property
    def name(self) -> str:
        """A short name: that of a function or class, of a method with its owner's type, or of an object's type."""
        named = self.obj if hasattr(self.obj, "__name__") else type(self.obj)
        owner = getattr(self.obj, "__self__", None)
        if owner is None or isinstance(owner, ModuleType):
            return str(named.__name__)
        return f"{getattr(owner, '__name__', type(owner).__name__)}.{named.__name__}"

    @property
    def link_key(self) -> Callable[..., Any] | None:
        """The object's ``__numba_cuda_link_key__``, if it has one that is its own."""
        return _own_attribute(self.obj, KEY_HOOK)

    @property
    def source_stamp(self) -> str:
        """File, size and time of the Python source of the hook; empty where there is none. A link key does not tell
        that its author changed what is generated for it."""
        code = getattr(inspect.unwrap(self.hook), "__code__", None)
        try:
            found = os.stat(code.co_filename)  # type: ignore[union-attr]
        except (AttributeError, OSError):
            return ""
        return f"{code.co_filename} ({found.st_size} bytes of {found.st_mtime_ns})"  # type: ignore[union-attr]


def _callee_again(obj: Any) -> Callee:
    found = callee(obj)
    if found is None:
        raise pickle.UnpicklingError(f"{safe_repr(obj)} has no {HOOK} any more")
    return found


def _is_method(obj: Any) -> bool:
    return hasattr(obj, "__self__") and hasattr(obj, "__func__")


def identity(obj: Any) -> tuple[int, int | None]:
    """What tells *obj* apart: its identity, of a method that of its owner and that of its function."""
    return (id(obj.__self__), id(obj.__func__)) if _is_method(obj) else (id(obj), None)


def callee(obj: Any) -> Callee | None:
    """Who answers for a call of *obj*: of a bound method the method itself, then its owner; of a dispatcher the
    dispatcher itself, then its Python function. None where nobody does."""
    for candidate in (obj, getattr(obj, "__self__", None), getattr(obj, "py_func", None)):
        if candidate is not None:
            hook = _own_attribute(candidate, HOOK)
            if hook is not None:
                return Callee(candidate, hook)
    return None


def _own_attribute(obj: Any, name: str) -> Callable[..., Any] | None:
    """The attribute *name* of *obj*; of a class only one that can be called on the class itself."""
    if inspect.isclass(obj):
        static = inspect.getattr_static(obj, name, None)
        if not isinstance(static, (classmethod, staticmethod)) and not hasattr(type(obj), name):
            return None
    return getattr(obj, name, None)


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
            and item.kind is not link_inputs.CUDA
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
        return tuple(item if isinstance(item, LinkInput) else link_inputs.from_item(item) for item in self._items)


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
        if cache_store.store().settings.verify:
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
    finished = [link_input for link_input in answer.inputs() if link_input.kind is not link_inputs.CUDA]
    if finished:
        from numba.cuda.cudadrv import link_checks

        for link_input in finished:
            if why := link_checks.misfit(link_input, target):
                raise link_inputs.LinkInputError(f"{link_input.kind} {link_input.name!r} does not fit: {why}")


def _asked(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> tuple[Any, ...]:
    """What the hook returns: link inputs, and paths as they are."""
    if not callable(callee.hook):
        raise HookError(callee, argtypes, f"is not callable: it is {safe_repr(callee.hook)}")
    with asking(target), progress.step(f"asking {callee.name} for its code"):
        items = _items(callee.hook(*argtypes))
    return tuple(
        item if isinstance(item, (str, os.PathLike)) else _named(callee, link_inputs.from_item(item)) for item in items
    )


@contextlib.contextmanager
def _hook_errors(callee: Callee, argtypes: tuple[Any, ...], which: str = "") -> Iterator[None]:
    """Turn what a hook raises into `HookError`."""
    try:
        yield
    except HookError:
        raise
    except link_inputs.LinkInputError as error:
        raise HookError(callee, argtypes, f"{which}returned what cannot be linked: {error}") from error
    except Exception as error:
        if isinstance(error, CallError) and isinstance(error.hook_error, AskedAgainError):
            message = (
                f"compiles a call of itself with the same types, at {error.call_site.place}, so that it would never"
                " come to an answer\n"
                "  what to do: let the code that it compiles call something else, or return CUDA C++"
            )
            raise HookError(callee, argtypes, message, raised_at=_raised_by_hook(error)) from error
        message = f"{which}raised {type(error).__name__}: {error}"
        raise HookError(callee, argtypes, message, raised_at=_raised_at(error)) from error


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
    if link_inputs.is_item(returned):
        return (returned,)
    if isinstance(returned, Iterable) and not isinstance(returned, (bytes, bytearray, memoryview, Mapping)):
        return tuple(returned)
    raise link_inputs.LinkInputError.unknown_item(returned)


def _raised_at(error: BaseException) -> str | None:
    """File and line of the innermost frame of *error*."""
    frames = traceback.extract_tb(error.__traceback__)
    # Where there are frames of this package alone, the call of the hook failed: with a wrong number of arguments, say.
    if not _outside(frames):
        return None
    return f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}"


def _raised_by_hook(error: BaseException) -> str | None:
    """File and line in the hook that *error*, of a nested compilation, came through."""
    outside = _outside(traceback.extract_tb(error.__traceback__))
    return f"{outside[0].filename}:{outside[0].lineno} in {outside[0].name}" if outside else None


def _outside(frames: Iterable[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Those *frames* that are not of this package."""
    return [frame for frame in frames if os.path.dirname(frame.filename) not in _OWN_FOLDERS]


_OWN_FOLDERS = (os.path.dirname(__file__), os.path.dirname(link_inputs.__file__), os.path.dirname(contextlib.__file__))
