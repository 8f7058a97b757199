# SPDX-License-Identifier: BSD-2-Clause
"""What is in progress: the compilation, its target, what is asked, typed and lowered in it.

A kernel and the device functions that it calls are compiled by nested runs of the compiler, but they are linked once,
for the kernel's target. So the outermost compilation sets the target, and everything compiled inside it uses that one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numba import cuda
from numba.cuda.cudadrv import nvrtc
from numba.cuda.cudadrv.external_code.diagnostics.timeline import Timeline, recording
from numba.cuda.cudadrv.external_code.platform.cuda_libraries import why_missing
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, ComputeCapabilityLike, Target

from numba_cuda_autolink.errors import at_call
from numba_cuda_autolink.short_tracebacks import print_short

if TYPE_CHECKING:
    from numba.cuda import types
    from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CPrototype


@dataclass
class Compilation:
    """An outermost compilation: its target; the first lines of this project's errors in it; the objects with linkable
    code that typing has resolved so far, by their Numba types and their ``id()``; the C functions, with their types,
    that the call calls that is being lowered, and which of its arguments are read-only; what called objects note for
    later calls of the same compilation; what their hooks raised, by what they were asked; and the timeline of the build
    that it begins."""

    target: Target
    diagnoses: dict[str, BaseException | None] = field(default_factory=dict)
    objects: dict[types.Type, dict[int, Any]] = field(default_factory=dict)
    prototypes: list[tuple[str, CPrototype]] = field(default_factory=list)
    read_only: Sequence[int] = ()
    timeline: Timeline = field(default_factory=Timeline)
    notes: dict[Any, Any] = field(default_factory=dict)
    raised: dict[Any, BaseException] = field(default_factory=dict)

    @contextlib.contextmanager
    def noting_prototypes(self, read_only: Sequence[int]) -> Iterator[list[tuple[str, CPrototype]]]:
        """Give the list of the C functions that are called inside the ``with`` block, apart from those outside: for a
        call whose arguments at the positions *read_only* are."""
        outer = self.prototypes, self.read_only
        self.prototypes, self.read_only = [], read_only
        try:
            yield self.prototypes
        finally:
            self.prototypes, self.read_only = outer


@dataclass(frozen=True)
class State:
    """What is in progress where code runs: in a thread, or a task."""

    compilation: Compilation | None = None
    hook_target: Target | None = None
    cc: tuple[int, int, str] | None = None  # that of `without_device`
    # The device functions that the hook that is being asked has had compiled for C++.
    device_functions: list[Any] | None = None
    # Of the dispatchers that are isolated, by id(), the overloads that they had before; ``None`` where none are.
    isolated: dict[int, tuple[Any, Any]] | None = None
    questions: tuple[Any, ...] = ()  # what is being answered, outermost first
    # The calls that type inference has put off, by what resolves them; ``None`` outside of type inference.
    put_off: dict[Any, list[Any]] | None = None
    guesses: Any = None  # what type inference notes while it guesses results; ``None`` where all types are true
    # The functions that could not be compiled as they were decorated, and why; ``None`` where that is raised.
    uncompiled: list[tuple[Any, str]] | None = None
    has_lines: bool = False  # whether kernels get line information that none of their options asks for
    call: tuple[Any, Any] | None = None  # the Numba type of the callee and the place of the call that is being lowered


_NOTHING = State()
# What type inference has in progress is no matter of the compilations inside it.
_NO_INFERENCE: dict[str, Any] = {"put_off": None, "guesses": None}
_state: ContextVar[State] = ContextVar("numba_cuda_autolink", default=_NOTHING)


def current_state() -> State:
    """Return what is in progress here."""
    return _state.get()


def compilation() -> Compilation | None:
    """Return the outermost compilation in progress on this thread, or None."""
    return _state.get().compilation


@contextlib.contextmanager
def inside(**state: Any) -> Iterator[None]:
    """Change these fields of the state inside the ``with`` block."""
    outer = _state.get()
    try:
        _state.set(dataclasses.replace(outer, **state))
        yield
    finally:
        _state.set(outer)


def answering(question: Any) -> contextlib.AbstractContextManager[None]:
    return inside(questions=(*current_state().questions, question))


def guessing(guesses: Any) -> contextlib.AbstractContextManager[None]:
    return inside(guesses=guesses, put_off=None)


@contextlib.contextmanager
def compiling(target: Target) -> Iterator[None]:
    """Compile for *target* inside the ``with`` block; within another compilation, its target stays."""
    in_progress = _state.get().compilation or Compilation(target)
    with inside(compilation=in_progress), recording(in_progress.timeline):
        yield


@contextlib.contextmanager
def asking(target: Target) -> Iterator[None]:
    """Let hooks see *target* inside the ``with`` block; what a hook compiles is a compilation of its own."""
    with inside(compilation=None, hook_target=target, **_NO_INFERENCE):
        yield


@contextlib.contextmanager
def compiling_apart(target: Target) -> Iterator[None]:
    """Compile for *target* inside the ``with`` block, apart from outer compilations and the GPU."""
    apart = contextlib.nullcontext() if _state.get().cc == target.cc else without_device(target.cc)
    with inside(compilation=Compilation(target), **_NO_INFERENCE), apart:
        yield


@contextlib.contextmanager
def noting_device_functions() -> Iterator[list[Any]]:
    """Give the list of the device functions that hooks have compiled for C++ inside the ``with`` block."""
    outer, noted = _state.get().device_functions, []  # type: ignore[var-annotated]
    with inside(device_functions=noted):
        yield noted
    if outer is not None:
        outer.extend(noted)


def note_device_function(function: Any) -> None:
    if (noted := _state.get().device_functions) is not None:
        noted.append(function)


@contextlib.contextmanager
def without_device(cc: tuple[int, int, str]) -> Iterator[None]:
    """Compile for *cc* inside the ``with`` block instead of for the current GPU, which need not exist.

    The device functions that are compiled there are kept apart: they may be for another compute capability.
    """
    with inside(cc=cc), compiling_callees_again():
        yield


@contextlib.contextmanager
def compiling_callees_again() -> Iterator[None]:
    """Compile device functions inside the ``with`` block, whether or not they were compiled, and keep them apart."""
    isolated: dict[int, tuple[Any, Any]] = {}
    with inside(isolated=isolated):
        try:
            yield
        finally:
            for dispatcher, overloads in isolated.values():
                dispatcher.overloads = overloads


def instead_of_device(cc: tuple[int, int, str]) -> contextlib.AbstractContextManager[None]:
    """Import modules for *cc* inside the ``with`` block, where there is no GPU: kernels and device functions that are
    compiled there, because their decorators name signatures, are compiled for it and stay compiled."""
    return inside(cc=cc, isolated=None)


def isolate(dispatcher: Any) -> None:
    """Give *dispatcher* its own overloads inside the innermost `compiling_callees_again`, if there is one."""
    isolated = _state.get().isolated
    if isolated is not None and id(dispatcher) not in isolated:
        isolated[id(dispatcher)] = (dispatcher, dispatcher.overloads)
        dispatcher.overloads = type(dispatcher.overloads)()


def current_target() -> Target:
    """Return the `Target` that code is compiled for now; no GPU is needed.

    To be called in a ``__numba_cuda_link__`` or ``__numba_cuda_call__``. Raises `RuntimeError` outside a compilation.
    """
    state = _state.get()
    if state.hook_target is not None:
        return state.hook_target
    if state.compilation is not None:
        return state.compilation.target
    error = RuntimeError(
        at_call(
            "current_target() has a value only while a kernel is being compiled\n"
            "  what to do: call it in __numba_cuda_link__ or __numba_cuda_call__"
        )
    )
    print_short(error)
    raise error


@functools.cache
def tool_versions() -> dict[str, str]:
    """Return the version of everything that takes part in compiling a kernel."""
    import llvmlite
    import numba
    import numpy as np
    from numba.cuda.core import config
    from numba.cuda.cudadrv.external_code.platform import cuda_libraries

    import numba_cuda
    import numba_cuda_autolink

    return {
        "Python": f"{sys.implementation.cache_tag} {sys.version}",
        "numba-cuda-autolink": getattr(numba_cuda_autolink, "__version__", "not installed"),
        "Numba": numba.__version__,
        "numba-cuda": str(vars(numba_cuda)["__version__"]),
        "numba-cuda's runtime": repr(bool(getattr(config, "CUDA_ENABLE_NRT", False))),
        "NumPy": np.__version__,
        "llvmlite": llvmlite.__version__,
        "NVRTC": cuda_libraries.nvrtc_build(),
        "NVVM": cuda_libraries.nvvm_build(),
        "nvJitLink": cuda_libraries.nvjitlink_build(),
    }


def compute_capability(cc: ComputeCapabilityLike | None) -> tuple[int, int, str]:
    """Return *cc* as major, minor and suffix; without it, what a launch on the current GPU is built for.

    Raise `ValueError` if *cc* is not a compute capability, the CUDA toolkit does not know it, or there is neither *cc*
    nor a GPU; `LinkError` if NVRTC is not installed.
    """
    if cc is None:
        try:
            return ComputeCapability.parse(cuda.get_current_device().compute_capability).as_launched.parts
        except Exception as error:
            raise ValueError(
                "cc is missing, and there is no GPU to build for by default\n"
                "  what to do: pass cc=, for example cc=(9, 0)"
            ) from error
    capability = ComputeCapability.parse(cc)
    require_nvrtc("build() cannot start")
    known = nvrtc.get_supported_ccs()
    if capability.base not in known:
        raise ValueError(
            f"compute capability {capability} is not known to this CUDA toolkit{instead_of_unknown(capability, known)}"
        )
    return capability.parts


def noting_uncompiled(
    decorate: Callable[[Any], Any],
    decorate_plainly: Callable[[Any], Any],
    explain: Callable[[Any, Exception], str | None],
) -> Callable[[Any], Any]:
    """Return a decorator that does as *decorate*; if that fails, it notes the function, with the reason that *explain*
    gives, in the list of those that could not be compiled, and decorates it *plainly*, without compiling it."""

    def decorate_or_note(function: Any) -> Any:
        try:
            return decorate(function)
        except Exception as error:
            uncompiled = current_state().uncompiled
            assert uncompiled is not None
            uncompiled.append((function, explain(function, error) or f"{type(error).__name__}: {error}"))
            return decorate_plainly(function)

    return decorate_or_note


def instead_of_unknown(capability: ComputeCapability, known: Sequence[tuple[int, int]]) -> str:
    """Return what an error about a *capability* that is not among the *known* ones says to do, after its diagnosis."""
    major, minor = capability.base
    runs_on_it = [each for each in known if each[0] == major and each[1] < minor]
    meant = ""
    remedy = "pass one of these"
    if (major * 10 + minor, 0) in known:  # "12" is 1.2
        meant = f"; did you mean {major * 10 + minor}.0?"
    elif runs_on_it:
        remedy = f"pass {runs_on_it[-1][0]}.{runs_on_it[-1][1]}, whose code runs on {major}.{minor} too"
    elif (major, minor) > known[-1]:
        remedy = "install a CUDA toolkit that knows it"
    elif (major, minor) < known[0]:
        remedy = "pass one of these; older GPUs need an older CUDA toolkit"
    names = ", ".join(f"{major}.{minor}" for major, minor in known)
    return f"{meant}\n  known: {names}\n  what to do: {remedy}"


def require_nvrtc(otherwise: str) -> None:
    """Raise a `LinkError` that begins with *otherwise* if NVRTC is not installed."""
    if missing := why_missing("NVRTC"):
        from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

        raise LinkError(f"{otherwise}: {missing[0]}", f"{missing[1]}".partition("\n")[0]) from missing[1]


@dataclass(frozen=True)
class KernelEvent:
    """A kernel is about to be built by `build`, or was compiled or loaded for a launch: the fields of a job, with
    ``cc=None`` for the current GPU."""

    kernel: Any
    signature: Any
    cc: Any = None
    output: str = "cubin"
    entry_name: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    for_launch: bool = False


listeners: list[Callable[[KernelEvent], None]] = []


def announce(event: KernelEvent) -> None:
    for listener in listeners:
        listener(event)
