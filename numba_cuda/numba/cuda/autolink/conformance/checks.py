# SPDX-License-Identifier: BSD-2-Clause
"""The checks, in their order: whether answers and link key are the same when an object is asked again, and differ from
those of other objects; whether the code links, and whether it runs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInputError
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapabilityLike, Target

from numba_cuda_autolink.short_tracebacks import warn_user

from ..compilation.context import compute_capability
from ..cxx_by_name.functions import CxxFunction
from ..protocol.ask import link_key
from ..protocol.callee import CALL_HOOK, HOOK, KEY_HOOK
from ..protocol.errors import HookError
from ..protocol.loaded_modules import UnknownValueError
from ..protocol.stored_answers import link_key_digest
from .another_process import ask_in_another_process
from .emulated_run import check_run
from .records import FailedError, Linkable, LinkedCode, SkippedError
from .samples import RunOptions
from .subject import (
    A_KEY,
    Again,
    CalledSubject,
    Subject,
    ask_again,
    ask_call_again,
    build_both,
    describe_error,
    describe_linking,
    find_python_subject,
    find_subject,
    hook_failed,
    line_of_place,
    remembered_answer,
)


def run_checks(
    obj: Any,
    argtypes: Sequence[Any],
    cc: ComputeCapabilityLike,
    lto: Sequence[bool],
    others: Sequence[Any],
    options: RunOptions,
) -> Linkable:
    """Run the checks of `testing.check_linkable`. A check that builds on one that failed is left out."""
    targets = tuple(Target(compute_capability(cc), lto=each) for each in lto)
    subject = _find(obj, argtypes, targets)
    pairs = (other if isinstance(other, tuple) else (other,) for other in others)
    compared = [_find(one, given or argtypes, targets[:1]) for one, *given in pairs]
    _check_repetition(subject)
    subject.findings.raise_failed()
    if isinstance(subject, Subject):
        _check_link_key(subject, compared)
        _check_other_process(subject)
    _check_links(subject)
    if not subject.findings.wrong:
        _check_own_symbols(subject, compared)
        check_run(subject.findings, obj, subject.args, targets[0], options)
    subject.findings.raise_failed()
    types = tuple(arg.type for arg in subject.args if arg.type is not None)
    items = [planned.input for planned in subject.built.inputs]
    if isinstance(subject, Subject):
        types, items = subject.site.argtypes, list(itertools.chain(*subject.answers.values()))
    code, symbols = dict.fromkeys(map(LinkedCode.of, items)), tuple(subject.built.prototypes)
    return Linkable(subject.findings.call, types, symbols, tuple(code), tuple(subject.findings.checks))


def _find(obj: Any, argtypes: Sequence[Any], targets: tuple[Target, ...]) -> CalledSubject:
    return find_python_subject(obj, argtypes, targets) or find_subject(obj, argtypes, targets)


def _check_links(subject: CalledSubject) -> None:
    failed: dict[str, str] = {}
    for target in subject.targets:
        how = describe_linking(target)
        for name, calls in ((f"links alone, {how}", 1), (f"links in a kernel that calls it twice, {how}", 2)):
            with subject.findings.check(name):
                if message := subject.build_error(target, calls):
                    diagnosis = message.partition("\n")[0]
                    if diagnosis in failed:
                        raise SkippedError(f"the error of the check {failed[diagnosis]!r}")
                    failed[diagnosis] = name
                    raise FailedError(message, "a kernel that links", "see the message")
            if message:
                break


_KEY_OF_VALUES = "make the key of values: no hash() of a string, no id(), no address in a repr, no counter, no time"
_OBJECTS = 64
_MOST_REPETITIONS = 4  # of hooks that answer soon: what is random may be the same twice
_SECONDS_OF_REPETITIONS = 1.0
_SLOW = 0.1  # seconds of a hook, which is asked again once


def _check_repetition(subject: CalledSubject) -> None:
    """Check that the object gives the same answers when it is asked again in this process. Warn of slow hooks."""
    seconds: dict[str, float] = {}
    with subject.findings.check("gives the same answers when asked again"):
        started = time.monotonic()
        for number in range(_MOST_REPETITIONS):
            spent = time.monotonic() - started
            if number and (spent > _SECONDS_OF_REPETITIONS or max(seconds.values()) >= _SLOW):
                break
            for hook, ask in ((CALL_HOOK, ask_call_again), (HOOK, _ask_code_again)):
                again = ask(subject)
                seconds[hook] = min(again.seconds, seconds.get(hook, again.seconds))
                if again.difference:
                    on = "the object's own constant attributes, the argument types and autolink.current_target()"
                    todo = f"make the answer depend on nothing but {on}"
                    raise FailedError(again.difference, "the same answer each time", todo)
    _warn_of_slow_hooks(subject, seconds)


def _warn_of_slow_hooks(subject: CalledSubject, seconds: Mapping[str, float]) -> None:
    remedies = {
        CALL_HOOK: f"leave what takes long to {HOOK}",
        KEY_HOOK: "make the key of what is known soon: attributes of the object, versions",
        HOOK: f"give it a {KEY_HOOK}, under which its answers are stored on disk",
    }
    for hook, taken in seconds.items():
        if taken >= _SLOW:
            warn_user(
                f"{subject.findings.name}.{hook} takes {taken:.1f} s, in each process that builds a kernel with it"
                f"\n  call: {subject.findings.call}\n  what to do: {remedies[hook]}"
            )


def _ask_code_again(subject: CalledSubject) -> Again:
    """Ask the object again for its code: for each target, or for the first one if it takes long."""
    if not isinstance(subject, Subject) or isinstance(subject.obj, CxxFunction):
        return Again()
    callee, argtypes = subject.site.callee, subject.site.argtypes
    for target in subject.targets:
        started = time.perf_counter()
        try:
            again = ask_again(callee, argtypes, target).inputs()
        except (HookError, LinkInputError) as error:
            return Again(f"{HOOK} answers once only, and then {error}{line_of_place(callee.hook)}")
        taken = time.perf_counter() - started
        before, now = ([*map(LinkedCode.of, inputs)] for inputs in (subject.answers[target], again))
        if difference := _difference(before, now):
            return Again(f"{HOOK} changes its answer{difference}{line_of_place(callee.hook)}")
        if taken >= _SLOW and callee.link_key is None:
            answered = remembered_answer(callee, argtypes, target)
            return Again("", 0.0 if answered.asks_compiler else min(taken, answered.seconds))
    return Again()


def _check_own_symbols(subject: CalledSubject, others: Sequence[CalledSubject]) -> None:
    """Check that a kernel that calls both objects links, and that no other code defines the symbol of the call: of weak
    functions and of archives, the linker takes the first."""
    if not others:
        return
    with subject.findings.check("its symbols name everything that its code depends on"):
        for other in others:
            shared = [symbol for symbol in other.built.prototypes if symbol in subject.built.prototypes]
            if shared and _codes_differ(subject, other):
                got = f"two objects define {', '.join(shared)} with different code\nthe other: {other.findings.call}"
                todo = "put into the symbol what the code depends on: attributes of the object, types"
                raise FailedError(got, "a symbol of its own for different code", todo)
            try:
                build_both(subject, other, subject.targets[0])
            except Exception as error:
                raise FailedError(describe_error(error), "a kernel that calls both links", "see the message") from error


def _check_link_key(subject: Subject, others: Sequence[CalledSubject]) -> None:
    """Check that a link key is the same each time, and differs where the code does."""
    with subject.findings.check(f"its {KEY_HOOK} identifies its code"):
        if subject.site.callee.link_key is None:
            raise SkippedError("it has none")
        try:
            key = _key(subject)
            living = [object() for _ in range(_OBJECTS)]  # so that what the key makes anew has another id()
            started = time.perf_counter()
            again = _key(subject)
            seconds = time.perf_counter() - started
            del living
        except HookError as error:
            raise hook_failed(error, None, subject.targets) from error
        if key is None:
            raise SkippedError("it is None")
        _warn_of_slow_hooks(subject, {KEY_HOOK: seconds})
        place = line_of_place(subject.site.callee.link_key)
        if _digest(key, place) != _digest(again, place):
            got = f"{KEY_HOOK} changes its answer: first {safe_repr(key)}, then {safe_repr(again)}{place}"
            raise FailedError(got, "the same key each time", _KEY_OF_VALUES)
        for other in (each for each in others if isinstance(each, Subject)):
            must_differ = _question(subject) == _question(other) and _codes_differ(subject, other)
            if must_differ and _digest(_key(other), place) == _digest(key, place):
                got = f"{KEY_HOOK} returns {safe_repr(key)} for different code"
                got += f"\nalso the key of: {other.findings.call}{place}"
                todo = "put into the key what the code depends on: attributes of the object, versions of the generator"
                raise FailedError(got, "different keys for different code", todo)


def _check_other_process(subject: Subject) -> None:
    """Check that the key and the code are the same in another process, which finds stored answers by the key."""
    if subject.site.callee.link_key is None or subject.findings.wrong or (key := _key(subject)) is None:
        return
    with subject.findings.check("gives the same key and code in another process"):
        there = ask_in_another_process(subject)
        place = line_of_place(subject.site.callee.link_key)
        if there.digest != _digest(key, place):
            got = f"{KEY_HOOK} differs between processes: here {safe_repr(key)}, in another one {there.text}{place}"
            raise FailedError(got, "the same key in each process", _KEY_OF_VALUES)
        here = [*map(LinkedCode.of, subject.answers[subject.targets[0]])]
        if difference := _difference(here, there.code):
            got = f"{HOOK} differs between processes{difference}{line_of_place(subject.site.callee.hook)}"
            todo = "write the code in a fixed order, as of sorted(...), and of values: no hash() of a string, no id()"
            raise FailedError(got, "the same code in each process", todo)


def _key(subject: Subject) -> Any:
    return link_key(subject.site.callee, subject.site.argtypes, subject.targets[0])


def _digest(key: Any, place: str) -> bytes:
    try:
        return link_key_digest(key)
    except UnknownValueError as error:
        got = f"{KEY_HOOK} returns {safe_repr(key)}, with which no answer can be stored: {error}{place}"
        raise FailedError(got, A_KEY, _KEY_OF_VALUES) from error


def _question(subject: Subject) -> Any:
    """Return what an answer is stored under besides the key: the signature, and the object's class."""
    obj = subject.site.callee.obj
    return subject.site.argtypes, obj if isinstance(obj, (FunctionType, type)) else type(obj)


def _codes_differ(one: CalledSubject, other: CalledSubject) -> bool:
    """Return whether both objects return code, and not the same."""
    if not (isinstance(one, Subject) and isinstance(other, Subject)):
        return False
    return one.answers[one.targets[0]] != other.answers[one.targets[0]]


def _difference(one: Sequence[LinkedCode], other: Sequence[LinkedCode]) -> str:
    """Return how two answers differ, or an empty text if they are the same code."""
    if len(one) != len(other):
        return f": first {len(one)} pieces of code, then {len(other)}"
    for before, after in zip(one, other, strict=True):
        if before.digest != after.digest:
            return f"{_differing_line(before, after)}\nfirst: {before}\nthen: {after}"
    return ""


def _differing_line(before: LinkedCode, after: LinkedCode) -> str:
    lines = itertools.zip_longest((before.text or "").splitlines(), (after.text or "").splitlines(), fillvalue="")
    for number, (one, other) in enumerate(lines, 1):
        if one != other:
            return f" in line {number}\nline {number} first: {one.strip()}\nline {number} then: {other.strip()}"
    return ""
