# SPDX-License-Identifier: BSD-2-Clause
"""Python functions that C++ calls: how an object has one compiled, and what it gets."""

from __future__ import annotations

import functools
import inspect
import re
import types as pytypes
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numba import cuda
from numba.cuda import types
from numba.cuda.core.errors import NumbaError
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr, suggest_names
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.errors import UnsupportedBytecodeError

from numba_cuda_autolink.printable_texts import number_of

from ..c_abi.c_types import CABIError, numba_type_of
from ..c_abi.conversions import by_value
from ..c_abi.conversions import state as as_state
from ..c_abi.extern import Extern
from ..c_abi.structs import is_struct
from ..compilation.context import (
    answering,
    asking,
    compilation,
    compiling_apart,
    current_state,
    current_target,
    note_device_function,
)
from ..device_callable.base_class import DeviceCallable
from ..frontend_api.front_end import NUMBA_CUDA, core_type, vocabulary_of_kernel
from ..frontend_api.placed_messages import placed, placed_error
from ..function_code.canonical_ir import NAMELESS, NamedModules
from ..protocol.answers import CallingCode
from ..protocol.value_digest import UnknownValueError, value_digest
from .c_signature import CSignature, can_raise, declaration, functor_name, wrap


@dataclass(frozen=True, eq=False, repr=False)
class DeviceFunction(CallingCode, DeviceCallable):
    """A Python function that C++ calls, as `device_function` returns it.

    A Python function that ``__numba_cuda_call__`` returns may pass it to a function of `cxx`, which gets an object of
    the class ``functor``; if the function has state, an object that makes one, ``op(table)``, of values that are passed
    as ``"state"``.

    Attributes
    ----------
    symbol : str
        The name of the C function. It ends with digits that stand for the content of the function: its code, what that
        refers to, and the types.
    declaration : str
        C++ that declares it and ``functor``, to be put at namespace scope, as often as needed.
    functor : str
        A C++ class whose objects are called like the function. It is constructed from the ``const void*`` of each
        state; if there is none, from nothing, or from a ``const void*`` that it ignores.
    returns : Numba type
        What it returns.
    """

    _name: str
    _modules: NamedModules
    _signature: CSignature
    _code: tuple[LinkInput, ...]
    _target: Target
    _library: Any
    _made_of: Any  # the weak reference to what was compiled

    @property
    def symbol(self) -> str:
        return self._modules.symbol

    @property
    def functor(self) -> str:
        return functor_name(self.symbol)

    @property
    def states(self) -> int:
        """The number of parameters that are state."""
        return len(self._signature.state)

    @property
    def __name__(self) -> str:
        return self._name.partition("(")[0]

    @property
    def returns(self) -> Any:
        return self._signature.returns

    @functools.cached_property
    def declaration(self) -> str:
        return declaration(self.symbol, self._signature)

    @functools.cached_property
    def _undefined(self) -> tuple[str, ...]:  # type: ignore[override]
        return self._modules.undefined

    @property
    def _function_code(self) -> Any:
        return self._library.function_code

    @property
    def _takes_arrays(self) -> bool:  # type: ignore[override]
        return any(isinstance(state, types.Array) for state in self._signature.state)

    def __numba_cuda_call__(self, *args: Any) -> Extern:
        """Return the C function, for a call in Python."""
        passed = {f"args_{n}": by_value if is_struct(t) else t for n, t in enumerate(self._signature.arguments)}
        states = {f"args_{n}": as_state for n in range(len(passed), len(passed) + self.states)}
        return Extern(self.symbol, returns=self.returns, args={**passed, **states})

    def __numba_cuda_link__(self, *args: Any) -> DeviceFunction:
        """Return its code."""
        return self

    def _traced_inputs(self, origin: str) -> Iterator[tuple[str, LinkInput]]:
        yield from ((origin, each) for each in self._code)
        yield from self._function_code.provided(self._target)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceFunction) and list(self._traced_inputs("")) == list(other._traced_inputs(""))

    def __hash__(self) -> int:
        return hash(self.symbol)

    def __reduce__(self) -> Any:
        # It is compiled again: its code brings that of the objects that it calls, which are asked then.
        subject = self._made_of()
        if subject is None:
            raise TypeError(f"{self!r} cannot be pickled: what it was made of no longer exists")
        return _function_for, (self._target, subject, self._signature.arguments, self._signature.state)

    def __repr__(self) -> str:
        return f"device_function({self._name})"


_UNKNOWN_TO_CXX = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)
# Numba makes a dispatcher, as cuda.jit does, of a function or lambda that is written in a kernel.
_IN_A_KERNEL = "closure.<locals>."


# What was compiled, by the function, its content and the question: the types and the target.
_compiled: weakref.WeakKeyDictionary[Any, dict[Any, dict[Any, DeviceFunction]]] = weakref.WeakKeyDictionary()


@suggest_names
def device_function(function: Any, *argtypes: Any, state: Any = ()) -> DeviceFunction:
    """Compile a Python function that the C++ of an object calls.

    To be called in ``__numba_cuda_call__`` and ``__numba_cuda_link__``, which return the result among their items. That
    brings the function's code, and the code of the objects that it calls, which are asked as at any other call::

        class Reduce(autolink.DeviceCallable):
            def __numba_cuda_call__(self, x, op):
                op = autolink.device_function(op, x, x)
                return autolink.Extern(f"reduce_{op.symbol}", returns=x, args=["x"])

            def __numba_cuda_link__(self, x, op):
                T, op = autolink.cxx_type(x), autolink.device_function(op, x, x)
                yield op
                yield autolink.CUDASource(f'''
                    #include <cub/warp/warp_reduce.cuh>
                    {op.declaration}
                    extern "C" __device__ {T} reduce_{op.symbol}({T} x) {{
                        typename cub::WarpReduce<{T}>::TempStorage none;
                        return cub::WarpReduce<{T}>(none).Reduce(x, {op.functor}());
                    }}''')

    It is compiled once for each function, values that it refers to, types and target, and inlined where the kernel is
    linked with LTO.

    Parameters
    ----------
    function : function or Numba type
        A Python function, a lambda or a closure, whose variables are constants; a device function; or the Numba type of
        a device function that is an argument of the call. numba-cuda compiles it, that of a kernel of numba-cuda-mlir
        too.
    *argtypes : Numba type, its name as in signatures, or NumPy dtype or scalar class
        The types of the arguments that C++ passes: numbers, pointers, and records and tuples as structs. The parameters
        in C++ are of the types that `cxx_type` returns; for a struct, of any class of its size and layout.
    state : Numba type, or iterable of these, optional
        The types of the function's last parameters, which C++ passes on without knowing them: arrays, records, tuples,
        numbers. C++ gets them with ``args={"table": autolink.state}`` of an `Extern`, and constructs the functor from
        them. If the type is ``none``, as for an argument ``table=None`` that a call leaves out, the function has no
        state.

    Raises
    ------
    TypeError
        If *function* is something else, or cannot be compiled for these types.
    CABIError
        If C++ can neither pass one of the types nor return the result.
    RuntimeError
        If it is not called while an object is asked.
    """
    try:
        target = current_target()
    except RuntimeError:
        raise RuntimeError(
            "device_function() compiles for a kernel, and none is being compiled\n"
            "  what to do: call it in __numba_cuda_call__ or __numba_cuda_link__ of an object that kernels call"
        ) from None
    if (words := vocabulary_of_kernel(function)) is not NUMBA_CUDA:
        function = words.typeof.typeof(function)
    function, state = core_type(function), core_type(state)
    subject = function.dispatcher if isinstance(function, types.Dispatcher) else function
    name = getattr(getattr(subject, "py_func", subject), "__name__", type(subject).__name__)
    states = (state,) if state is None or isinstance(state, (types.Type, str)) else tuple(state)
    arguments, states = tuple(map(numba_type_of, argtypes)), tuple(map(numba_type_of, states))
    if states == (types.none,):
        states = ()
    dispatcher = _dispatcher(subject, target)
    question = arguments, states, target
    known = _known(subject)
    if question not in known:
        if (id(subject), question) in current_state().questions:
            raise TypeError(f"device_function() is asked for {name!r} while it compiles {name!r} for the same types")
        with answering((id(subject), question)):
            known[question] = _compile(name, dispatcher, question, weakref.ref(subject))
    note_device_function(known[question])
    return known[question]


def _known(subject: Any) -> dict[Any, DeviceFunction]:
    """Return what was compiled of *subject* as it is. Numba freezes what a dispatcher refers to, but the variables of a
    plain function may have changed. If their content is not known, they count as changed for each kernel."""
    if not isinstance(subject, pytypes.FunctionType):
        content: Any = None
    else:
        try:
            content = value_digest(subject)
        except UnknownValueError:
            in_progress = compilation()
            notes = {} if in_progress is None else in_progress.notes
            return notes.setdefault(("device_function", subject), {})
    return _compiled.setdefault(subject, {}).setdefault(content, {})


def _function_for(target: Target, subject: Any, argtypes: Any, state: Any) -> DeviceFunction:
    with asking(target):
        return device_function(subject, *argtypes, state=state)


def _dispatcher(subject: Any, target: Target) -> Any:
    if getattr(getattr(subject, "py_func", None), "__qualname__", "").startswith(_IN_A_KERNEL):
        subject = subject.py_func
    if isinstance(getattr(subject, "py_func", None), pytypes.FunctionType):
        if not subject.targetoptions.get("device"):
            raise TypeError(
                f"device_function() takes a device function, got the kernel {subject.py_func.__name__!r}\n"
                "  what to do: decorate it with @cuda.jit(device=True)"
            )
        return subject
    if not isinstance(subject, pytypes.FunctionType):
        raise TypeError(
            f"device_function() takes a Python function, got {type(subject).__name__}\n  got: {safe_repr(subject)}\n"
            "  what to do: pass a function that calls it, such as lambda a, b: max(a, b)"
        )
    options = {"fastmath": target.fastmath, "debug": target.debug, "lineinfo": target.lineinfo}
    return cuda.jit(device=True, opt=not target.debug, **options)(subject)


def _check_parameters(function: Any, called: str, arguments: Any, states: Any) -> None:
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise TypeError(
            f"device_function() cannot compile {called}: it is a generator or coroutine\n"
            "  what to do: pass a function that returns a value"
        )
    expected, given = inspect.signature(function), len(arguments) + len(states)
    if any(each.kind in _UNKNOWN_TO_CXX for each in expected.parameters.values()):
        raise TypeError(
            f"device_function() cannot compile {called}: it has *, ** or keywords\n"
            f"  got: {function.__name__}{expected}\n"
            f"  what to do: pass a function with {given} positional parameters, one for each argument from C++"
        )
    if len(expected.parameters) != given:  # default values are no help: the function is compiled for all parameters
        one = f"{len(arguments)} from C++" + (f" and {len(states)} of state" if states else "")
        raise TypeError(
            f"device_function() cannot compile {called}: it has {number_of(len(expected.parameters), 'parameter')},"
            f" not {given}\n"
            f"  got: the types of {number_of(given, 'argument')} ({one})\n"
            f"  expected: those of the function's parameters, {expected}\n"
            f"  what to do: write the function with {number_of(given, 'parameter')}"
        )


def _compile(name: str, dispatcher: Any, question: tuple[Any, Any, Target], made_of: Any) -> DeviceFunction:
    arguments, states, target = question
    called = f"{name}({', '.join(map(str, (*arguments, *states)))})"
    _check_parameters(dispatcher.py_func, called, arguments, states)
    try:
        with compiling_apart(target):
            compiled = dispatcher.compile_device((*arguments, *states))
    except (NumbaError, UnsupportedBytecodeError, AttributeError, AssertionError, NotImplementedError) as error:
        # For what CUDA does not support, such as try, Numba also raises errors of its own internals.
        why = (
            placed(str(error), dispatcher.py_func)
            if isinstance(error, NumbaError)
            else placed_error(error) or f"{type(error).__name__}: {error}"
        )
        raise TypeError(f"device_function() cannot compile {called}: {why}") from error
    try:
        signature = CSignature(arguments, states, types.unliteral(compiled.signature.return_type))
    except CABIError as error:
        first, *advice = str(error).splitlines()
        raise CABIError("\n".join([f"device_function() cannot compile {called}: {first}", *advice])) from None
    modules = [str(module) for module in compiled.library.modules]
    own = wrap(NAMELESS, compiled, signature, dispatcher.py_func.__code__ if can_raise(modules) else None)
    named = NamedModules.of(re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_"), [str(own), *modules], target)
    python = compiled.library.function_code.calls.function
    return DeviceFunction(
        called, named, signature, named.compile_for(target, called, python), target, compiled.library, made_of
    )
