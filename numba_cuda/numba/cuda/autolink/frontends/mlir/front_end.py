# SPDX-License-Identifier: BSD-2-Clause
"""Kernels of numba-cuda-mlir as `build` returns them: built without a GPU, or compiled by a launch."""

from __future__ import annotations

from typing import Any

from numba.cuda.cudadrv.external_code.diagnostics.timeline import Timeline
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, Target
from numba_cuda_mlir import decorators, mlir_optimization
from numba_cuda_mlir.descriptor import MLIRDispatcher
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core.compiler_lock import global_compiler_lock

from ...builds.ahead_of_time import LinkedKernel
from ...compilation.context import without_device
from ...finished_kernels.saving import LaunchFacts, callbacks, parameter_names
from ...function_code.build_record import facts_of
from ...function_code.function_code import FunctionCode
from .bound_kernels import CompiledCode
from .linker import KEY, compiled_for
from .type_translation import to_core

_NAME = "numba-cuda-mlir"
_CARVEOUTS: dict[str, Any] = {"default": -1, "maxl1": 0, "maxshared": 100}
# Options that another option stands for, once numba-cuda-mlir has resolved it.
_RESOLVED = {"opt": "opt_level", "fast_math": "fastmath", "lto": "_lto_explicit"}


@global_compiler_lock
def build(
    kernel: Any,
    argtypes: tuple[Any, ...],
    capability: ComputeCapability,
    *,
    output: str,
    entry_name: str | None,
    jit_options: dict[str, Any],
    for_launch: bool,
) -> LinkedKernel:
    """Compile and link *kernel*, made by numba-cuda-mlir's ``cuda.jit``, with its *jit_options* for arguments of the
    types *argtypes*; *for_launch*, as a launch would build it. Raises what `build` describes."""
    if entry_name is not None:
        raise ValueError(f"entry_name cannot be set for kernels of {_NAME}: its name in the code is fixed")
    options = _options(kernel, jit_options)
    options["chip"] = capability.arch
    carveout = options.pop("shared_memory_carveout", None)  # which is set on a device
    if output != "cubin":
        options |= {"lto": True, "_lto_explicit": True}
    dispatcher = MLIRDispatcher(kernel.py_func, targetoptions=options)
    with without_device(capability.parts, for_launch=for_launch):
        compiled = dispatcher.compile(types.void(*argtypes))
        return _of_compiled(dispatcher, compiled, output, carveout)


def _options(kernel: Any, jit_options: dict[str, Any]) -> dict[str, Any]:
    if kernel.targetoptions.get("device"):
        raise TypeError(f"build() builds kernels, and {kernel.py_func.__name__} is a device function")
    options = {**kernel.targetoptions, "cache": False}
    options["link"] = list(options.get("link") or ())
    given = decorators.verify_target_options(jit_options)
    names = [*jit_options, *(_RESOLVED[name] for name in jit_options if name in _RESOLVED)]
    return options | {name: given[name] for name in names}


def _of_compiled(dispatcher: Any, compiled: Any, output: str, carveout: int | str | None) -> LinkedKernel:
    """Return a kernel that numba-cuda-mlir has *compiled* as one that was built."""
    metadata = compiled.metadata
    external = metadata.get(KEY) or _without_external_code(dispatcher, metadata)
    target = compiled_for(external)
    plan = external.plan(target)
    if output == "ptx":
        code = mlir_optimization.get_lto_ptx(compiled).encode()
    else:
        code = bytes(metadata["cubin" if output == "cubin" else "ltoir"])
    capability = target.compute_capability
    names = parameter_names(dispatcher.py_func, len(compiled.signature.args))
    launch = LaunchFacts(
        dispatcher.py_func.__name__,
        tuple(map(to_core, compiled.signature.args)),
        names,
        target.debug,
        bool(dispatcher.targetoptions.get("extensions")),
        bool(metadata.get("use_cooperative")),
        _CARVEOUTS.get(str(carveout).lower(), carveout),
        *callbacks(plan),
        bool(metadata.get("needs_nrt")),
        tuple(variable for _, variable in plan.variables),
        front_end=_NAME,
    )
    return LinkedKernel(
        code,
        metadata["func_name"],
        capability,
        output,
        tuple(call.site for call in external.call_sites),
        plan.inputs,
        external.prototypes,
        f"({', '.join(map(str, compiled.signature.args))})",
        launch,
        facts_of(external, target, output),
        external.called_functions,
    )


def _without_external_code(dispatcher: Any, metadata: Any) -> FunctionCode:
    options = dispatcher.targetoptions
    lto, debug, lineinfo = (bool(options.get(name)) for name in ("lto", "debug", "lineinfo"))
    capability = ComputeCapability.parse(metadata["gpu_target"]["linker_arch"])
    target = Target(capability, lto=lto, debug=debug, lineinfo=lineinfo)
    external = FunctionCode(dispatcher.py_func.__qualname__, target, Timeline())
    external.entry_name = metadata["func_name"]
    code = dispatcher.py_func.__code__
    external.calls.filename, external.calls.line = code.co_filename, code.co_firstlineno
    return external


def only_overload(kernel: Any) -> Any:
    """Return what *kernel* was compiled to. Raise `ValueError` if that is nothing, or several things."""
    overloads = list(kernel.overloads.values())
    name = kernel.py_func.__name__
    if len(overloads) == 1:
        return overloads[0]
    if overloads:
        listed = "".join(f"\n  ({', '.join(map(str, each.signature.args))})" for each in overloads)
        raise ValueError(f"kernel {name} is compiled for {len(overloads)} signatures; pass one of them:{listed}")
    raise ValueError(
        f"kernel {name} is not compiled yet\n  what to do: launch it, or pass the signature to build it for, for"
        f' example report({name}, "void(float32[::1])", cc=(9, 0))'
    )


def compiled_code(kernel: Any, argtypes: tuple[Any, ...]) -> CompiledCode:
    """Return the code of *kernel* for arguments of the types *argtypes*, compiled if it is not, for `bind`. Raise
    `FinishedKernelError` if it needs the launch of its front end."""
    return CompiledCode(_of_launched(kernel, kernel.compile(types.void(*argtypes))))


def launched(kernel: Any) -> LinkedKernel:
    """Return *kernel* as it was compiled for a launch."""
    return _of_launched(kernel, only_overload(kernel))


def _of_launched(kernel: Any, compiled: Any) -> LinkedKernel:
    return _of_compiled(kernel, compiled, "cubin", kernel.targetoptions.get("shared_memory_carveout"))
