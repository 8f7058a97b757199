# SPDX-License-Identifier: BSD-2-Clause
"""The object that is checked: functions that call it, that a kernel can call it, and the code that it returns."""

from __future__ import annotations

import inspect
import itertools
import linecache
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numba.core.errors import NumbaError
from numba.cuda import types
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr, safe_text
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError
from numba.cuda.cudadrv.external_code.platform.target import Target

from numba_cuda_autolink.errors import PrintableError
from numba_cuda_autolink.short_tracebacks import user_frames

from ..builds.ahead_of_time import build
from ..builds.result import LinkedKernel
from ..c_abi.c_types import numba_type_named, numba_type_of
from ..compilation.context import without_device
from ..cxx_by_name.functions import CxxFunction
from ..device_callable.base_class import BoundDeviceMethod, DeviceCallable
from ..device_callable.object_type import DeviceCallableType, asked_afresh
from ..frontend_api.front_end import core_type
from ..protocol.answers import Answer
from ..protocol.ask import ask, ask_afresh
from ..protocol.call_sites import CallSite
from ..protocol.callee import CALL_HOOK, HOOK, KEY_HOOK, Callee, find_callee, place_of
from ..protocol.errors import TAKE_ARGUMENTS, CallError, HookError, raised_by_user_code
from ..protocol.value_digest import is_plain
from .records import FailedError, Findings

A_KEY = "a key: numbers, strings, bytes, and tuples, lists, sets and dicts of them"
_OF_PROBE = "a kernel of check_linkable"
_IN_PROBE = re.compile(rf"\n *(?:called (?:from|at)|at): <{_OF_PROBE}, \d+>.*(?:\n(?! *[\w ]+: ).*\n *\^+)?")
_numbers = itertools.count(1)
_CALL = "    obj({arguments})\n"


@dataclass(frozen=True)
class Argument:
    """An argument of the call: a parameter of the kernel with its Numba ``type``, or a constant."""

    type: Any = None
    constant: Any = None

    @classmethod
    def of(cls, given: Any) -> Argument:
        """Return the argument that *given* stands for. Raise `TypeError` if a string is not the name of a type, and for
        classes of Python."""
        if isinstance(given, str):
            given = numba_type_named(given)
        given = core_type(given)
        if isinstance(given, types.Literal):
            return cls(constant=given.literal_value)
        is_type = isinstance(given, type) and (issubclass(given, np.generic) or given.__module__ == "builtins")
        if is_type or isinstance(given, (types.Type, np.dtype)):
            return cls() if isinstance(given, types.NoneType) else cls(numba_type_of(given))
        return cls(constant=given)

    @property
    def is_scalar(self) -> bool:
        """Whether each thread can pass a value of its own: a number or a record."""
        return self.type is not None and not isinstance(self.type, types.Array)

    def __str__(self) -> str:
        return repr(self.constant) if self.type is None else str(self.type)


@dataclass(frozen=True)
class Probe:
    """A *function* that calls the object, and the Numba types of its parameters."""

    function: Callable[..., Any]
    types: tuple[Any, ...]

    def build(self, target: Target, **options: Any) -> LinkedKernel:
        return build(self.function, self.types, cc=target.cc, **options)


def make_probe(
    obj: Any,
    args: Sequence[Argument],
    body: str = _CALL,
    passed: Mapping[int, str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    **namespace: Any,
) -> Probe:
    """Return a function whose *body* calls *obj* with ``{arguments}``, and whose parameters are those with a type.

    For an argument numbered in *passed*, the body passes that variable. *parameters* adds parameters with their types.
    """
    named = {f"{'a' if arg.type is not None else 'constant'}{number}": arg for number, arg in enumerate(args)}
    typed = {name: arg.type for name, arg in named.items() if arg.type is not None} | dict(parameters or {})
    arguments = ", ".join((passed or {}).get(number, name) for number, name in enumerate(named))
    source = f"def probe({', '.join(typed)}):\n{body.format(arguments=arguments)}"
    file = f"<{_OF_PROBE}, {next(_numbers)}>"
    # Error messages read the line from here.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    constants = {name: arg.constant for name, arg in named.items() if name not in typed}
    known: dict[str, Any] = {"obj": obj, "__name__": __name__, **namespace, **constants}
    exec(compile(source, file, "exec"), known)
    return Probe(known["probe"], tuple(typed.values()))


def build_calls(obj: Any, args: Sequence[Argument], target: Target, calls: int = 1, **options: Any) -> LinkedKernel:
    """Build a kernel that makes that many *calls* of *obj* with *args*."""
    return make_probe(obj, args, _CALL * calls).build(target, **options)


@dataclass(frozen=True)
class CalledSubject:
    """An object that a kernel can call: ``built`` is a kernel that does."""

    findings: Findings
    obj: Any
    args: tuple[Argument, ...]
    targets: tuple[Target, ...]
    built: LinkedKernel

    def build_error(self, target: Target, calls: int = 1) -> str:
        """Link a kernel with that many *calls* of the object, and return the error, or an empty text."""
        try:
            build_calls(self.obj, self.args, target, calls, lto=target.lto)
        except Exception as error:
            return describe_error(error) + self.place
        return ""

    @property
    def place(self) -> str:
        """A line with the place of the hook that returns the code; empty if that is unknown."""
        return ""


@dataclass(frozen=True)
class Subject(CalledSubject):
    """An object that a kernel can call, and that returns code.

    ``site`` is the call as the compiler found it; ``answers`` are the code for each target.
    """

    site: CallSite
    answers: Mapping[Target, tuple[LinkInput, ...]]

    @property
    def place(self) -> str:
        return "" if isinstance(self.obj, CxxFunction) else line_of_place(self.site.callee.hook, HOOK)


def build_both(one: CalledSubject, other: CalledSubject, target: Target) -> LinkedKernel:
    """Build a kernel that calls both objects."""
    from numba import cuda

    second = make_probe(other.obj, other.args)
    parameters = {f"b{number}": type for number, type in enumerate(second.types)}
    body, function = f"{_CALL}    other({', '.join(parameters)})\n", cuda.jit(device=True)(second.function)
    return make_probe(one.obj, one.args, body, parameters=parameters, other=function).build(target, lto=target.lto)


def describe_linking(target: Target) -> str:
    return "with LTO" if target.lto else "without LTO"


def _start(obj: Any, args: Iterable[Argument]) -> Findings:
    name = Callee(obj, obj).name
    return Findings(name, f"{safe_repr(obj)}({', '.join(map(str, args))})")


def line_of_place(hook: Any, name: str = "") -> str:
    """Return a line with the place where a *hook* is defined, with its *name*; empty if that is unknown."""
    place = place_of(hook)
    return place and f"\n{name and name + ' is '}defined at: {place}"


def find_subject(obj: Any, argtypes: Iterable[Any], targets: tuple[Target, ...]) -> Subject:
    """Return the subject of the other checks. Raise `NotLinkableError` if *obj* cannot be called, or does not return
    code for each target."""
    args = tuple(map(Argument.of, argtypes))
    findings = _start(obj, args)
    callee = find_callee(obj)
    with findings.check(f"has a {HOOK}"):
        if callee is None and isinstance(obj, type) and (hasattr(obj, HOOK) or hasattr(obj, CALL_HOOK)):
            todo = f"pass an instance: check_linkable({obj.__name__}(...), ...)"
            raise FailedError("it is a class", "an instance of it, which kernels call", todo)
        if callee is None:
            todo = "define it; for a class, as a classmethod or a staticmethod"
            raise FailedError(f"{type(obj).__name__} has no {HOOK}", f"a method {HOOK}(*argtypes)", todo)
        if not callable(callee.hook):
            raise FailedError(f"{HOOK} is {safe_repr(callee.hook)}", "a method", "define it as a method")
    findings.raise_failed()
    hook_error: HookError | None = None
    with findings.check("can be called in a kernel"):
        try:
            built = _build(obj, args, targets[0])
            site = _site_of(obj, built)
        except CallError as error:
            hook_error = error.hook_error
    findings.raise_failed()
    with findings.check("returns code that links"):
        if hook_error is not None:
            raise hook_failed(hook_error, None, targets)
        answers = {target: _answer(site, target, targets) for target in targets}
    findings.raise_failed()
    return Subject(findings, obj, args, targets, built, site, answers)


def find_python_subject(obj: Any, argtypes: Iterable[Any], targets: tuple[Target, ...]) -> CalledSubject | None:
    """Return *obj* if its calls stand for Python functions, and it has no hook for code; else ``None``. Raise
    `NotLinkableError` if a kernel cannot call it."""
    if find_callee(obj) is not None or isinstance(obj, type) or not hasattr(obj, CALL_HOOK):
        return None
    args = tuple(map(Argument.of, argtypes))
    findings = _start(obj, args)
    with findings.check("can be called in a kernel"):
        built = _build(obj, args, targets[0])
    findings.raise_failed()
    if built.called_functions and not built.call_sites:  # a C function, whose code the object does not return
        return None
    return CalledSubject(findings, obj, args, targets, built)


def _build(obj: Any, args: tuple[Argument, ...], target: Target) -> LinkedKernel:
    """Return a kernel that calls *obj*, compiled and not linked."""
    try:
        return build_calls(obj, args, target, output="ltoir")
    except CallError:
        raise
    except Exception as error:
        if not isinstance(error, NumbaError) and (frames := user_frames(error)):  # of what it defines besides hooks
            todo = f"correct {frames[-1][0].co_name}: the compiler uses it"
            got = f"its {frames[-1][0].co_name} raises {describe_error(error)}\nraised at: {raised_by_user_code(error)}"
            raise FailedError(got, "a kernel that calls it compiles", todo) from error
        todo = (
            "check it with types that it accepts, or let its __numba_cuda_call__ accept these"
            if hasattr(obj, CALL_HOOK)
            else "derive its class from autolink.DeviceCallable and give it a __numba_cuda_call__ for these types,"
            " or register its typing and lowering with Numba"
        )
        todo = "see the message, or check it with types that it accepts" if isinstance(obj, CxxFunction) else todo
        said, place = describe_error(error), ""
        if "raised at: " not in said and not isinstance(obj, CxxFunction):
            place = line_of_place(getattr(obj, CALL_HOOK, None), CALL_HOOK)
        raise FailedError(said + place, "a kernel that calls it compiles", todo) from error


def describe_error(error: Exception) -> str:
    """Return the text of an *error*, without places in kernels of the checks; after its class, unless it is the
    compiler's, whose texts say what is wrong."""
    if isinstance(error, (NumbaError, PrintableError, LinkError)):
        return _IN_PROBE.sub("", str(error))
    return f"{type(error).__name__}: {safe_text(error)}"


def _site_of(obj: Any, built: LinkedKernel) -> CallSite:
    for site in built.call_sites:
        if site.callee == find_callee(obj) or _is_rewritten(site.callee.obj, obj):
            return site
    got = f"the call asks {', '.join(str(site.callee) for site in built.call_sites) or 'no object'}"
    todo = "let kernels call the object itself: its Numba type names it by the attribute numba_cuda_link_object"
    raise FailedError(got, f"it asks {safe_repr(obj)}", todo)


def _is_rewritten(called: Any, obj: Any) -> bool:
    """Return whether *called* is what calls of the C++ function *obj* are, where C++ refers to numbers."""
    return isinstance(called, CxxFunction) and isinstance(obj, CxxFunction) and called._is_call_of(obj)


@dataclass(frozen=True)
class Again:
    """How an object that is asked again answers: the *difference*, an empty text if there is none, and the *seconds*
    that it took, this time or before."""

    difference: str = ""
    seconds: float = 0.0


def ask_call_again(subject: CalledSubject) -> Again:
    """Ask a `DeviceCallable` again what the call is."""
    obj = subject.obj
    if isinstance(obj, CxxFunction) or not isinstance(obj, (DeviceCallable, BoundDeviceMethod)):
        return Again()
    known = DeviceCallableType.of(obj)
    with asked_afresh(obj):
        try:
            again = build_calls(obj, subject.args, subject.targets[0], output="ltoir")
        except Exception as error:
            return Again(f"{CALL_HOOK} answers once only, and then {describe_error(error)}")
        other = DeviceCallableType.of(obj)
    changed = _changed_call(subject, known.answers, other.answers, again)
    return Again(changed, min(known.seconds, other.seconds))


def _changed_call(
    subject: CalledSubject, first: Mapping[Any, Any], then: Mapping[Any, Any], again: LinkedKernel
) -> str:
    obj = subject.obj
    for call, answer in then.items():
        one, other = _Answered.of(first.get(call, answer)), _Answered.of(answer)
        if one != other or (other.code is None and again.code != subject.built.code):
            return f"{CALL_HOOK} changes its answer: first {one}, then {other}{line_of_place(obj.__numba_cuda_call__)}"
    return ""


@dataclass(frozen=True)
class _Answered:
    """What ``__numba_cuda_call__`` returned, as text; of a Python function, its code, too."""

    text: str
    code: CodeType | None = None

    @classmethod
    def of(cls, answer: Any) -> _Answered:
        function = getattr(answer, "py_func", answer)
        if not isinstance(function, FunctionType):
            return cls(safe_repr(answer))
        variables = inspect.getclosurevars(function).nonlocals.items()
        known = ", ".join(f"{name} = {value!r}" for name, value in variables if is_plain(value))
        return cls(f"the function {function.__name__}{f' with {known}' if known else ''}", function.__code__)

    def __str__(self) -> str:
        return self.text


def ask_again(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> Answer:
    """Return a new answer of the object. As in a build, its hook can compile for the target."""
    with without_device(target.cc):
        return ask_afresh(callee, argtypes, target)


def remembered_answer(callee: Callee, argtypes: tuple[Any, ...], target: Target) -> Answer:
    """Return the answer of the object, which is asked only if it was not asked before."""
    with without_device(target.cc):
        return ask(callee, argtypes, target)


def _answer(site: CallSite, target: Target, targets: tuple[Target, ...]) -> tuple[LinkInput, ...]:
    """Return the code that the object returns for *target*, one of *targets*."""
    # With a link key it may be an answer of another process.
    find = remembered_answer if site.callee.link_key is None else ask_again
    try:
        inputs = find(site.callee, site.argtypes, target).inputs()
    except HookError as error:
        raise hook_failed(error, target, targets) from error
    if not inputs:
        expected = f"code for ({', '.join(map(str, site.argtypes))})"
        got = f"{HOOK} returns nothing{line_of_place(site.callee.hook)}{_asked_for(target)}"
        todo = "return the code; an object without code to link needs no hook"
        raise FailedError(got, expected, todo + _for_lto(target, targets))
    return inputs


def hook_failed(error: HookError, target: Target | None, targets: tuple[Target, ...]) -> FailedError:
    is_key = error.hook == KEY_HOOK
    hook = error.callee.link_key if is_key else error.callee.hook
    where = f"\nraised at: {error.raised_at}" if error.raised_at else line_of_place(hook)
    asked = _asked_for(target) if target is not None else ""
    expected = "a LinkableCode, a cuda.core.ObjectCode, a path, or several of these"
    todo = "let it return code for this signature, or let __numba_cuda_call__ reject the signature"
    if is_key:
        expected, todo = A_KEY, "let it return a value for this signature, or None for no key"
    if error.is_of_parameters:
        todo = TAKE_ARGUMENTS
    elif target is not None and not is_key:
        todo += _for_lto(target, targets)
    return FailedError(f"{error.hook} {error.said}{where}{asked}", expected, todo)


def _asked_for(target: Target) -> str:
    return f"\nasked for: code for {target.arch}, {describe_linking(target)}"


def _for_lto(target: Target, targets: tuple[Target, ...]) -> str:
    """Return what to do if only code without LTO is missing; empty if all is, or code with LTO."""
    is_only_without = not target.lto and len(targets) > 1
    return "; for code that requires LTO, pass lto=True to check_linkable" if is_only_without else ""
