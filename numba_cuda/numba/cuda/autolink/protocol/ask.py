# SPDX-License-Identifier: BSD-2-Clause
"""Asking objects for their code: the only module that calls their hooks. A call site then travels with its answer."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.diagnostics import progress, timeline
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr, safe_text
from numba.cuda.cudadrv.external_code.diagnostics.signal_handlers import raised_by_signal_handler
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import (
    NOT_ASYNC,
    LinkInput,
    LinkInputError,
    close_coroutine,
    file_of,
    from_item,
)
from numba.cuda.cudadrv.external_code.platform.target import Target

from numba_cuda_autolink.files import find_elsewhere

from ..compilation.context import answering, asking, compilation, current_state, noting_device_functions
from ..frontend_api.refused_calls import last_column
from .answers import Answer, AnswerMemory, CallingCode, Item, items_of
from .call_sites import CallSite, CallSites
from .callee import HOOK, KEY_HOOK, Callee, identity
from .errors import AskedAgainError, CallError, HookError, raised_at, raised_by_hook

if TYPE_CHECKING:
    from numba.cuda.core import ir
    from numba.cuda.typing.templates import Signature


@dataclass(frozen=True)
class AskedCall(CallSite):
    """A call site together with the answer for one target. Two are equal if their call sites are.

    It is pickled as its call site: the answer holds code and callbacks, which the object gives again.
    """

    target: Target = field(compare=False)
    answer: Answer = field(compare=False, repr=False)

    @property
    def site(self) -> CallSite:
        return CallSite(self.callee, self.argtypes, self.filename, self.line, self.function)

    def __reduce__(self) -> Any:
        return CallSite, tuple(vars(self.site).values())


_memory = AnswerMemory()


def ask(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> Answer:
    """Return the answer of *callee* for a call with *argtypes*; ask once for each signature and target.

    Raise `HookError`, without the call site, which the caller knows: if the object raises, returns what cannot be
    linked, or compiles a call to itself; where the cache is verified, also if it answers otherwise than before.
    """
    answers, question = _memory.of(callee), (argtypes, target)
    being_asked = (callee, *question) in current_state().questions
    if question in answers:
        if current_store().settings.verify and not being_asked:
            _verify(callee, argtypes, target, answers[question])
    elif being_asked:
        raise AskedAgainError(callee, argtypes, "is asked again while it is still answering")
    else:
        with answering((callee, *question)):
            answers[question] = _answer(callee, argtypes, target)
    return answers[question]


def forget_answers(obj: Any) -> None:
    """Ask *obj* again for its next call: what it answers has changed."""
    _memory.pop(identity(obj), None)


def with_answer(call: CallSite, target: Target) -> AskedCall:
    """Return *call* with its answer for *target*; raise `HookError` as `ask` does.

    The called object is asked only where there is no such answer: by the compiler, when it finds the call; for a link
    for another target than the compilation's, as ``get_cubin(cc=...)`` makes it; and for a kernel loaded from a cache,
    whose calls come without answers.
    """
    if isinstance(call, AskedCall) and call.target == target:
        return call
    return AskedCall(**vars(call.site), target=target, answer=ask(call.callee, call.argtypes, target))


def ask_all(sites: CallSites, calltypes: Mapping[ir.Expr, Signature]) -> None:
    """Ask the objects that the calls of a typed function reach, so that one that refuses is a typing error there."""
    for call, site in sites.all(calltypes):
        ask_at(site, call.loc, functools.partial(last_column, sites.func_ir, call))


def ask_at(site: CallSite, loc: Any, find_column: Callable[[], int | None] = lambda: None) -> AskedCall:
    """Return *site* with its answer for the target of the compilation in progress; raise `CallError`, an error at *loc*
    of the IR, if there is no usable answer. An object that gave none is not asked again in the same compilation.
    *find_column* returns the column where the call ends, if it is known."""
    in_progress = compilation()
    assert in_progress is not None
    question = site.callee, site.argtypes
    try:
        if question in in_progress.raised:
            raise in_progress.raised[question]
        return with_answer(site, in_progress.target)
    except HookError as error:
        in_progress.raised[question] = error
        raise CallError(error, site, loc, find_column()) from error.__cause__


def ask_afresh(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> Answer:
    """Call the hook of *callee*, whatever it answered before, and remember nothing; raise `HookError` as `ask` does."""
    with _hook_errors(callee, argtypes):
        return _fitting(Answer(_call_hook(callee, argtypes, target)), target)


def link_key(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> Any:
    """Return the link key of *callee* for a call with *argtypes*; None if it has none. May raise `HookError`."""
    if callee.link_key is None:
        return None
    if not callable(callee.link_key):
        raise _not_callable(callee, argtypes, callee.link_key, KEY_HOOK)
    with asking(target), _hook_errors(callee, argtypes, KEY_HOOK):
        key = callee.link_key(*argtypes)
    if close_coroutine(key):
        raise HookError(callee, argtypes, f"returned a coroutine\n  what to do: {NOT_ASYNC}", hook=KEY_HOOK)
    return key


def _answer(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> Answer:
    key = link_key(callee, argtypes, target)
    package = callee.package() if key is not None else None  # before it is asked: it may remember things then
    start = time.perf_counter()
    hook = timeline.span("hook", callee.name if str(callee).startswith("<") else str(callee))
    with noting_device_functions() as noted, _hook_errors(callee, argtypes), hook as span:
        if key is None:
            items, was_stored = _call_hook(callee, argtypes, target), False
        else:
            from .stored_answers import stored

            ask_object = functools.partial(_call_hook, callee, argtypes, target)
            items, was_stored = stored(callee, package, key, (argtypes, target), ask_object)
            span.origin = "stored" if was_stored else "built"
        return _fitting(Answer(items, time.perf_counter() - start, was_stored, bool(noted)), target)


def _fitting(answer: Answer, target: Target) -> Answer:
    """Return *answer*, whose files must exist, and whose finished code must fit the target."""
    for link_input in answer.inputs():
        if link_input.kind is not kinds.CUDA:
            from numba.cuda.cudadrv.external_code.plan.plan_checks import misfit  # which CUDA C++ does not need

            if why := misfit(link_input, target):
                raise LinkInputError(f"{link_input.kind} {link_input.name!r} does not fit\n  reason: {why}")
    return answer


def _call_hook(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> tuple[Item, ...]:
    if not callable(callee.hook):
        raise _not_callable(callee, argtypes, callee.hook)
    with asking(target), progress.step(f"asking {callee.name} for its code"):
        items = items_of(callee.hook(*argtypes))
    return tuple(_check_item(callee, item) for item in items)


def _not_callable(callee: Callee, argtypes: tuple[Any, ...], got: Any, hook: str = HOOK) -> HookError:
    remedy = "make it a method, not a property or a value"
    said = f"is not callable\n  got: {safe_repr(got)}\n  what to do: {remedy}"
    return HookError(callee, argtypes, said, hook=hook)


def _check_item(callee: Callee, item: Any) -> Item:
    if isinstance(item, CallingCode) or file_of(item) is not None:
        return item
    return _name_after(callee, from_item(item))


def _name_after(callee: Callee, link_input: LinkInput) -> LinkInput:
    name = f"{callee.name}{link_input.kind.suffixes[0]}"
    return dataclasses.replace(link_input, name=name) if link_input.name.startswith("<unnamed") else link_input


@contextlib.contextmanager
def _hook_errors(callee: Callee, argtypes: tuple[Any, ...], hook: str = HOOK) -> Iterator[None]:
    """Turn what the *hook* raises into `HookError`."""
    try:
        yield
    except HookError:
        raise
    except LinkInputError as error:
        advice = f"\n  what to do: {find_elsewhere(error.missing)}" if error.missing else ""
        said = f"returned what cannot be linked: {error}{advice}"
        raise HookError(callee, argtypes, said, hook=hook) from error
    except (Exception, SystemExit) as error:
        if raised_by_signal_handler(error):
            raise
        if isinstance(error, CallError) and isinstance(error.hook_error, AskedAgainError):
            message = (
                "compiles a call to itself with the same types, and so can never answer\n"
                f"  compiled call at: {error.call_site.place}\n"
                "  what to do: let the code that it compiles call something else, or return CUDA C++"
            )
            raise HookError(callee, argtypes, message, raised_at=raised_by_hook(error), hook=hook) from error
        message = f"raised {type(error).__name__}: {safe_text(error)}"
        raise HookError(callee, argtypes, message, raised_at=raised_at(error), hook=hook) from error


def _verify(callee: Callee, argtypes: tuple[Any, ...], target: Target, before: Answer) -> None:
    """Ask again, and refuse an answer that differs from the one *before*: what is cached would be one of several."""
    if difference := before.difference_from(_answer(callee, argtypes, target)):
        raise HookError(
            callee,
            argtypes,
            f"changes its answer between calls\n  got: {difference}\n  expected: the same code each time\n"
            "  what to do: make the code depend on nothing but the object's own constant attributes, the argument"
            " types and autolink.current_target()",
        )
