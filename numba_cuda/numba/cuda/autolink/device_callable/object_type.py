# SPDX-License-Identifier: BSD-2-Clause
"""The Numba types of device callables and their methods: one type for each object, and the typing of its calls."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import time
import types as pytypes
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numba import cuda
from numba.core.errors import NumbaError
from numba.cuda import types
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr, safe_text, shown, with_short_first_line
from numba.cuda.cudadrv.external_code.diagnostics.signal_handlers import raised_by_signal_handler
from numba.cuda.cudadrv.external_code.inputs.link_input import NOT_ASYNC, close_coroutine
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.datamodel import models
from numba.cuda.extending import register_model, typeof_impl
from numba.cuda.typing.templates import Signature
from numba.cuda.typing.typeof import Purpose

from numba_cuda_autolink.printable_texts import number_of

from ..c_abi.c_types import CABIError
from ..c_abi.extern import Extern, Prototype, check_values, prototype
from ..c_abi.record_values import result_type
from ..compilation.context import compilation, current_target
from ..frontend_api.launch_messages import USE_AS_CONSTANT
from ..frontend_api.placed_messages import before_advice, placed
from ..frontend_api.typing_rounds import DeferredCallError, is_guessing, use_of
from ..protocol.callee import CALL_HOOK, HOOK, Identity, find_callee, identity, misspelt_hook
from ..protocol.errors import raised_by_hook, raised_by_user_code, typing_error, with_fix
from .arguments import ArgumentError, CallArguments
from .base_class import BoundDeviceMethod, DeviceCallable, is_defined, type_name


@dataclass(frozen=True, eq=False)
class PythonBody:
    """The Python function that *obj* returned for a call with these *arguments*, as a device function."""

    obj: Any
    arguments: CallArguments
    function: pytypes.FunctionType
    dispatcher: Any

    @classmethod
    def of(cls, obj: Any, arguments: CallArguments, returned: Any) -> PythonBody | None:
        if isinstance(getattr(returned, "py_func", None), pytypes.FunctionType):
            function, dispatcher = returned.py_func, returned
            if not dispatcher.targetoptions.get("device"):
                return None
        elif isinstance(returned, pytypes.FunctionType):
            function, target = returned, current_target()
            options = {"fastmath": target.fastmath, "debug": target.debug, "lineinfo": target.lineinfo}
            dispatcher = cuda.jit(device=True, opt=not target.debug, **options)(returned)
        else:
            return None
        return cls(obj, arguments, function, dispatcher)

    def compile(self) -> Any:
        return self.dispatcher.compile_device(self.arguments.types)

    @property
    def returns(self) -> Any:
        return self.compile().signature.return_type

    def lower(self, context: Any, builder: Any, argtypes: Sequence[Any], values: Sequence[Any]) -> Any:
        compiled = self.compile()
        taken = compiled.signature.args
        cast = [context.cast(builder, *each) for each in zip(values, argtypes, taken, strict=True)]
        context.add_linking_libs([compiled.library])
        return context.call_internal(builder, compiled.fndesc, compiled.signature, cast)


_numbers = itertools.count()
# The types of the objects that still live.
_types: dict[Identity, DeviceCallableType] = {}


class DeviceCallableType(types.Callable, types.Opaque):
    """The type of one `DeviceCallable`, or of one method of one.

    It does not keep the object alive, because Numba's own tables keep types forever.
    """

    def __init__(self, obj: Any):
        is_method = isinstance(obj, BoundDeviceMethod)
        known_as = identity(obj)
        # A built-in as the callback: what a signal handler raises in one that is written in Python would be lost.
        self._owner = weakref.ref(obj.__self__ if is_method else obj, functools.partial(_types.pop, known_as))
        self._method: Any = obj.__func__ if is_method else None
        self._calls: dict[Any, tuple[Signature, Prototype | PythonBody]] = {}
        self._as_written: dict[Any, tuple[Signature, Prototype | PythonBody]] = {}
        self._in_progress: set[Any] = set()
        self._bound: dict[Any, CallArguments] = {}  # by the arguments as they are written
        self._arguments: dict[tuple[Any, ...], CallArguments] = {}
        self._returned: dict[Any, Any] = {}  # by the types of the arguments and the target
        self.seconds = 0.0  # that `__numba_cuda_call__` took when it was asked last
        self.elsewhere: dict[str, Any] = {}  # the types of the object in other front ends
        super().__init__(name=safe_repr(obj))

    @classmethod
    def of(cls, obj: Any) -> DeviceCallableType:
        known_as = identity(obj)
        return _types.get(known_as) or _types.setdefault(known_as, cls(obj))

    @property
    def key(self) -> Any:
        """What no other type has, not even one of an equal object."""
        return id(self)

    @property
    def numba_cuda_link_object(self) -> Any:
        """The Python object that is called: the instance, or its bound method.

        Any Numba type may have an attribute of this name, by which call sites find the object.
        """
        owner = self._owner()
        if owner is None:
            raise typing_error(
                "a called object no longer exists: keep a reference to it while kernels are compiled\n"
                f"  object: {self.name}"
            )
        return owner if self._method is None else self._method.__get__(owner, type(owner))

    @functools.cached_property
    def mangling_args(self) -> tuple[str, tuple[Any, ...]]:
        """A number in the order of use, not an address: the same program gets the same symbols."""
        return type(self).__name__, (next(_numbers),)

    def __reduce__(self) -> Any:
        return _type_of, (self.numba_cuda_link_object,)

    def __deepcopy__(self, memo: Any) -> DeviceCallableType:
        # literal_unroll copies the IR, types and all.
        return self

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Signature:
        return self._guess(args, kws) if is_guessing() else self._type(context, args, kws)[0]

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        """Return the key of the one implementation that lowers the calls of all device callables."""
        return DeviceCallableType

    def meaning(self, context: Any, argtypes: Any) -> Prototype | PythonBody:
        """Return the C function, or the body in Python, for a call with final *argtypes*, one for each parameter."""
        return self._call(context, self._arguments[tuple(argtypes)])[1]

    def returned(self, argtypes: Any) -> tuple[Any, CallArguments, Any]:
        """Return the object, the arguments of a call with final *argtypes*, and what `__numba_cuda_call__` returned for
        it in the compilation in progress."""
        arguments = self._arguments[tuple(argtypes)]
        return self.numba_cuda_link_object, arguments, self._returned[arguments.types, _target()]

    @property
    def answers(self) -> dict[Any, Any]:
        """What `__numba_cuda_call__` returned so far, by the types of the arguments and the target."""
        return dict(self._returned)

    def declared_call(self, arguments: CallArguments) -> Any:
        return arguments.apply(self.numba_cuda_link_object.__numba_cuda_call__)

    def body_of(self, arguments: CallArguments, returned: Any) -> PythonBody | None:
        """Return the body in Python that the object *returned* for a call; None if it is not a function."""
        return PythonBody.of(self.numba_cuda_link_object, arguments, returned)

    def _guess(self, args: Any, kws: Any) -> Signature:
        """Return a call's signature while types are guessed. The object is not asked: only what it has said is known,
        and what a function of C++ probably returns."""
        obj = self.numba_cuda_link_object
        if (guess := getattr(type(obj), "_guess_result", None)) is None:
            as_written = tuple(args), tuple(dict(kws).items()), _target()
            if (known := self._remembered(self._as_written).get(as_written)) is None:
                raise DeferredCallError
            return known[0]
        try:
            arguments = self._bind(tuple(args), tuple(dict(kws).items()))
            returns = guess(obj, arguments.types, use_of(obj))
        except (ArgumentError, CABIError):
            raise DeferredCallError from None
        return Signature(result_type(returns), arguments.types, recvr=self, pysig=arguments.pysig)

    def _type(self, context: Any, args: Any, kws: Any) -> tuple[Signature, Prototype | PythonBody]:
        as_written = tuple(args), tuple(dict(kws).items()), _target()
        known = self._remembered(self._as_written)
        # Type inference asks about the same call many times.
        if as_written not in known:
            try:
                arguments = self._bind(*as_written[:2])
            except ArgumentError as error:
                raise self._error(f"{type_name(self.numba_cuda_link_object)}: {error}") from None
            self._arguments.setdefault(arguments.types, arguments)
            call = self._call(context, arguments)
            if isinstance(call[1], Prototype):
                try:
                    check_values(call[1], arguments.as_given)
                except CABIError as error:
                    raise self._error(str(error)) from None
            known[as_written] = call
        return known[as_written]

    def _bind(self, args: tuple[Any, ...], kws: tuple[tuple[str, Any], ...]) -> CallArguments:
        if (args, kws) not in self._bound:
            function = self.numba_cuda_link_object.__numba_cuda_call__
            self._bound[args, kws] = CallArguments.bind(function, args, dict(kws))
        return self._bound[args, kws]

    def _call(self, context: Any, arguments: CallArguments) -> tuple[Signature, Prototype | PythonBody]:
        # Numba caches the types of intrinsics, so a call may be lowered for a target that it was not typed for.
        call = arguments.types, _target()
        known = self._remembered(self._calls)
        if call not in known:
            if call in self._in_progress:  # by a Python function that the object has had compiled
                name = type_name(self.numba_cuda_link_object)
                argtypes = f"argument types: ({', '.join(map(str, arguments.types))})"
                diagnosis = f"{name} is called with the same types while it says what that call means"
                raise self._error(diagnosis, argtypes)
            self._in_progress.add(call)
            try:
                known[call] = self._ask(context, arguments)
            finally:
                self._in_progress.discard(call)
        return known[call]

    def _remembered(self, always: dict[Any, Any]) -> dict[Any, Any]:
        """Return the memory of calls for *always*, or for the compilation in progress, if what the object says of a
        call depends on files."""
        in_progress = compilation()
        if in_progress is None or not getattr(type(self.numba_cuda_link_object), "_cxx_reads_files", False):
            return always
        return in_progress.notes.setdefault((id(self), id(always)), {})

    def _ask(self, context: Any, arguments: CallArguments) -> tuple[Signature, Prototype | PythonBody]:
        if not is_defined(self.numba_cuda_link_object):
            kind = type_name(self.numba_cuda_link_object)
            near = misspelt_hook(self.numba_cuda_link_object, CALL_HOOK)
            todo = f"did you mean it by {near}?" if near else "define it: it names the C function of a call"
            advice = f"  what to do: {todo}"
            raise self._error(f"kernels cannot call {kind}: it does not define __numba_cuda_call__\n{advice}")
        name = f"{type_name(self.numba_cuda_link_object)}.__numba_cuda_call__"
        argtypes = f"argument types: ({', '.join(map(str, arguments.types))})"
        # Numba asks again about a call that it could not type, in case other types are known by then.
        raised: dict[Any, BaseException] = {} if (in_progress := compilation()) is None else in_progress.raised
        try:
            if (call := (self, arguments.types)) in raised:
                raise raised[call]
            started = time.perf_counter()
            extern = self._returned[arguments.types, _target()] = self.declared_call(arguments)
            self.seconds = time.perf_counter() - started
            body = self.body_of(arguments, extern)
        except DeferredCallError:
            raise
        except CABIError as error:  # it says why C or C++ has no such call
            hook = raised_by_hook(error)
            details = () if hook is None else (f"raised at: {hook}",)
            raise self._error(str(error), *details, cause=error) from error
        except (Exception, SystemExit) as error:
            if raised_by_signal_handler(error):
                raise
            raised[call] = error
            raised_at = f"raised at: {raised_by_user_code(error)}"
            said = f"{name} raised {type(error).__name__}: {safe_text(error)}"
            if isinstance(error, AttributeError) and error.name == "literal_value":
                said += (
                    "\n  what to do: write a constant in the call: a variable has no value while a kernel is compiled"
                )
            said = with_fix(said, type_name(self.numba_cuda_link_object), CALL_HOOK, error)
            raise self._error(said, argtypes, raised_at, cause=error) from error
        if body is not None:
            try:
                returns = body.returns
            except (NumbaError, TypeError) as error:
                raise self._body_error(body, name, argtypes, error) from error
            return Signature(returns, arguments.types, recvr=self, pysig=arguments.pysig), body
        if not isinstance(extern, Extern):
            got = f"got: {shown(extern)}"
            remedy = "return an autolink.Extern, or a Python function that does the same"
            if isinstance(extern, str):
                remedy = f"return autolink.Extern({extern!r}, returns=...), with the type of the result"
            elif close_coroutine(extern):
                remedy = NOT_ASYNC
            elif extern is None:
                remedy = "return what it makes: it ends without a return statement that has a value"
            diagnosis = f"{name} returned neither an autolink.Extern nor a function\n  what to do: {remedy}"
            raise self._error(diagnosis, argtypes, got)
        obj = self.numba_cuda_link_object
        if find_callee(obj) is None and (near := misspelt_hook(obj, HOOK)):
            diagnosis = f"{type_name(obj)} has no {HOOK}, but {near}\n  what to do: did you mean {HOOK}?"
            raise self._error(diagnosis, argtypes)
        try:
            c_function = prototype(extern, arguments.named, context)
        except TypeError as error:
            raise self._error(str(error), argtypes) from None
        return Signature(result_type(extern.returns), arguments.types, recvr=self, pysig=arguments.pysig), c_function

    def _body_error(self, body: PythonBody, name: str, argtypes: str, error: Exception) -> TypingError:
        """Return the error for a *body* of the method *name* that does not compile, for which a front end raised
        *error*."""
        signature, given = inspect.signature(body.function), len(body.arguments.types)
        kinds = {each.kind for each in signature.parameters.values()}
        if len(signature.parameters) != given and inspect.Parameter.VAR_POSITIONAL not in kinds:
            has = number_of(len(signature.parameters), "parameter")
            diagnosis = f"the function that {name} returned has {has}, not {given}"
            todo = f"write the function with {number_of(given, 'parameter')}"
            got = f"got: {body.function.__name__}{signature}"
            return self._error(f"{diagnosis}\n  what to do: {todo}", argtypes, got)
        details = (f"in: the function that {name} returned", f"object: {self.name}", argtypes)
        message = before_advice(placed(str(error), body.function), *details)
        in_progress = compilation()
        cause = None if in_progress is None else in_progress.diagnoses.get(message.partition("\n")[0])
        return typing_error(message, cause=cause)

    def _error(self, diagnosis: str, *details: str, cause: BaseException | None = None) -> TypingError:
        """Return an error with details after the first line of the diagnosis, or after the place of its C++, and the
        rest of it, what to do, last."""
        details = (f"object: {self.name}", *details)
        first, *advice = diagnosis.splitlines()
        if advice and advice[0].startswith("  at: "):
            message = before_advice(diagnosis, *details)
        else:
            message = "\n".join([first, *(f"  {line}" for line in details), *advice])
        return typing_error(with_short_first_line(message), cause=cause)


@contextlib.contextmanager
def asked_afresh(obj: Any) -> Iterator[None]:
    """Ask *obj* in the ``with`` block what its calls are. Afterwards what it answered before counts again."""
    known = _types.pop(identity(obj), None)
    try:
        yield
    finally:
        _types.pop(identity(obj), None)
        if known is not None:
            _types[identity(obj)] = known


def _type_of(obj: Any) -> DeviceCallableType:
    # cloudpickle writes a class method by value, with the globals that it uses: the types of all objects.
    return DeviceCallableType.of(obj)


register_model(DeviceCallableType)(models.OpaqueModel)


def _target() -> Target | None:
    try:
        return current_target()
    except RuntimeError:  # compiled while autolink is deactivated
        return None


@typeof_impl.register(DeviceCallable)
@typeof_impl.register(BoundDeviceMethod)
def _typeof(obj: Any, context: Any) -> DeviceCallableType:
    if context.purpose is Purpose.argument:
        raise TypeError(
            f"{type_name(obj)} cannot be an argument of a kernel: kernels treat it as a constant\n"
            f"  object: {safe_repr(obj)}\n"
            f"  what to do: {USE_AS_CONSTANT}"
        )
    try:
        return DeviceCallableType.of(obj)
    except TypeError:  # weak references are made of the object itself only
        raise typing_error(
            f"a weak proxy of a {type_name(obj)} cannot be called in a kernel\n  object: {safe_repr(obj)}\n"
            "  what to do: use the object itself"
        ) from None
