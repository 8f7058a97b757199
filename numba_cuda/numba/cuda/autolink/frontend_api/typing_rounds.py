# SPDX-License-Identifier: BSD-2-Clause
"""Rounds of type inference: what costs one run of a compiler is asked once for all calls of a kernel.

1. A call whose answer needs a compiler is put off, and with it all that depends on its result. A device function with
   such a call is put off as a whole: all wait for the outermost type inference.
2. Once nothing else can be typed, a copy of the inference types on with guesses of the results, into device functions
   too, and notes all calls that it meets, in their order.
3. All noted calls are resolved together, and the inference goes on with the answers. What was guessed wrong, or not at
   all, is put off again: it costs another round.

A guess never leaves its copy. While types are guessed, no hook is asked; no device function, overload or answer is
kept; nothing is lowered; and errors do not count, of the copy or of a compiler about a call that was only guessed. What
a compiler says of a call depends on nothing but the types of its arguments, so the answer is true for all rounds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from numba.core.errors import TypingError as NumbaTypingError
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.diagnostics.signal_handlers import raised_by_signal_handler

from numba_cuda_autolink.short_tracebacks import is_name_of_compiler

from ..compilation.context import compilation, current_state, guessing, inside
from .both_typing_errors import BothTypingError
from .front_end import NUMBA_CUDA, Vocabulary
from .record_fields import unknown_field
from .refused_calls import note_columns

# Resolves requests: those that a kernel makes in the end, in their order; those that only lead to the types of these;
# and which of both are certain, not only guessed.
Resolve = Callable[[Sequence[Any], Sequence[Any], Set[Any]], None]
Requests = dict[Resolve, list[Any]]
# Returns the objects that a compiled function calls, with the types of the arguments.
CallsOf = Callable[[Any], Iterable[tuple[Any, Sequence[Any]]]]


class DeferredCallError(TypingError):
    """A call is put off. Type inference takes it as a call that cannot be typed yet."""

    def __init__(self) -> None:
        super().__init__("a call is put off until the other calls of the kernel are known")


class GuessedFunction(Exception):
    """A function has been typed under guesses, and is compiled no further: it *returns* this type."""

    def __init__(self, returns: Any):
        self.returns = returns
        super().__init__("a function has been typed under guesses")


@dataclass(frozen=True)
class Use:
    """How a kernel uses what a called object returns: as a tuple of at least *count* elements, unless that is 0; and as
    what has these *attributes*."""

    count: int = 0
    attributes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Guesses:
    """What is noted while types are guessed in one function: the *requests* for calls, and the *final* ones, with the
    types that they have in the end; of the whole kernel, how results are used, by the ids of called objects, which the
    IR keeps, and what is known of functions, by their argument types: the types that they return, and such notes."""

    requests: Requests = field(default_factory=dict)
    final: Requests = field(default_factory=dict)
    uses: dict[int, Use] = field(default_factory=dict)
    functions: dict[Any, tuple[Any, _Guesses]] = field(default_factory=dict)

    def apart(self) -> _Guesses:
        return dataclasses.replace(self, requests={}, final={})

    def add(self, inner: _Guesses) -> None:
        for own, others in ((self.requests, inner.requests), (self.final, inner.final)):
            for resolve, each in others.items():
                own.setdefault(resolve, []).extend(each)


def put_off(resolve: Resolve, request: Any) -> None:
    """Raise `DeferredCallError`, so that *resolve* is called with this and all other requests once, and then the object
    is asked for the call again. Do nothing outside of type inference."""
    if is_guessing():
        raise DeferredCallError
    if (requests := current_state().put_off) is not None:
        requests.setdefault(resolve, []).append(request)
        raise DeferredCallError


def is_guessing() -> bool:
    """Return whether types are guessed, so that nothing may be asked and kept."""
    return current_state().guesses is not None


def is_put_off(error: Exception) -> bool:
    """Return whether an *error* of a function says nothing of it: it is put off, or typed under guesses."""
    return is_guessing() or isinstance(error, DeferredCallError)


def note_guessed(resolve: Resolve, request: Any) -> None:
    """Note a call that is met while types are guessed, also one whose answer is known."""
    for requests in (current_state().guesses.requests, current_state().guesses.final):
        requests.setdefault(resolve, []).append(request)


def use_of(called: Any) -> Use:
    return current_state().guesses.uses.get(id(called), Use())


def propagated(propagate: Callable[..., Any], inferer: Any, raise_errors: bool, error: type[Exception]) -> Any:
    """Run type inference's *propagate* until no call is put off. *error* is the front end's class of typing errors."""
    if is_guessing():
        return _guess(propagate, inferer)
    if (outer := current_state().put_off) is not None:
        return _propagate_inner(propagate, inferer, raise_errors, error, outer)
    while True:
        certain: Requests = {}
        try:
            with inside(put_off=certain):
                errors = _collect_errors(propagate, inferer, error)
        except KeyError as missing:
            raise unknown_field(missing, error) or missing from None
        if not certain:
            break
        _resolve(certain, *_guess_calls(propagate, inferer))
    return _raise(propagate, inferer) if errors and raise_errors else errors


@dataclass(frozen=True)
class _Constraint:
    """A *constraint* of type inference whose errors of Numba are those of the front end, of the class *error*."""

    constraint: Any
    error: type[Exception]

    @property
    def loc(self) -> Any:
        return self.constraint.loc

    def __call__(self, inferer: Any) -> None:
        try:
            self.constraint(inferer)
        except NumbaTypingError as raised:
            raise self.error(str(raised)) from raised


def _collect_errors(propagate: Callable[..., Any], inferer: Any, error: type[Exception]) -> Any:
    """Return the errors of *propagate*. numba-cuda does not collect errors of Numba's own class, the first of which
    ends it, whatever was wrong before: then each is made one of the class *error*. In a function of the compiler, the
    first is the reason why it is not used."""
    try:
        return propagate(inferer, raise_errors=False)
    except NumbaTypingError:
        if is_name_of_compiler(inferer.func_ir.func_id.modname):
            raise
        constraints = inferer.constraints.constraints
        constraints[:] = [_Constraint(each, error) for each in constraints]
        return propagate(inferer, raise_errors=False)


def _raise(propagate: Callable[..., Any], inferer: Any) -> Any:
    note_columns(inferer)
    try:
        return propagate(inferer, raise_errors=True)
    except TypingError as error:
        if type(error) is TypingError:
            error.__class__ = BothTypingError
        raise


def _propagate_inner(
    propagate: Callable[..., Any], inferer: Any, raise_errors: bool, error: type[Exception], outer: Requests
) -> Any:
    """Run *propagate* for a function inside of another one: if it puts off calls, the function is put off."""
    own: Requests = {}
    with inside(put_off=own):
        errors = _collect_errors(propagate, inferer, error)
        if errors and raise_errors and not own:
            errors = _raise(propagate, inferer)
    for resolve, requests in own.items():
        outer.setdefault(resolve, []).extend(requests)
    if own:
        raise DeferredCallError if error is TypingError else error("a function is put off")
    return errors


def _resolve(certain: Requests, final: Requests, passing: Requests) -> None:
    for resolve in {**final, **passing, **certain}:
        linked = dict.fromkeys(final.get(resolve, []))
        asked = dict.fromkeys([*passing.get(resolve, []), *certain.get(resolve, [])])
        resolve(list(linked), [each for each in asked if each not in linked], set(certain.get(resolve, [])))


def _guess_calls(propagate: Callable[..., Any], inferer: Any) -> tuple[Requests, Requests]:
    guesses = _Guesses()
    with guessing(guesses):
        copy = inferer.copy()
        copy.build_constraint()
        for name, variable in inferer.typevars.items():  # arguments, which a copy leaves out
            if variable.locked and not copy.typevars[name].locked:
                copy.lock_type(name, variable.getone(), loc=variable.define_loc)
        _guess(propagate, copy)
    return guesses.final, guesses.requests


def _guess(propagate: Callable[..., Any], inferer: Any) -> Any:
    for called, use in _find_uses(inferer):
        known = use_of(called)
        merged = Use(max(known.count, use.count), known.attributes | use.attributes)
        current_state().guesses.uses[id(called)] = merged
    guesses: _Guesses = current_state().guesses
    with _any_error():
        propagate(inferer, raise_errors=False)
    with guessing(last := guesses.apart()):
        for call, constraint in inferer.calls:
            if getattr(call, "op", None) == "call":
                _note_final(inferer, inferer.typevars[call.func.name].type, constraint.get_call_signature())
    guesses.final.clear()
    guesses.final.update(last.final)
    return []


def _note_final(inferer: Any, called_type: Any, signature: Any) -> None:
    if signature is not None and (hasattr(called_type, "numba_cuda_link_object") or hasattr(called_type, "dispatcher")):
        with _any_error():
            inferer.context.resolve_function_type(called_type, signature.args, {})


@contextlib.contextmanager
def _any_error() -> Iterator[None]:
    """Let no error count, whatever code of others makes of types that are only guessed."""
    try:
        yield
    except Exception as error:
        if raised_by_signal_handler(error):
            raise


def _find_uses(inferer: Any) -> Iterator[tuple[Any, Use]]:
    for block in inferer.func_ir.blocks.values():
        for statement in block.body:
            value: Any = getattr(statement, "value", None)
            use = _read_use(value)
            if use is None or (call := _definition_of(inferer, value.value)) is None:
                continue
            called_type = inferer.typevars[call.func.name].type if getattr(call, "op", None) == "call" else None
            if (called := getattr(called_type, "numba_cuda_link_object", None)) is not None:
                yield called, use


def _read_use(value: Any) -> Use | None:
    operation = getattr(value, "op", None)
    if operation == "exhaust_iter":
        return Use(value.count)
    if operation == "static_getitem" and isinstance(value.index, int) and value.index >= 0:
        return Use(value.index + 1)
    return Use(attributes=frozenset({value.attr})) if operation == "getattr" else None


def _definition_of(inferer: Any, variable: Any) -> Any:
    with contextlib.suppress(KeyError):  # as Numba says of a variable with several definitions
        return inferer.func_ir.get_definition(variable)
    return None


def template_of(
    original: Callable[..., Any], dispatcher: Any, args: Any, kws: Any, typing: Any, calls_of: CallsOf
) -> Any:
    """Return what a *dispatcher*'s ``get_call_template`` does; while types are guessed, for what it probably returns.
    *typing* is the front end's module of this name, and *calls_of* returns the calls of a compiled function."""
    if not is_guessing():
        return original(dispatcher, args, kws)
    _, folded = getattr(dispatcher, "_compiler", dispatcher).fold_argument_types(args, kws)
    function = id(dispatcher), tuple(folded)
    guesses: _Guesses = current_state().guesses
    if function not in guesses.functions:
        try:
            with guessing(inner := guesses.apart()):
                found = original(dispatcher, args, kws)
                for called, argtypes in calls_of(dispatcher.overloads[tuple(folded)]):
                    _note_compiled(called, argtypes)
                return found
        except GuessedFunction as guessed:
            guesses.functions[function] = guessed.returns, inner
        finally:
            guesses.add(inner)
    else:
        guesses.add(guesses.functions[function][1])
    signature = typing.templates.signature(guesses.functions[function][0], *folded)
    name = f"CallTemplate({dispatcher.py_func.__name__})"
    template = typing.templates.make_concrete_template(name, key=name, signatures=[signature])
    return template, inspect.signature(dispatcher.py_func), folded, {}


def _note_compiled(called: Any, argtypes: Any) -> None:
    if (guess := getattr(type(called), "_guess_result", None)) is not None:
        with contextlib.suppress(DeferredCallError):
            guess(called, argtypes, Use())


Rewrite = Callable[[Any, Vocabulary], bool]
_rewrites: list[Rewrite] = []
_rewrites_of_typed: list[Rewrite] = []


def register_rewrite(*, of_typed: bool = False) -> Callable[[Rewrite], Rewrite]:
    """Decorate a function that rewrites the IR in a compiler's state after type inference has failed, or has succeeded
    if *of_typed*, and returns whether it changed any call."""

    def decorate(rewrite: Rewrite) -> Rewrite:
        (_rewrites_of_typed if of_typed else _rewrites).append(rewrite)
        return rewrite

    return decorate


def infer_types(
    infer: Callable[[Any, Any], Any],
    inference: Any,
    state: Any,
    refused: type[Exception] | tuple[type[Exception], ...],
    vocabulary: Vocabulary = NUMBA_CUDA,
) -> Any:
    """Return what *infer*, with the pass *inference*, makes of the compiler's *state*, in the IR of *vocabulary*. It
    runs again as long as a rewrite changes calls of the function, which is *refused* or typed. Raise `GuessedFunction`
    for a function that is typed under guesses."""
    while True:
        try:
            inferred_types = infer(inference, state)
        except refused as error:
            if is_guessing() or compilation() is None:
                raise
            from .placed_messages import add_place  # which nothing needs where all is right

            add_place(error)
            if not any([rewrite(state, vocabulary) for rewrite in _rewrites]):
                raise
        else:
            if is_guessing() and inference._raise_errors:  # where it does not, a part of a function is typed
                raise GuessedFunction(state.return_type)
            rewrites = [] if is_guessing() or compilation() is None else _rewrites_of_typed
            if not any([rewrite(state, vocabulary) for rewrite in rewrites]):
                return inferred_types
