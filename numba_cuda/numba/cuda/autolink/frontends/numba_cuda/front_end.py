# SPDX-License-Identifier: BSD-2-Clause
"""How kernels of numba-cuda are built, reported and bound: a `FrontEnd` of `frontend_api.front_end`."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from numba import cuda
from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.formats.cubin import cubin_parameters
from numba.cuda.cudadrv.external_code.plan.link_plan import NRT, LinkError, LinkPlan, LinkRequest
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapabilityLike
from numba.cuda.dispatcher import CUDADispatcher, _Kernel

from numba_cuda_autolink.errors import FinishedKernelError
from numba_cuda_autolink.launch.driver import Device, bindings, call_driver
from numba_cuda_autolink.launch.loaded_kernel import Loaded
from numba_cuda_autolink.plain_types import place_leaves

from ...builds.result import EmulatedTexts
from ...compilation.context import compute_capability, without_device
from ...finished_kernels.saving import check_launchable
from ...frontend_api.front_end import BuildRequest
from ...frontend_api.launch_messages import not_a_kernel
from ...function_code.build_record import (
    BuildFacts,
    BuildRecord,
    FunctionRecord,
    LaunchFacts,
    callbacks,
    check_only_overload,
    given_options,
    kernel_parameters,
    parameter_names,
    record_build,
)
from ...protocol.callee import find_callee
from ...protocol.errors import HookError
from ...protocol.kernel_signatures import arguments_text, kernel_argument_types, normalize
from .activation import active as active
from .activation import unknown_option

_OF_BUILD = "build() and cuda.jit have"


def prepare(kernel: Any, signature: Any, request: BuildRequest) -> tuple[BuildRecord, LinkRequest | None]:
    """Do what `FrontEnd.prepare` says for *kernel*, a Python function or what ``cuda.jit`` made of one."""
    py_func, options = _function_and_options(kernel, request.jit_options)
    argtypes = kernel_argument_types(signature, py_func)
    parts = compute_capability(request.cc)
    if request.output != "cubin":
        options["lto"] = True
    with without_device(parts):
        compiled = _Kernel(py_func, argtypes, **options)
        library = compiled._codelibrary
        library.use_canonical_names()
        if request.entry_name is not None:
            library.rename_entry(request.entry_name)
        link = library.link_request(parts, request.output) if request.output != "ltoir" else None
        code = _code(library, parts, request.output) if link is None else b""
        plan, facts = library.plan(parts), library.facts(parts, request.output)
        record = _record(compiled, code, request.output, plan, facts)
        launch = dataclasses.replace(record.launch_facts, name=request.entry_name or py_func.__name__)
        texts = EmulatedTexts(partial(library.emulated_texts, parts), parts)
        given = _given(options)
        return dataclasses.replace(record, launch_facts=launch, emulated_texts=texts, options=given), link


def _how_to_build(given: Any) -> str:
    """Return what to do about what was *given* in place of a kernel."""
    if find_callee(given) is not None:
        return "pass a kernel that calls this object"
    return "decorate a function with @cuda.jit, and pass that, without calling it"


def check_options(options: Mapping[str, Any]) -> None:
    taken = inspect.signature(cuda.jit).parameters
    message = unknown_option(_OF_BUILD, (name for name in options if name not in taken), *taken)
    if message is not None:
        raise TypeError(message)


def _function_and_options(kernel: Any, jit_options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    options = dict(jit_options)
    if isinstance(kernel, CUDADispatcher):
        if (message := unknown_option("cuda.jit has", kernel.targetoptions, decorated=kernel.py_func)) is not None:
            raise TypeError(message)
        options = {**kernel.targetoptions, **jit_options}
        if "debug" in jit_options and "lto" not in jit_options:
            options.pop("lto", None)  # its default depends on debug
        kernel = kernel.py_func
    elif not callable(kernel) or not hasattr(kernel, "__code__"):
        raise TypeError(
            "build() expects a Python function or a @cuda.jit kernel\n"
            f"  got: {type(kernel).__name__}, {safe_repr(kernel)}\n"
            f"  what to do: {_how_to_build(kernel)}"
        )
    if options.get("device"):
        raise not_a_kernel(kernel.__name__)
    # cuda.jit fills in the defaults, and refuses options that contradict each other.
    options = {name: value for name, value in options.items() if name not in ("device", "cache")}
    targetoptions = dict(cuda.jit(kernel, **options).targetoptions)
    targetoptions["link"] = list(targetoptions.get("link") or ())
    if (message := unknown_option(_OF_BUILD, targetoptions, "cc", "output", "entry_name")) is not None:
        raise TypeError(message)
    return kernel, targetoptions


def _given(options: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    # ``opt`` counts as given where the environment has another default.
    return given_options(options, {**cuda.jit(lambda: None).targetoptions, "opt": True})


def _code(library: Any, cc: tuple[Any, ...], output: str) -> bytes:
    if output == "cubin":
        return bytes(library.get_cubin(cc=cc).code)
    return library.get_lto_ptx(cc=cc).encode() if output == "ptx" else bytes(library.get_ltoir(cc=cc))


def _record(compiled: Any, code: bytes, output: str, plan: LinkPlan, facts: BuildFacts) -> BuildRecord:
    """Return the record of a *compiled* kernel, which is linked as *plan* says to *code*, an *output*."""
    library = compiled._codelibrary
    launch = LaunchFacts(
        compiled.py_func.__name__,
        tuple(compiled.argument_types),
        parameter_names(compiled.py_func, len(compiled.argument_types)),
        compiled.debug,
        bool(compiled.extensions),
        compiled.cooperative,
        compiled.shared_memory_carveout,
        *callbacks(plan),
        any(NRT in planned.origins for planned in plan.inputs),
        tuple(variable for _, variable in plan.variables),
    )
    return record_build(library.function_code, code, output, _signature(compiled), plan, facts, launch)


def read_launched(kernel: Any, capabilities: Sequence[ComputeCapabilityLike | None]) -> list[BuildRecord]:
    """Do what `FrontEnd.read_launched` says. *kernel* is linked now for what it is not yet linked for."""
    compiled = _only_overload(kernel)
    library = compiled._codelibrary
    if list(capabilities) == [None]:
        targets = list(library._cubin_cache) or [library._ensure_cc(None)]
    else:
        targets = [compute_capability(each) for each in capabilities]
    given = _given(kernel.targetoptions)
    return [dataclasses.replace(_record_launched(compiled, each), options=given) for each in targets]


def _record_launched(compiled: Any, cc: tuple[Any, ...]) -> BuildRecord:
    library = compiled._codelibrary
    code = _code(library, cc, "cubin")
    facts = library.facts(cc)
    try:
        plan = library.plan(cc)
    except (LinkError, HookError):  # a file was removed since the kernel was linked: its symbols are not shown
        plan = LinkPlan(f"kernel {library.function_code.shown_name!r}", library.target_for(cc), (), (), ())
    return _record(compiled, code, "cubin", plan, facts)


def _only_overload(kernel: Any) -> Any:
    if not isinstance(kernel, CUDADispatcher):
        raise TypeError(
            f"report() without a signature expects a @cuda.jit kernel, got {type(kernel).__name__}\n"
            f"  object: {safe_repr(kernel)}\n"
            '  what to do: pass the signature to build it for, for example signature="void(float32[::1])"'
        )
    name = kernel.py_func.__name__
    if is_device_function(kernel):
        raise TypeError(
            f"{name} is a device function: its report needs a signature\n"
            f'  what to do: pass one, for example report({name}, "float32(float32)", cc=(9, 0))'
        )
    overloads = list(kernel.overloads.values())
    check_only_overload(name, [_signature(each) for each in overloads])
    return overloads[0]


def is_device_function(function: Any) -> bool:
    return isinstance(function, CUDADispatcher) and bool(function.targetoptions.get("device"))


@global_compiler_lock
def compile_device_function(function: Any, signature: Any, cc: ComputeCapabilityLike | None) -> FunctionRecord:
    """Compile a device function for *signature*, and return its record: it is not linked on its own. Raise `TypeError`
    if it does not return what the signature says."""
    argtypes, return_type = normalize(signature)
    parts = compute_capability(cc)
    with without_device(parts):
        compiled = function.compile_device(argtypes)
        library, returned = compiled.library, compiled.signature.return_type
        if return_type is not None and return_type != returned:
            name = function.py_func.__name__
            raise TypeError(f"{name} returns {returned}, but the signature returns {return_type}")
        code, facts = bytes(library.get_ltoir(cc=parts)), library.facts(parts, "ltoir")
        inputs = library.plan(parts).inputs
    types = arguments_text(argtypes)
    name, given = compiled.fndesc.llvm_func_name, _given(function.targetoptions)
    return FunctionRecord(code, name, "ltoir", types, inputs, facts, options=given)


def _signature(compiled: Any) -> str:
    return f"({', '.join(map(str, compiled.argument_types))})"


class CompiledCode:
    """The code of a kernel for arguments of one signature, which numba-cuda compiles and loads."""

    def __init__(self, kernel: CUDADispatcher, argtypes: tuple[Any, ...]):
        self.text = f"({', '.join(map(str, argtypes))})"
        self.parameters = kernel_parameters(parameter_names(kernel.py_func, len(argtypes)), argtypes)
        self._kernel = kernel.compile(argtypes)
        check_launchable(kernel.py_func.__name__, self._kernel)

    def load(self, device: Device) -> Loaded:
        """Load the code as numba-cuda does, which runs the setup callbacks and sets the carveout."""
        library = self._kernel.library
        self._kernel.bind()
        function = library.get_cufunc()
        places = cubin_parameters(bytes(library.get_cubin().code), function.name)
        leaves = place_leaves(self.parameters, places)
        if leaves is None:
            raise FinishedKernelError(f"the code of {function.name} takes other parameters than {self.text}")
        handle = call_driver(bindings().cuKernelGetFunction, bindings().CUkernel(int(function.kernel.handle)))
        return Loaded.of(handle, leaves, self._kernel.cooperative, self._kernel)


code_for_bind = CompiledCode
