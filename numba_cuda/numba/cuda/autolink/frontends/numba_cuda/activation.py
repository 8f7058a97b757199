# SPDX-License-Identifier: BSD-2-Clause
"""Every seam with numba-cuda: the only module that assigns to numba-cuda's internals.

`activate` checks that all seams exist before it replaces any, and does nothing the second time. `deactivate` restores
numba-cuda as it was.

A process that is forked while another thread of its parent compiles gets an error when it compiles, in place of a wait
without end: its lock of Numba's compilers, which the front ends take too, stays locked, as those in LLVM and NVRTC may.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import inspect
import os
import re
import types as pytypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from numba import cuda
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.cuda.cudadrv.external_code.diagnostics import progress, timeline
from numba.cuda.cudadrv.external_code.diagnostics.signal_handlers import handlers_held_back
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, Target

from numba_cuda_autolink.printable_texts import did_you_mean
from numba_cuda_autolink.short_tracebacks import explain_uncaught, place_of_user, raised_by_front_end, short_traceback
from numba_cuda_autolink.source_locations import shown_file, with_place

from ...compilation.context import (
    KernelEvent,
    announce,
    compilation,
    compiling,
    compiling_callees_again,
    current_state,
    isolate,
    noting_uncompiled,
)
from ...frontend_api.jit_options import with_jit_options
from ...frontend_api.seams import MissingSeamError, Seams

# The replacements import what they need when something is compiled, so that importing numba.cuda stays quick.


__all__ = ["SEAMS", "MissingSeamError", "activate", "active", "deactivate", "locate"]

_seams = Seams("numba-cuda")
SEAMS = _seams.functions
_in_place_of = _seams.in_place_of
locate = _seams.locate
# What makes the disk cache of a kernel, if there is one.
_kernel_caches: list[Callable[[Any, Any], Any]] = []


@_in_place_of("numba.cuda:jit")
def _jit(original: Any, func_or_sig: Any = None, *args: Any, **options: Any) -> Any:
    """Refuse options of wrong types. Keep ``lto=``, which numba-cuda drops where neither a function nor a signature is
    given. Note the functions that cannot be compiled as they are decorated, where a file is listed."""
    from .jit_options import wrong_option

    if (wrong := wrong_option(options)) is not None:
        from numba_cuda_autolink.errors import at_call

        with short_traceback():
            raise TypeError(at_call(wrong))
    uncompiled = current_state().uncompiled
    if func_or_sig is not None and (uncompiled is None or inspect.isfunction(func_or_sig)):
        return original(func_or_sig, *args, **options)
    if uncompiled is None:
        original(None, *args, **options)  # checks the options

    def decorate(function: Any) -> Any:
        if func_or_sig is None:
            return original(function, *args, **options)
        return original(func_or_sig, *args, **options)(function)

    if uncompiled is None:
        return decorate

    def decorate_plainly(function: Any) -> Any:
        return original(function, device=options.get("device", False))

    return noting_uncompiled(decorate, decorate_plainly, lambda function, error: _explain(function, options, error))


@_in_place_of("numba.cuda.codegen:JITCUDACodegen._library_class")
def _make_library(original: Any, *args: Any, **kwargs: Any) -> Any:
    from .code_library import LinkingCodeLibrary

    return LinkingCodeLibrary(*args, **kwargs)


@_in_place_of("numba.cuda.codegen:JITCUDACodegen.magic_tuple")
def _magic_tuple(original: Any, codegen: Any) -> Any:
    """Cache a kernel that is compiled without a GPU under the compute capability that it is compiled for."""
    if (cc := current_state().cc) is None:
        return original(codegen)
    from numba.cuda.cudadrv.runtime import runtime

    return runtime.get_version(), cc


@_in_place_of("numba.cuda.compiler:ExternalCodeLibrary")
def _make_external_library(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Keep the order in which code is given to ``declare_device``."""
    from ...function_code.calls import OrderedSet

    library = original(*args, **kwargs)
    library._linking_files = OrderedSet()
    return library


@_in_place_of("numba.cuda.compiler:CUDACompiler.define_cuda_lowering_pipeline")
def _define_lowering_pipeline(original: Any, compiler: Any, state: Any) -> Any:
    """Ask called objects when types are final, and lower with `LinkingNativeLowering`."""
    from numba.cuda.compiler import CUDANativeLowering

    from .compiler_passes import AskCallees, LinkingNativeLowering

    manager = original(compiler, state)
    lowered = [(LinkingNativeLowering if each is CUDANativeLowering else each, text) for each, text in manager.passes]
    manager.passes = [(AskCallees, "ask called objects for linkable code"), *lowered]
    return manager


@_in_place_of("numba.cuda.core.inline_closurecall:InlineWorker.inline_ir")
def _inline(
    original: Any, worker: Any, caller_ir: Any, block: Any, i: int, callee_ir: Any, *args: Any, **named: Any
) -> Any:
    """Note which function is inlined into which."""
    from ...function_code.inlined_functions import InlinedFunctions

    loc = block.body[i].value.loc
    inlined = original(worker, caller_ir, block, i, callee_ir, *args, **named)
    InlinedFunctions.of(caller_ir.func_id).note(caller_ir, loc, callee_ir)
    return inlined


@_in_place_of("numba.cuda.compiler:compile_cuda")
def _compile(original: Any, *args: Any, **options: Any) -> Any:
    """Compile for the target that ``cuda.compile`` and the like are given."""
    front_end = timeline.span("front end", getattr(args[0], "__name__", "a function"))
    with compiling(target_of_options(options, for_device=False)), front_end, _diagnose(args[0]):
        return original(*args, **options)


@_in_place_of("numba.cuda.compiler:ExternFunction.__reduce__")
def _reduce_extern_function(original: Any, function: Any) -> Any:
    """Pickle declared functions so that they can be called after unpickling: they are declared again."""
    from numba.cuda.cudadrv.external_code.plan.declared_functions import declarations

    if (declared := declarations.get(function)) is None:
        return copyreg.__newobj__, (type(function),), vars(function)  # type: ignore[attr-defined]
    state = {name: value for name, value in vars(function).items() if name not in ("name", "sig")}
    return declare_again, (function.name, function.sig, declared), state or None


def declare_again(name: str, signature: Any, declared: Any) -> Any:
    how = {"use_cooperative": declared.use_cooperative, "abi": declared.abi}
    return cuda.declare_device(name, signature, list(declared.link), **how)


@_in_place_of("numba.cuda.core.base:BaseContext.refresh")
def _refresh_target_context(original: Any, context: Any) -> None:
    """Load new registrations whole: numba-cuda's generators of them end for good when they are interrupted."""
    with handlers_held_back():
        original(context)


@_in_place_of("numba.cuda.typing.context:BaseContext.refresh")
def _refresh_typing_context(original: Any, context: Any) -> None:
    """Load new registrations whole, as those of target contexts."""
    with handlers_held_back():
        original(context)


@_in_place_of("numba.cuda.core.untyped_passes:convert_code_obj_to_function")
def _make_function_of_lambda(original: Any, make_function: Any, caller_ir: Any) -> Any:
    """Let a function that is written in a kernel have variables of the functions around the kernel."""
    from numba.cuda.core.errors import TypingError

    from ...frontend_api.front_end import NUMBA_CUDA
    from ...protocol.closures import make_closure

    return make_closure(make_function, caller_ir, NUMBA_CUDA, TypingError) or original(make_function, caller_ir)


@_in_place_of("numba.cuda.core.typed_passes:BaseTypeInference.run_pass")
def _infer_types(original: Any, inference: Any, state: Any) -> Any:
    """Let functions of C++ write to variables and to elements of arrays."""
    from numba.core.errors import TypingError as NumbaTypingError
    from numba.cuda.core.errors import TypingError

    from ...frontend_api.typing_rounds import infer_types

    return infer_types(original, inference, state, (TypingError, NumbaTypingError))


@_in_place_of("numba.cuda.core.typeinfer:TypeInferer.propagate")
def _propagate(original: Any, inferer: Any, raise_errors: bool = True) -> Any:
    """Resolve together the calls that called objects put off."""
    from numba.cuda.core.errors import TypingError

    from ...frontend_api.typing_rounds import propagated

    return propagated(original, inferer, raise_errors, TypingError)


@_in_place_of("numba.cuda.decorators:declare_device_function")
def _declare_device_function(
    original: Any, name: Any, restype: Any, argtypes: Any, link: Any, use_cooperative: Any, abi: Any
) -> Any:
    """Remember how functions are declared."""
    from numba.cuda.cudadrv.external_code.plan.declared_functions import Declaration, note_declared

    template = original(name, restype, argtypes, link, use_cooperative, abi)
    note_declared(template.key, Declaration(tuple(link), use_cooperative, abi, place_of_user()[:2]))
    return template


@_in_place_of("numba.cuda.dispatcher:compile_cuda")
def _compile_for_device(original: Any, *args: Any, **options: Any) -> Any:
    """Compile a dispatcher's kernel or device function for the GPU: architecture-specific, where that exists."""
    from .code_library import LinkingCodeLibrary

    function = getattr(args[0], "__name__", "a function")
    target, front_end = target_of_options(options, for_device=True), timeline.span("front end", function)
    shown = progress.step(f"compiling {function} for {target.arch}")
    argtypes = () if args[1] is None else args[2]  # of a device function, whose caller is compiled too
    with compiling(target), shown, front_end, _diagnose(args[0], argtypes):
        compiled = original(*args, **options)
    if isinstance(compiled.library, LinkingCodeLibrary):
        compiled.library.is_searched = True
    return compiled


@contextlib.contextmanager
def _diagnose(function: Any, argtypes: Sequence[Any] = ()) -> Iterator[None]:
    """Where compiling *function* fails over a called object, or over the *argtypes* of a launch, say what is wrong
    instead of what Numba cannot type."""
    try:
        yield
    except Exception as error:
        from ...frontend_api.launch_messages import refused_argument
        from ...frontend_api.typing_rounds import is_put_off
        from ...protocol.typing_diagnosis import diagnose

        if is_put_off(error) or not (isinstance(error, NumbaError) or raised_by_front_end(error)):
            raise
        if (better := refused_argument(function, argtypes) or diagnose(error, function)) is None:
            raise
        raise better from None


def target_of_options(options: dict[str, Any], for_device: bool) -> Target:
    """Return the target that numba-cuda's *options* of a compile mean."""
    capability, without_device = ComputeCapability.parse(options["cc"]), current_state().cc
    if for_device:
        capability = ComputeCapability(*without_device) if without_device else capability.as_launched
    debug = bool(options.get("debug"))
    lto = options.get("lto")
    if lto is None:
        from numba.cuda.cudadrv.driver import _have_nvjitlink

        # A device function does not know how its kernel is linked: assume the default of kernels.
        lto = (_have_nvjitlink() and not debug) if for_device else "gen-lto" in (options.get("nvvm_options") or {})
    return Target(
        capability,
        lto=bool(lto),
        debug=debug,
        lineinfo=bool(options.get("lineinfo")),
        fastmath=bool(options.get("fastmath")),
        max_registers=options.get("max_registers") or None,
    )


@_in_place_of("numba.cuda.dispatcher:get_current_device")
def _current_device(original: Any) -> Any:
    """Report the compute capability that `build` compiles for, with or without a GPU."""
    cc = current_state().cc
    return original() if cc is None else pytypes.SimpleNamespace(compute_capability=cc[:2])


@_in_place_of("numba.cuda.dispatcher:_Kernel.__init__")
def _make_kernel(original: Any, kernel: Any, *args: Any, **options: Any) -> None:
    """Note the options of a kernel, which the cache's history names."""
    original(kernel, *args, **options)
    if (code := getattr(kernel._codelibrary, "function_code", None)) is not None:
        from ...function_code.calls import options_of_kernel

        code.calls.options = options_of_kernel(options)


@_in_place_of("numba.cuda.dispatcher:_Kernel.bind")
def _bind(original: Any, kernel: Any) -> None:
    if (cc := current_state().cc) is None:
        original(kernel)
    else:
        kernel._codelibrary.get_cubin(cc)


@_in_place_of("numba.cuda.dispatcher:CUDADispatcher.compile")
def _compile_kernel(original: Any, dispatcher: Any, signature: Any) -> Any:
    """Announce the kernels that an application compiles or loads from a cache."""
    is_stored = getattr(dispatcher._cache, "compiles_apart", False)
    again = compiling_callees_again() if is_stored else contextlib.nullcontext()
    with short_traceback(partial(_explain, dispatcher.py_func, dispatcher.targetoptions)), again:
        kernel = original(dispatcher, signature)
    announce(KernelEvent(dispatcher, signature, for_launch=True))
    return kernel


@_in_place_of("numba.cuda.dispatcher:CUDADispatcher.__call__")
def _call_without_grid(original: Any, *args: Any, **named: Any) -> Any:
    """Say how a kernel is launched, where it is called without the sizes of its grid and blocks."""
    with short_traceback(_placed_error):
        return original(*args, **named)


@_in_place_of("numba.cuda.dispatcher:CUDADispatcher.call")
def _launch(original: Any, dispatcher: Any, args: Any, launch_config: Any) -> Any:
    """Check the arguments of a kernel with one signature, which numba-cuda launches without looking at them; and say
    what to do about a launch that fails."""
    try:
        if dispatcher._specialized:
            _launch_check()(dispatcher, args)
        return original(dispatcher, args, launch_config)
    except Exception:
        with short_traceback(_placed_error):
            raise


@functools.cache
def _launch_check() -> Any:
    from .launch_checks import check_launch

    return check_launch


def _placed_error(error: Exception) -> str | None:
    from ...frontend_api.placed_messages import placed_error  # which nothing needs where all is right

    return placed_error(error)


def _explain(function: Any, options: dict[str, Any], error: Exception) -> str | None:
    """Return the message of an *error* of compiling *function*: that of `placed_error`, but for *options* that
    ``cuda.jit`` does not have."""
    is_about_option = isinstance(error, TypeError) and "unexpected keyword argument" in str(error)
    given = options if is_about_option else ()
    return unknown_option("cuda.jit has", given, decorated=function) or _placed_error(error)


@_in_place_of("numba.cuda.dispatcher:CUDADispatcher.compile_device")
def _compile_device(original: Any, dispatcher: Any, *args: Any, **kwargs: Any) -> Any:
    """Keep device functions apart that are compiled without a GPU, or for a kernel that is stored on disk."""
    isolate(dispatcher)
    return original(dispatcher, *args, **kwargs)


@_in_place_of("numba.cuda.dispatcher:CUDADispatcher.get_call_template")
def _get_call_template(original: Any, dispatcher: Any, args: Any, kws: Any) -> Any:
    """Type a device function under guesses, without compiling it."""
    from numba.cuda import typing

    from ...frontend_api.typing_rounds import template_of

    return template_of(original, dispatcher, args, kws, typing, _calls_of)


def _calls_of(compiled: Any) -> list[tuple[Any, Any]]:
    code = getattr(compiled.library, "function_code", None)
    return [] if code is None else [(site.callee.obj, site.argtypes) for site in code.call_sites]


@_in_place_of("numba.cuda.dispatcher:CUDADispatcher.enable_caching")
def _enable_caching(original: Any, dispatcher: Any) -> None:
    """Cache kernels with external code too."""
    if dispatcher.targetoptions.get("device"):
        original(dispatcher)
        return
    dispatcher._cache = _kernel_caches[0](dispatcher.py_func, dispatcher.targetoptions)


@_in_place_of("numba.cuda.target:CUDATypingContext.resolve_value_type")
def _resolve_value_type(original: Any, context: Any, value: Any) -> Any:
    numba_type = original(context, value)
    if compilation() is not None:
        from ...protocol.call_sites import note_objects

        note_objects(numba_type, value)
    return numba_type


@_in_place_of("numba.cuda.target:CUDATargetContext.get_function")
def _get_function(original: Any, context: Any, func_type: Any, signature: Any, *args: Any, **kwargs: Any) -> Any:
    """Attach the code of objects that only an intrinsic requests, and choose elements of tuples quickly."""
    if compilation() is None:
        return original(context, func_type, signature, *args, **kwargs)
    from .compiler_passes import attach_requested, element_without_data, note_implementation

    if func_type == "typed_getitem" and (element := element_without_data(context, signature)) is not None:
        return element
    attach_requested(context, func_type, signature)
    implementation = original(context, func_type, signature, *args, **kwargs)
    note_implementation(context, implementation)
    return implementation


def unknown_option(have: str, options: Iterable[str], *others: str, decorated: Any = None) -> str | None:
    """Return the message about the first of *options* that neither kernels nor *others* are, ``None`` if all are. Its
    place is that of the Python function that is *decorated* with them."""
    from numba.cuda.dispatcher import _Kernel

    known = inspect.signature(_Kernel).parameters.keys()
    if not (unknown := set(options) - known):
        return None
    from ...frontend_api.launch_messages import FIX_OPTION

    is_target = "cc" in others and re.fullmatch("(?:gpu_)?arch(?:itecture)?|sm|compute_capability", min(unknown))
    remedy = "\n  what to do: write cc=(9, 0) for sm_90" if is_target else FIX_OPTION
    message = f"{have} no option {min(unknown)!r}{did_you_mean(min(unknown), [*known, *others])}{remedy}"
    if decorated is None:
        return message
    filename, line = decorated.__code__.co_filename, decorated.__code__.co_firstlineno
    return with_place(message, f"decorated at: {shown_file(filename)}:{line}", filename, line)


# Attributes of numba-cuda that are used and not replaced.
_ALSO_NEEDED = (
    "numba.core.compiler_lock:global_compiler_lock._lock",
    "numba.cuda.codegen:CUDACodeLibrary._reduce_states",
    "numba.cuda.codegen:CUDACodeLibrary.get_cubin",
    "numba.cuda.codegen:CUDACodeLibrary._ensure_cc",
    "numba.cuda.compiler:CUDANativeLowering.lowering_class",
    "numba.cuda.compiler:run_frontend",
    "numba.cuda.cudadrv.linkable_code:LinkableCode",
    "numba.cuda.cudadrv.driver:_have_nvjitlink",
    "numba.cuda.cudadrv.driver:CudaPythonFunction.attrs",
    "numba.cuda.cudadrv.driver:CudaPythonFunction.device",
    "numba.cuda.cudadrv.driver:CudaPythonFunction.handle",
    "numba.cuda.cudadrv.nvrtc:_get_nvrtc_version",
    "numba.cuda.cuda_paths:_get_include_dir",
    "numba.cuda.dispatcher:_Kernel",
    "numba.cuda.dispatcher:CUDACache._save_overload",
    "numba.cuda.lowering:CUDALower.lower_call",
    "numba.cuda.memory_management.nrt:NRT_LIBRARY",
    "numba.cuda.utils:numba_target_override",
)


def register_kernel_cache(make: Callable[[Any, Any], Any]) -> None:
    """Let *make* make the disk cache of a kernel, from its Python function and the options of ``cuda.jit``."""
    _kernel_caches[:] = [make]


def activate() -> None:
    """Make numba-cuda ask called objects for their code. Do nothing if it already does.

    Raises `MissingSeamError` if the installed numba-cuda lacks a name to replace. Nothing is replaced then.
    """
    if not _seams.active:
        _seams.replace(_ALSO_NEEDED)
        with_jit_options(cuda.jit)
        explain_uncaught(_placed_error)
        watch_forks()


def deactivate() -> None:
    """Restore numba-cuda as it was. Kernels that are already compiled keep working."""
    explain_uncaught(None)
    _seams.restore()


def active() -> bool:
    """Return whether numba-cuda asks called objects for their code."""
    return _seams.active


class _LockOfParent:
    """In place of a lock that a thread of the parent process holds."""

    def acquire(self, blocking: bool = True) -> bool:
        if not blocking:
            return False
        raise RuntimeError(
            "this process cannot compile: another thread of its parent compiled when it was forked\n"
            "  reason: the locks of the compilers stay locked in it\n"
            "  what to do: fork before any thread compiles, or start processes with"
            ' multiprocessing.get_context("spawn")'
        )

    def release(self) -> None:
        """Do nothing: it was not acquired."""


@functools.cache
def watch_forks() -> None:
    """See to it that forked processes raise `RuntimeError` when they compile and cannot."""
    os.register_at_fork(after_in_child=_replace_lock)


def _replace_lock() -> None:
    lock = global_compiler_lock._lock
    if lock.acquire(blocking=False):
        lock.release()
    else:
        global_compiler_lock._lock = _LockOfParent()
