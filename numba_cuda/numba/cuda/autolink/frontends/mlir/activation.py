# SPDX-License-Identifier: BSD-2-Clause
"""Every seam with numba-cuda-mlir: the only module that assigns to its internals.

`activate` checks that all seams exist before it replaces any, and does nothing the second time. `deactivate` restores
numba-cuda-mlir as it was. Importing this module imports that front end.
"""

from __future__ import annotations

import inspect
import types as pytypes
from typing import Any

from numba.cuda.cudadrv.external_code.cache.store import current_store
from numba.cuda.cudadrv.external_code.diagnostics import progress, timeline
from numba.cuda.cudadrv.external_code.diagnostics.timeline import recording
from numba.cuda.cudadrv.external_code.plan.link_plan import SymbolSite
from numba.cuda.cudadrv.external_code.plan.python_cells import place_of_kernel
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, Target
from numba.cuda.cudadrv.linkable_code import LinkableCode
from numba_cuda_mlir import descriptor
from numba_cuda_mlir.errors import InternalCompilerError, UserFacingInternalCompilerError
from numba_cuda_mlir.numba_cuda import typing
from numba_cuda_mlir.numba_cuda.core.errors import LoweringError, NumbaError, TypingError

from numba_cuda_autolink.emulated_driver import activation as emulation
from numba_cuda_autolink.short_tracebacks import raised_by_front_end, short_traceback
from numba_cuda_autolink.source_locations import shown_file

from ...compilation.context import (
    KernelEvent,
    announce,
    compilation,
    compiling,
    current_state,
    isolate,
    noting_uncompiled,
)
from ...frontend_api.front_end import register
from ...frontend_api.launch_messages import USE_AS_CONSTANT, check_count, refused_argument
from ...frontend_api.placed_messages import not_compiled, placed_error
from ...frontend_api.seams import Seams
from ...frontend_api.typing_rounds import infer_types, is_put_off, propagated, template_of
from ...function_code.calls import check_state
from ...function_code.function_code import FunctionCode
from ...function_code.inlined_functions import InlinedFunctions
from ...protocol.ask import ask_all, ask_at
from ...protocol.call_sites import CallSites, find_read_only, function_at, note_objects
from ...protocol.closures import make_closure
from ...protocol.errors import assignment_error
from ...protocol.typing_diagnosis import diagnose
from . import emulated_driver
from .call_lowering import llvm_prototype, lower_call
from .called_objects import CalledObjectType, constant_of_attribute, is_called_object, refresh_typing
from .linker import FUNCTION, KEY, CallLinker, explain, linker_for, wrap_callbacks
from .lowered_values import lower_enumerator, lower_named_tuple, lower_record_array, number_of
from .type_translation import MLIR

_seams = Seams("numba-cuda-mlir")


@_seams.in_place_of("numba_cuda_mlir.cuda:jit")
def _jit(original: Any, func_or_sig: Any = None, **options: Any) -> Any:
    """Note the functions that cannot be compiled as they are decorated, where a file is listed."""
    if current_state().uncompiled is None:
        return original(func_or_sig, **options)
    plain = {"device": options.get("device", False), "annotations_as_signatures": False}

    def decorate(function: Any) -> Any:
        is_given = func_or_sig is not None and func_or_sig is not function
        return original(func_or_sig, **options)(function) if is_given else original(function, **options)

    noting = noting_uncompiled(
        decorate, lambda function: original(function, **plain), lambda _, error: placed_error(error)
    )
    return noting(func_or_sig) if inspect.isfunction(func_or_sig) else noting


# Compiling for a target


@_seams.in_place_of("numba_cuda_mlir.mlir_compiler:compile_mlir")
def _compile(original: Any, pyfunc: Any, return_type: Any, args: Any, targetoptions: dict[str, Any]) -> Any:
    """Set the target of the outermost compilation, and refuse called objects as arguments of kernels."""
    name = getattr(pyfunc, "__name__", "a function")
    if not targetoptions.get("device"):
        _check_arguments(name, args)
    front_end = timeline.span("front end", name)
    target = _target(targetoptions)
    with compiling(target), progress.step(f"compiling {name} for {target.arch}"), front_end:
        try:
            return original(pyfunc, return_type, args, targetoptions)
        except Exception as error:
            is_own = isinstance(error, (NumbaError, UserFacingInternalCompilerError))
            if is_put_off(error) or not (is_own or raised_by_front_end(error)):
                raise
            better: Exception | None = None if targetoptions.get("device") else refused_argument(pyfunc, args)
            better = better or diagnose(error, pyfunc, TypingError)
            if better is None and isinstance(error, UserFacingInternalCompilerError) and (text := not_compiled(error)):
                better = LoweringError(text)
            if better is None:
                raise
            raise better from None


def _check_arguments(kernel: str, args: Any) -> None:
    for each in args:
        if isinstance(each, CalledObjectType):
            raise TypeError(
                f"a called object cannot be an argument of kernel {kernel!r}: kernels treat it as a constant\n"
                f"  object: {each}\n"
                f"  what to do: {USE_AS_CONSTANT}"
            )


def _target(options: dict[str, Any]) -> Target:
    from numba_cuda_mlir import tools

    capability = ComputeCapability.parse(str(tools.resolve_gpu_target(options)["linker_arch"]))
    debug = bool(options.get("debug"))
    # A device function does not know how its kernel is linked: `_compile_device_callee` gives it lto=False.
    is_given = options.get("_lto_explicit") and not options.get("device")
    return Target(
        capability,
        lto=bool(options.get("lto")) if is_given else not debug,
        debug=debug,
        lineinfo=bool(options.get("lineinfo")),
        fastmath=bool(options.get("fastmath")),
        max_registers=options.get("max_registers") or None,
    )


@_seams.in_place_of("numba_cuda_mlir.tools:get_gpu_compute_capability")
def _compute_capability(original: Any, as_type: type = str) -> Any:
    if (cc := current_state().cc) is None:
        return original(as_type)
    return cc[:2] if as_type is tuple else f"sm_{cc[0]}{cc[1]}{cc[2]}"


@_seams.in_place_of("numba_cuda_mlir.descriptor:MLIRDispatcher._compile_device_callee")
def _compile_device(original: Any, dispatcher: Any, *args: Any, **kwargs: Any) -> Any:
    """Keep device functions that are compiled without a GPU apart, with the chip that they are compiled for."""
    if current_state().cc is None:
        return original(dispatcher, *args, **kwargs)
    isolate(dispatcher)
    chip = dispatcher.targetoptions.pop("chip", None)
    try:
        return original(dispatcher, *args, **kwargs)
    finally:
        dispatcher.targetoptions["chip"] = chip


@_seams.in_place_of("numba_cuda_mlir.descriptor:MLIRDispatcher.get_call_template")
def _get_call_template(original: Any, dispatcher: Any, args: Any, kws: Any) -> Any:
    return template_of(original, dispatcher, args, kws, typing, _calls_of)


def _calls_of(compiled: Any) -> list[tuple[Any, Any]]:
    code = compiled.metadata.get(KEY)
    return [] if code is None else [(site.callee.obj, site.argtypes) for site in code.call_sites]


@_seams.in_place_of("numba_cuda_mlir.descriptor:MLIRDispatcher._compile_impl")
def _compile_launched(original: Any, dispatcher: Any, args: Any, *others: Any) -> Any:
    """Refuse a wrong number of arguments, which that front end reads or drops, once for arguments of these types."""
    given = getattr(descriptor._compile_arg_types, "types", None)
    with short_traceback(placed_error):
        if dispatcher.targetoptions.get("device"):
            raise RuntimeError("Cannot compile a device function as a kernel")
        check_count(dispatcher.py_func, len(args if given is None else given))
    return _compile_kernel(original, dispatcher, args, *others)


@_seams.in_place_of("numba_cuda_mlir.descriptor:MLIRDispatcher._compile_public")
def _compile_kernel(original: Any, dispatcher: Any, *args: Any, **kwargs: Any) -> Any:
    before = set(dispatcher.overloads)
    wrap_callbacks(dispatcher)
    with short_traceback(lambda error: explain(error, dispatcher)):
        compiled = original(dispatcher, *args, **kwargs)
    if current_state().cc is None and not dispatcher.targetoptions.get("device"):
        for signature in dispatcher.overloads:
            if signature not in before:
                announce(KernelEvent(dispatcher, signature, for_launch=True))
    return compiled


@_seams.in_place_of("numba_cuda_mlir.descriptor:MLIRDispatcher.__call__")
def _call_without_grid(original: Any, *args: Any, **named: Any) -> Any:
    """Say how a kernel is launched, where it is called without the sizes of its grid and blocks."""
    with short_traceback(placed_error):
        return original(*args, **named)


@_seams.in_place_of("numba_cuda_mlir.descriptor:_ArgMarshaller._maybe_copy_to_device_item")
def _copy_to_device(original: Any, *args: Any) -> Any:
    """Say what to do about an argument of a launch that cannot be copied to the GPU."""
    with short_traceback(placed_error):
        return original(*args)


# Asking


@_seams.in_place_of("numba_cuda_mlir.descriptor:MLIRTypingContext.resolve_value_type")
def _resolve_value_type(original: Any, context: Any, value: Any) -> Any:
    numba_type = original(context, value)
    if compilation() is not None:
        note_objects(numba_type, value)
    return numba_type


@_seams.in_place_of("numba_cuda_mlir.mlir_compiler:MLIRTypeInference.run_pass")
def _infer_types(original: Any, inference: Any, state: Any) -> Any:
    """Let functions of C++ write to variables, and ask called objects when types are final, so that one that refuses is
    a typing error at the call."""
    changed = infer_types(original, inference, state, TypingError, MLIR)
    if compilation() is not None:
        ask_all(CallSites(state.func_ir, state.typemap, MLIR), state.calltypes)
    return changed


@_seams.in_place_of("numba_cuda_mlir.numba_cuda.core.inline_closurecall:InlineWorker.inline_ir")
def _inline(
    original: Any, worker: Any, caller_ir: Any, block: Any, i: int, callee_ir: Any, *args: Any, **named: Any
) -> Any:
    """Note which function is inlined into which, and in which one calls are."""
    loc = block.body[i].value.loc
    inlined = original(worker, caller_ir, block, i, callee_ir, *args, **named)
    InlinedFunctions.of(caller_ir.func_id).note(caller_ir, loc, callee_ir)
    InlinedFunctions.mark_calls(callee_ir, inlined[1])
    return inlined


@_seams.in_place_of("numba_cuda_mlir.numba_cuda.core.typeinfer:TypeInferer.propagate")
def _propagate(original: Any, inferer: Any, raise_errors: bool = True) -> Any:
    return propagated(original, inferer, raise_errors, TypingError)


# Lowering


@_seams.in_place_of("numba_cuda_mlir.mlir_lowering:MLIRLower.lower_call_expr_assign")
def _lower_call(original: Any, lower: Any, target: Any, fn: Any, args: Any, kws: Any, expr: Any = None) -> Any:
    """Attach the code of the called objects, and lower calls of device callables."""
    in_progress = compilation()
    if in_progress is None or expr is None or expr not in lower.fndesc.calltypes:
        return original(lower, target, fn, args, kws, expr)
    lower.loc = expr.loc  # which it sets itself only for debuggers
    sites = CallSites(lower.func_ir, lower.fndesc.typemap, MLIR)
    asked = [ask_at(site, expr.loc) for site in sites.of(expr, lower.fndesc.calltypes[expr])]
    for call in asked:
        InlinedFunctions.of(lower.func_ir.func_id).add_call(_external(lower), call, expr.loc)
    if not isinstance(lower.get_numba_type(fn.name), CalledObjectType):
        if lower_record_array(lower, target, fn, args, kws, expr.loc):
            return None
        if lower_named_tuple(lower, target, fn, args, kws):
            return None
        if isinstance(lower.get_numba_type(fn.name), MLIR.types.Function):
            args = [number_of(lower, each) for each in args]
        return original(lower, target, fn, args, kws, expr)
    read_only = find_read_only(lower.func_ir, lower.fndesc.typemap, expr, MLIR)
    with in_progress.noting_prototypes(read_only) as prototypes:
        lower_call(lower, _external(lower), target, expr, args)
    check_state(asked, prototypes, expr.loc)
    arguments = ", ".join(map(str, lower.fndesc.calltypes[expr].args))
    place = f"{shown_file(expr.loc.filename)}:{expr.loc.line} in {function_at(expr.loc, lower.func_ir)}"
    described = f"the call with ({arguments}) at {place}"
    for symbol, prototype in prototypes:
        _external(lower).symbols.note(symbol, SymbolSite(llvm_prototype(prototype), described, prototype), asked)
    return None


def _external(lower: Any) -> FunctionCode:
    if KEY not in lower.metadata:
        in_progress = compilation()
        assert in_progress is not None
        name = lower.func_ir.func_id.func_qualname
        external = FunctionCode(name, in_progress.target, in_progress.timeline, front_end=MLIR.name)
        external.calls.filename, external.calls.line = lower.func_ir.loc.filename, lower.func_ir.loc.line
        external.calls.note_compiled(lower.func_ir.func_id.func, lower.fndesc.argtypes)
        InlinedFunctions.of(lower.func_ir.func_id).add_to(external, lower.func_ir.func_id.func)
        lower.metadata[KEY] = external
    return lower.metadata[KEY]


@_seams.in_place_of("numba_cuda_mlir.mlir_lowering:MLIRLower.lower_assign")
def _lower_assign(original: Any, lower: Any, assignment: Any) -> Any:
    """Keep called objects, which their types name, out of the memory of variables that are assigned several times, and
    lower nothing for the code of a lambda, which is a function by then."""
    name, value = assignment.target.name, assignment.value
    if isinstance(value, MLIR.ir.Const) and isinstance(value.value, pytypes.CodeType):
        return None
    if lower_enumerator(lower, assignment.target, value):
        return None
    numba_type = lower.fndesc.typemap.get(name)
    if not isinstance(numba_type, CalledObjectType) or getattr(value, "op", None) == "call":
        return original(lower, assignment)
    _external(lower)  # also of a kernel that only reads attributes, which no key of a cache knows
    lower.var_assign_count[name] = 1
    lower.varmap[name] = numba_type.numba_cuda_link_object
    return None


@_seams.in_place_of("numba_cuda_mlir.numba_cuda.core.untyped_passes:convert_code_obj_to_function")
def _make_function_of_lambda(original: Any, make_function: Any, caller_ir: Any) -> Any:
    return make_closure(make_function, caller_ir, MLIR, TypingError) or original(make_function, caller_ir)


@_seams.in_place_of("numba_cuda_mlir.mlir_lowering:MLIRLower.lower_getattr_assign")
def _lower_getattr(original: Any, lower: Any, target: Any, value: Any, attr: str) -> None:
    numba_type = lower.get_numba_type(value.name)
    if not isinstance(numba_type, CalledObjectType):
        return original(lower, target, value, attr)
    return lower.store_var(target, constant_of_attribute(numba_type.numba_cuda_link_object, attr)[0])


@_seams.in_place_of("numba_cuda_mlir.mlir_lowering:MLIRLower.lower_setattr")
def _lower_setattr(original: Any, lower: Any, assignment: Any) -> None:
    numba_type = lower.get_numba_type(assignment.target.name)
    if isinstance(numba_type, CalledObjectType):
        raise assignment_error(assignment.attr, numba_type, assignment.loc, LoweringError)
    original(lower, assignment)


@_seams.in_place_of("numba_cuda_mlir.mlir_lowering:MLIRLower._call_operands_from_vars")
def _operands(original: Any, lower: Any, *args: Any, **kwargs: Any) -> Any:
    """Pass no called objects to device functions: these know them by their types."""
    return [each for each in original(lower, *args, **kwargs) if not is_called_object(each)]


# Linking


@_seams.in_place_of("numba_cuda_mlir.mlir_lowering:MLIRLower._record_ltoirs_from_linker")
def _take_along(original: Any, lower: Any, linker: Any) -> Any:
    if isinstance(linker, CallLinker):
        InlinedFunctions.of(lower.func_ir.func_id).add_callee(_external(lower), linker.external, lower.loc)
    return original(lower, linker)


@_seams.in_place_of("numba_cuda_mlir.mlir_lowering:MLIRLower._create_resolved_linker")
def _create_linker(original: Any, lower: Any) -> Any:
    """Link functions with external code by this project's path, also where only ``link=`` names code that is not of
    numba-cuda-mlir's own classes."""
    if any(isinstance(item, LinkableCode) for item in lower._linked_external_link_items):
        _external(lower)
    lower.metadata[FUNCTION] = lower.func_ir.func_id
    return linker_for(lower) if KEY in lower.metadata else original(lower)


@_seams.in_place_of("numba_cuda_mlir.mlir_lowering:MLIRLower.verify_mlir_module")
def _verify(original: Any, lower: Any) -> None:
    """Verify the module without printing it where it is invalid."""
    try:
        lower.mlir_module.operation.verify()
    except Exception as error:
        raise InternalCompilerError(f"Invalid MLIR module: {error}") from error


@_seams.in_place_of("numba_cuda_mlir.mlir_optimization:optimize")
def _optimize(original: Any, cres: Any) -> Any:
    """Note in the timeline how long MLIR, NVVM and the link take, and give the launch the kernel's name in its code."""
    if (external := cres.metadata.get(KEY)) is None:
        return original(cres)
    with recording(external.timeline), timeline.span("NVVM", external.name):
        optimized = original(cres)
    if external.entry_name:
        cres.metadata["func_name"] = external.entry_name
    return optimized


@_seams.in_place_of("numba_cuda_mlir.caching:MLIRCacheImpl.check_cachable")
def _check_cachable(original: Any, implementation: Any, cres: Any) -> Any:
    """Keep kernels that use called objects out of numba-cuda-mlir's cache, whose keys do not know these objects."""
    if (external := cres.metadata.get(KEY)) is None:
        return original(implementation, cres)
    reason = "the cache of numba-cuda-mlir does not know what its called objects provide"
    facts = ("", "path", place_of_kernel(external.calls.filename or "")), ("", "kernel", external.name)
    current_store().note_not_cached("kernel", external.name, reason, facts)
    return False


# Attributes of numba-cuda-mlir that are used and not replaced.
_ALSO_NEEDED = (
    "numba_cuda_mlir.descriptor:_compile_arg_types",
    "numba_cuda_mlir.extending:lowering_registry",
    "numba_cuda_mlir.extending:typing_registry",
    "numba_cuda_mlir.linker:resolve_link_plan",
    "numba_cuda_mlir.lowering_utilities:get_or_insert_function",
    "numba_cuda_mlir.mlir_lowering:MLIRLower._call_results_tuple",
    "numba_cuda_mlir.mlir_lowering:MLIRLower._function_needs_nrt",
    "numba_cuda_mlir.mlir_lowering:MLIRLower.alloca_insertion_point",
    "numba_cuda_mlir.mlir_lowering:MLIRLower.build_user_defined_function_call",
    "numba_cuda_mlir.mlir_lowering:MLIRLower.lower_cast",
    "numba_cuda_mlir.models:mlir_data_manager",
    "numba_cuda_mlir.tools:resolve_gpu_target",
)


def activate() -> None:
    """Make numba-cuda-mlir ask called objects for their code. Do nothing if it already does.

    Raises `MissingSeamError` if the installed numba-cuda-mlir lacks a name to replace. Nothing is replaced then.
    """
    if not _seams.active:
        _seams.replace(_ALSO_NEEDED)
        register(MLIR)
        refresh_typing()
        if emulation.is_active():
            emulated_driver.activate()


def deactivate() -> None:
    """Restore numba-cuda-mlir as it was. Kernels that are already compiled keep working."""
    emulated_driver.deactivate()
    _seams.restore()


def active() -> bool:
    return _seams.active


SEAMS = _seams.functions
