# SPDX-License-Identifier: BSD-2-Clause
"""How kernels of numba-cuda-mlir are built, reported and bound: a `FrontEnd` of `frontend_api.front_end`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from numba.cuda.cudadrv.external_code.diagnostics.timeline import Timeline
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, ComputeCapabilityLike, Target
from numba_cuda_mlir import decorators, mlir_optimization
from numba_cuda_mlir.descriptor import MLIRDispatcher
from numba_cuda_mlir.numba_cuda import types
from numba_cuda_mlir.numba_cuda.core.compiler_lock import global_compiler_lock

from numba_cuda_autolink.launch.driver import Device
from numba_cuda_autolink.launch.loaded_kernel import Loaded, LoadedCode

from ...builds.result import EmulatedTexts
from ...compilation.context import compute_capability, without_device
from ...finished_kernels.saving import check_runtime, layout_of
from ...frontend_api.front_end import BuildRequest
from ...frontend_api.launch_messages import FIX_OPTION, not_a_kernel, option_message
from ...function_code.build_record import (
    BuildRecord,
    LaunchFacts,
    callbacks,
    check_only_overload,
    facts_of,
    given_options,
    parameter_names,
    record_build,
)
from ...function_code.emulated_texts import emulated_texts
from ...function_code.function_code import FunctionCode
from ...function_code.inlined_functions import InlinedFunctions
from ...protocol.kernel_signatures import kernel_argument_types
from .activation import active as active
from .emulated_driver import is_emulated
from .linker import FUNCTION, KEY, SetUp, TearDown, compiled_for
from .type_translation import MLIR, to_core

_CARVEOUTS: dict[str, Any] = {"default": -1, "maxl1": 0, "maxshared": 100}
# Options that another option stands for, once numba-cuda-mlir has resolved it.
_RESOLVED = {"opt": "opt_level", "fast_math": "fastmath", "lto": "_lto_explicit"}


def prepare(kernel: Any, signature: Any, request: BuildRequest) -> tuple[BuildRecord, None]:
    """Compile *kernel*, made by numba-cuda-mlir's ``cuda.jit``, which that front end links at once."""
    argtypes = kernel_argument_types(signature, kernel.py_func, MLIR)
    capability = ComputeCapability(*compute_capability(request.cc))
    if request.for_launch or request.cc is None:  # a launch builds no architecture-specific code
        capability = ComputeCapability(*capability.base)
    if request.entry_name is not None:
        raise ValueError(f"entry_name cannot be set for kernels of {MLIR.name}: its name in the code is fixed")
    options = _options(kernel, dict(request.jit_options))
    options["chip"] = capability.arch
    carveout = options.pop("shared_memory_carveout", None)  # which is set on a device
    if request.output != "cubin":
        options |= {"lto": True, "_lto_explicit": True}
    dispatcher = MLIRDispatcher(kernel.py_func, targetoptions=options)
    with global_compiler_lock, without_device(capability.parts):
        compiled = dispatcher.compile(types.void(*argtypes))
        return _record(dispatcher, compiled, request.output, carveout), None


def check_options(options: Mapping[str, Any]) -> None:
    _verified(dict(options))


def _verified(jit_options: dict[str, Any]) -> Any:
    """Return the *jit_options* with defaults. Raise `TypeError` or `ValueError` if they are not options of kernels."""
    try:
        return decorators.verify_target_options(jit_options)
    except (TypeError, ValueError) as error:
        raise type(error)(option_message(error) or f"{error}{FIX_OPTION}") from None


def _options(kernel: Any, jit_options: dict[str, Any]) -> dict[str, Any]:
    if kernel.targetoptions.get("device"):
        raise not_a_kernel(kernel.py_func.__name__)
    options = {**kernel.targetoptions, "cache": False}
    options["link"] = list(options.get("link") or ())
    given = _verified(jit_options)
    names = [*jit_options, *(_RESOLVED[name] for name in jit_options if name in _RESOLVED)]
    return options | {name: given[name] for name in names}


def _record(dispatcher: Any, compiled: Any, output: str, carveout: int | str | None) -> BuildRecord:
    metadata = compiled.metadata
    external = metadata.get(KEY) or _without_external_code(dispatcher, compiled)
    target = compiled_for(external)
    plan = external.plan(target)
    if output == "ptx" and not is_emulated():
        code = mlir_optimization.get_lto_ptx(compiled).encode()
    else:
        code = bytes(metadata["ltoir" if output == "ltoir" else "cubin"])  # PTX in the emulator
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
        front_end=MLIR.name,
    )
    facts = facts_of(external, target, output)
    record = record_build(external, code, output, _signature(compiled), plan, facts, launch)
    texts = EmulatedTexts(partial(_emulated_texts, compiled), target.compute_capability.parts)
    options = {name: value for name, value in dispatcher.targetoptions.items() if name not in _RESOLVED}
    if carveout is not None:
        options["shared_memory_carveout"] = carveout
    return dataclasses.replace(record, emulated_texts=texts, options=given_options(options, _verified({})))


def _emulated_texts(compiled: Any) -> list[str]:
    metadata = compiled.metadata
    own = (
        LinkInput(kinds.LTO_IR, metadata["ltoir"])
        if metadata.get("ltoir")
        else LinkInput(kinds.PTX, metadata["ptx"].encode())
    )
    if (external := metadata.get(KEY)) is not None:
        return emulated_texts(external, compiled_for(external), [own])
    return [mlir_optimization.get_lto_ptx(compiled) if own.kind is kinds.LTO_IR else metadata["ptx"]]


def _without_external_code(dispatcher: Any, compiled: Any) -> FunctionCode:
    options, metadata = dispatcher.targetoptions, compiled.metadata
    lto, debug, lineinfo = (bool(options.get(name)) for name in ("lto", "debug", "lineinfo"))
    capability = ComputeCapability.parse(metadata["gpu_target"]["linker_arch"])
    target = Target(capability, lto=lto, debug=debug, lineinfo=lineinfo)
    external = FunctionCode(dispatcher.py_func.__qualname__, target, Timeline(), front_end=MLIR.name)
    external.entry_name = metadata["func_name"]
    code = dispatcher.py_func.__code__
    external.calls.filename, external.calls.line = code.co_filename, code.co_firstlineno
    if (func_id := metadata.get(FUNCTION)) is not None:  # it was compiled in this process
        external.calls.note_compiled(func_id.func, compiled.signature.args)
        InlinedFunctions.of(func_id).add_to(external, func_id.func)
    return external


def read_launched(kernel: Any, capabilities: Sequence[ComputeCapabilityLike | None] = ()) -> list[BuildRecord]:
    """Return the record of *kernel* as a launch compiled it, which is for one GPU, whatever *capabilities* are."""
    overloads = list(kernel.overloads.values())
    check_only_overload(kernel.py_func.__name__, [_signature(each) for each in overloads])
    return [_of_launched(kernel, overloads[0])]


def _of_launched(kernel: Any, compiled: Any) -> BuildRecord:
    output = "ptx" if is_emulated() else "cubin"
    return _record(kernel, compiled, output, kernel.targetoptions.get("shared_memory_carveout"))


def _signature(compiled: Any) -> str:
    return f"({', '.join(map(str, compiled.signature.args))})"


def is_device_function(function: Any) -> bool:
    return bool(function.targetoptions.get("device"))


def compile_device_function(function: Any, signature: Any, cc: ComputeCapabilityLike | None) -> BuildRecord:
    """Raise `TypeError`: this front end compiles device functions as parts of kernels alone."""
    name = function.py_func.__name__
    raise TypeError(f"report() describes kernels of {MLIR.name}, and {name} is a device function")


def code_for_bind(kernel: Any, argtypes: tuple[Any, ...]) -> CompiledCode:
    return CompiledCode(_of_launched(kernel, kernel.compile(types.void(*argtypes))))


class CompiledCode:
    """The code of a kernel and signature that numba-cuda-mlir compiled and this project *linked*, for `bind`.

    That front end does not show the code that it loaded. So it is loaded once more: callbacks run for that too, and it
    has device variables of its own.
    """

    def __init__(self, linked: BuildRecord):
        self._code, self._entry, self._facts = linked.code, linked.entry_name, linked.launch_facts
        check_runtime(self._facts)
        self.text, self.parameters = linked.signature, self._facts.parameters
        _, self._leaves = layout_of(linked, self.parameters)

    def load(self, device: Device) -> Loaded:
        """Load the code into the current context, run the setup callbacks, and set the variables and the carveout."""
        facts = self._facts
        setup = [SetUp(each) for each in (*facts.setup, *(each.setup_callback for each in facts.variables))]
        teardown = [TearDown(each) for each in (*facts.teardown, *(each.teardown_callback for each in facts.variables))]
        code = LoadedCode(self._code, setup, teardown, is_ptx=is_emulated(), with_object=False)
        return Loaded.of(code.function(self._entry, facts.carveout), self._leaves, facts.cooperative, code)
