# SPDX-License-Identifier: BSD-2-Clause
"""numba-cuda with the emulated driver: every seam between the two.

numba-cuda, cuda.core and cuda.bindings find the driver by its name, and call it as any other. What is left: kernels are
linked to PTX, arrays have the names of parameters, what a kernel raises in the emulator reaches its caller, numba-cuda
looks for the driver again, and does not warn of grids that leave parts of a GPU idle.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from cuda.bindings.nvjitlink import nvJitLinkError
from cuda.bindings.nvvm import nvvmError
from cuda.core import ObjectCode
from numba.cuda import types
from numba.cuda.core import config
from numba.cuda.core.errors import NumbaDebugInfoWarning
from numba.cuda.cudadrv import devices, driver
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkError

from numba_cuda_autolink.emulated_driver import activation
from numba_cuda_autolink.emulated_driver.c_functions import raise_failures
from numba_cuda_autolink.emulated_driver.device import settings
from numba_cuda_autolink.emulator import memory

from ...compilation.context import current_state, inside
from ...frontend_api.launch_messages import named_arguments
from ...frontend_api.seams import Seams
from ...function_code.calls import options_of_kernel
from .activation import target_of_options
from .code_library import LinkingCodeLibrary

_seams = Seams("numba-cuda")
_in_place_of = _seams.in_place_of
_with_lines = ContextVar("_with_lines", default=True)
_parameters: ContextVar[Mapping[int, str]] = ContextVar("_parameters", default=MappingProxyType({}))
_DATA = 4  # the place of an array's address among what is passed for it
_before: dict[str, Any] = {}  # what numba-cuda knew of a driver
# What arrays, streams, events and modules call when they are destroyed, which may be later.
_DESTROY = ("cuMemFree", "cuMemFreeHost", "cuMemHostUnregister", "cuStreamDestroy", "cuEventDestroy", "cuLibraryUnload")


@_in_place_of("numba.cuda.codegen:CUDACodeLibrary.get_cufunc")
def _get_function(original: Any, library: Any) -> Any:
    """Load PTX in place of a cubin."""
    context = devices.get_context()
    found = library._cufunc_cache.get(context.device.id)
    if found is None:
        code, name = _code_and_name(library)
        library.emulated_code = code
        callbacks = library._setup_functions, library._teardown_functions
        module = raise_failures(context.create_module_image, code, *callbacks)
        found = library._cufunc_cache[context.device.id] = module.get_function(name)
    return found


def _code_and_name(library: Any) -> tuple[ObjectCode, str]:
    """Return the PTX of a kernel for the current device and its name there, and set the callbacks of its module."""
    if not isinstance(library, LinkingCodeLibrary):  # numba-cuda's own, which its cache restores
        library = LinkingCodeLibrary.restore(**library._reduce_states())
    cc = library._ensure_cc(None)
    library.use_canonical_names()
    plan = library.plan(cc)
    library._setup_functions, library._teardown_functions = list(plan.setup_callbacks), list(plan.teardown_callbacks)
    return ObjectCode.from_ptx("\n".join(library.emulated_texts(cc)).encode(), name=library.name), library._entry_name


@_in_place_of("numba.cuda.memory_management.nrt:_Linker")
def _runtime_linker(original: Any, *args: Any, **options: Any) -> Any:
    linker = original(*args, **options)
    linker.complete = lambda: ObjectCode.from_ptx(linker.get_linked_ptx())
    return linker


@_in_place_of("numba.cuda.dispatcher:CUDADispatcher.compile")
def _compile_kernel(original: Any, dispatcher: Any, signature: Any) -> Any:
    """Compile what is launched with the lines of its source, which errors show; without, if NVVM or nvJitLink refuse
    it with them, as they do some kernels of numba-cuda, and all with NRT."""
    if not _compiles_with_lines():
        return original(dispatcher, signature)
    with contextlib.suppress(nvvmError, nvJitLinkError, LinkError), inside(has_lines=True):
        kernel = original(dispatcher, signature)
        if not isinstance(kernel._codelibrary, LinkingCodeLibrary):
            kernel._codelibrary = _with_its_python(kernel, dispatcher)
        return kernel
    token = _with_lines.set(False)
    try:
        return original(dispatcher, signature)
    finally:
        _with_lines.reset(token)


def _with_its_python(kernel: Any, dispatcher: Any) -> LinkingCodeLibrary:
    """Return the code of a *kernel* that numba-cuda's cache restored, as it was when it was compiled."""
    library = LinkingCodeLibrary.restore(**kernel._codelibrary._reduce_states())
    cc = devices.get_context().device.compute_capability
    options = {**dispatcher.targetoptions, "cc": cc, "lto": library._lto, "lineinfo": not kernel.debug}
    code = library.function_code
    code.target = target_of_options(options, for_device=True)
    code.calls.options = options_of_kernel(dispatcher.targetoptions)
    code.calls.note_compiled(dispatcher.py_func, kernel.argument_types)
    return library


def _compiles_with_lines() -> bool:
    return _with_lines.get() and current_state().cc is None and not getattr(config, "CUDA_ENABLE_NRT", False)


@_in_place_of("numba.cuda.dispatcher:compile_cuda")
def _compile(original: Any, *args: Any, **options: Any) -> Any:
    if not _compiles_with_lines() or options["debug"]:
        return original(*args, **options)
    with warnings.catch_warnings():  # nobody asked for the lines of what has no source
        warnings.simplefilter("ignore", NumbaDebugInfoWarning)
        return original(*args, **{**options, "lineinfo": True})


@_in_place_of("numba.cuda.dispatcher:_LaunchConfiguration.__call__")
def _launch(original: Any, configuration: Any, *args: Any, **named: Any) -> Any:
    arguments = named_arguments(configuration.dispatcher.py_func.__code__.co_varnames, args)
    token = _parameters.set({id(value): name for value, name in arguments})
    try:
        return raise_failures(original, configuration, *args, **named)
    finally:
        _parameters.reset(token)


@_in_place_of("numba.cuda.dispatcher:_Kernel._prepare_args")
def _prepare_argument(original: Any, kernel: Any, numba_type: Any, value: Any, *more: Any) -> Any:
    """Let errors name arrays as the kernel does."""
    *_, prepared = more
    number = len(prepared)
    original(kernel, numba_type, value, *more)
    if isinstance(numba_type, types.Array) and (name := _parameters.get().get(id(value))):
        memory.name(int(getattr(pointer := prepared[number + _DATA], "value", pointer)), name)


@_in_place_of("numba.cuda.memory_management.nrt:launch")
def _launch_runtime(original: Any, *args: Any) -> Any:
    return raise_failures(original, *args)


_ALSO_NEEDED = (
    "numba.cuda.cudadrv.driver:driver.is_initialized",
    "numba.cuda.cudadrv.driver:driver.initialization_error",
    "numba.cuda.cudadrv.driver:Driver.get_device_count",
    "numba.cuda.cudadrv.devices:_DeviceList.lst",
)


def activate() -> None:
    """Attach numba-cuda to the emulated driver, which is started. Do nothing if it is, or if CUDA is disabled.

    Raises `MissingSeamError` if the installed numba-cuda lacks a name to replace. Nothing is replaced then.
    """
    if _seams.active or config.DISABLE_CUDA:
        return
    _seams.replace(_ALSO_NEEDED)
    state = vars(driver.driver)
    _before.update(state)
    for name in settings.zeros_of_config():
        _seams.set(config, name, 0)
    state.update(is_initialized=False, initialization_error=None, devices=type(state["devices"])())
    type(devices.gpus).lst.fget.cache_clear()


def deactivate() -> None:
    """Detach it: numba-cuda has the driver that it had before."""
    if not _seams.active:
        return
    _seams.restore()
    state = vars(driver.driver)
    kept = {name: getattr(driver.driver, name) for name in _DESTROY}
    state.clear()
    state.update(kept)
    state.update(_before)
    _before.clear()
    type(devices.gpus).lst.fget.cache_clear()


def active() -> bool:
    return _seams.active and activation.is_active()


SEAMS = _seams.functions
