# SPDX-License-Identifier: BSD-2-Clause
"""Call external CUDA device code from Numba-CUDA kernels: called objects bring their own code.

Importing this package (which importing ``numba.cuda`` does) makes numba-cuda ask every object that a kernel calls for
the code to link, through ``__numba_cuda_link__(*argtypes)``.

Public names:

- `SupportsLink`, `SupportsLinkKey`, `SupportsCall`, `LinkItem`: the hooks of objects, and what they may return.
- `DeviceCallable`, `Extern`, `device_method`, `cxx_type`, `symbol`: a base class for objects that have no Numba typing.
- `exact`, `by_reference`, `by_value`, `span`, `mdspan`: how arguments of such an object are passed, besides types.
- `cxx`: functions, types and constants of C++ libraries by name, without bindings: `CxxLibrary`, `CxxFunction`,
  `CxxType`.
- `compiled`: CUDA C++ compiled for the current target, and the lowered names of C++ expressions in it.
- `device_function`, `DeviceFunction`, `state`: Python functions that C++ calls.
- `CUDASource`, `Bitcode`, `Prebuilt`: CUDA C++ source with include paths, macros and options of its own; LLVM bitcode;
  device code that a package ships, built ahead of time for several architectures.
- `ProgramOptions`, `JitOptions`: types for annotations, of the options of C++ and of ``cuda.jit``.
- `Variable`: variables of device code that the host sets.
- `current_target`, `Target`, `ComputeCapability`: what code must fit, for a hook to read.
- `build`, `LinkedKernel`, `save`: finished kernels, built without a GPU, and files of them.
- `build_many`, `Job`, `BuildManyError`, `RayExecutor`: sets of kernels, built by many processes.
- `emulated`: kernels that run on the CPU, as they are linked, where there is no GPU.
- `write_header`: a finished kernel for C and C++ programs.
- `bind`: kernels that were compiled in this process, with the launch of finished kernels.
- `report`, `Report`: what each call linked, how the link went, and its result, as text, HTML, JSON or a graph.
- `cache`, `testing`: the cache on disk; for tests of objects with linkable code, without a GPU.
- `activate`, `deactivate`: attach to numba-cuda, and undo it.
- `CallError`, `HookError`, `CABIError`, `CxxError`, `CompileError`, `LinkError`, `LinkInputError`, `PrebuiltError`,
  `NotLinkableError`, `MissingSeamError`, `CacheMismatchError`, `CacheWarning`: every error and warning to catch.

Data flows one way: call site, answer of the object, link plan, cache key, cubin, report.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import Any

# Public names by the module, below numba.cuda, that defines them. Modules are imported when a name is first used.
_NAMES = {
    "autolink.frontends.numba_cuda.emulation": ("emulated",),
    "autolink.builds.ahead_of_time": ("build",),
    "autolink.frontend_api.jit_options": ("JitOptions",),
    "autolink.builds.result": ("LinkedKernel",),
    "autolink.builds.compiled_kernels": ("bind", "report"),
    "autolink.finished_kernels.saving": ("save",),
    "autolink.finished_kernels.c_header": ("write_header",),
    "autolink.compilation.context": ("current_target",),
    "autolink.conformance.records": ("NotLinkableError",),
    "autolink.cxx_by_name.classes": ("CxxType",),
    "autolink.cxx_by_name.functions": ("CxxFunction",),
    "autolink.cxx_by_name.library": ("CxxLibrary", "cxx"),
    "autolink.cxx_by_name.cxx_errors": ("CxxError",),
    "autolink.linkables.compiled_source": ("compiled",),
    "autolink.c_abi.c_types": ("CABIError", "cxx_type"),
    "autolink.c_abi.conversions": ("by_reference", "by_value", "exact", "mdspan", "span", "state"),
    "autolink.device_callable.base_class": ("DeviceCallable", "device_method"),
    "autolink.c_abi.extern": ("Extern", "symbol"),
    "autolink.device_functions.definition": ("DeviceFunction", "device_function"),
    "autolink.linkables.device_variables": ("Variable",),
    "autolink.frontends.numba_cuda.activation": ("MissingSeamError", "activate", "deactivate"),
    "autolink.linkables.prebuilt": ("Prebuilt", "PrebuiltError"),
    "autolink.protocol.errors": ("CallError", "HookError"),
    "autolink.linkables.hooks": ("LinkItem", "SupportsCall", "SupportsLink", "SupportsLinkKey"),
    "autolink.many_kernels.executors": ("RayExecutor",),
    "autolink.many_kernels.jobs": ("BuildManyError", "Job"),
    "autolink.many_kernels.stages": ("build_many",),
    "autolink.reports.report": ("Report",),
    "cudadrv.external_code.cache.settings": ("CacheWarning",),
    "cudadrv.external_code.cache.store": ("CacheMismatchError",),
    "cudadrv.external_code.compile.nvrtc": ("CompileError",),
    "cudadrv.external_code.inputs.kinds": ("Bitcode",),
    "cudadrv.external_code.inputs.cuda_source": ("CUDASource",),
    "cudadrv.external_code.inputs.link_input": ("LinkInputError",),
    "cudadrv.external_code.inputs.program_options": ("ProgramOptions",),
    "cudadrv.external_code.plan.link_plan": ("LinkError",),
    "cudadrv.external_code.platform.target": ("ComputeCapability", "Target"),
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names}
_MEANT = dict.fromkeys(("cpp", "cplusplus", "cu", "cuda"), "cxx")  # names that look like no other
_SUBMODULES = ("cache", "testing")
__all__ = sorted([*_WHERE, *_SUBMODULES])


def _name_elsewhere(name: str) -> str | None:
    """Return the name of numba-cuda that *name* is, whatever its case, or what else is meant by it; ``None`` where a
    name of this module is as near, which Python suggests, and for all else."""
    from numba import cuda

    if name.lower() in map(str.lower, __all__) or name[:1] == "_":
        return None
    of_cuda = {each.lower(): each for each in dir(cuda)}
    found = name if hasattr(cuda, name) else of_cuda.get(name.lower())
    return _MEANT.get(name.lower()) if found is None else f"numba.cuda.{found}"


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__version__":
        return importlib.import_module("numba_cuda_autolink").__version__
    if name not in _WHERE:
        if (meant := _name_elsewhere(name)) is not None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}; did you mean {meant}?")
        module = sys.modules[__name__]  # with which Python suggests names
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=module)
    try:
        value = getattr(importlib.import_module(f"numba.cuda.{_WHERE[name]}"), name)
    except Exception as error:
        from numba.cuda.core import config

        if not (isinstance(error, ImportError) and config.ENABLE_CUDASIM):
            _raise_damage(error)
            raise
        raise RuntimeError(
            f"autolink.{name} is about code for GPUs, which the simulator (NUMBA_ENABLE_CUDASIM=1) does not make"
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__, "__version__"})


def _make_kernel_cache(function: Any, options: Any) -> Any:
    return importlib.import_module(f"{__name__}.kernel_cache.dispatcher_cache").KernelCache(function, options)


def _raise_damage(error: Exception) -> None:
    """Raise `ImportError` with what to do, if files of this project are missing or have changed. An *error* that says
    what to do has another cause."""
    if "what to do: " in f"{error}":
        return
    if (damage := importlib.import_module("_numba_cuda_autolink_command").find_damage()) is not None:
        what, fix = damage
        text = f"numba-cuda-autolink: {what}\n  {type(error).__name__}: {error}\n  what to do: {fix}"
        raise ImportError(text) from error


def _check_versions() -> None:
    """Raise `ImportError` if numba-cuda is not installed, as where this project was installed alone, or cuda-core is
    older than this project requires, as with an old numba-cuda."""
    try:
        from numba.cuda.core.config import ENABLE_CUDASIM

        if not ENABLE_CUDASIM:
            from cuda.core.utils import InMemoryProgramCache  # noqa: F401  # numba-cuda has imported it
    except ImportError as error:
        from numba_cuda_autolink.failed_imports import explain

        raise ImportError(explain(error, "numba-cuda")) from error


def _check_libraries() -> None:
    """Raise `ImportError` if the file of a library that compiles or links kernels is damaged: numba-cuda loads it into
    this process, which would end it."""
    from cuda.bindings import __version__ as bindings

    from numba_cuda_autolink.library_files import find_damaged

    if found := find_damaged(bindings.partition(".")[0]):
        from numba_cuda_autolink.installed_packages import package_of_file
        from numba_cuda_autolink.pip_commands import reinstall_command

        path, fault = found
        package = package_of_file(path)
        todo = reinstall_command(package) if package else "install the package that it is of again"
        raise ImportError(f"{path} {fault}\n  what to do: {todo}; numba-cuda-autolink doctor checks all packages")


def _start() -> None:
    _check_versions()
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM:
        from numba_cuda_autolink.short_tracebacks import explain_uncaught

        explain_uncaught(None)
        return
    _check_libraries()
    from .frontends.numba_cuda import activation

    activation.register_kernel_cache(_make_kernel_cache)
    if os.environ.get("NUMBA_CUDA_AUTOLINK") == "0":
        return
    try:
        activation.activate()
    except activation.MissingSeamError as error:
        warnings.warn(str(error), stacklevel=2)
    if os.environ.get("NUMBA_CUDA_AUTOLINK_EMULATE", "0").strip() != "0":
        importlib.import_module(f"{__name__}.frontends.numba_cuda.emulated_driver").activate()
    if os.environ.get("NUMBA_CUDA_AUTOLINK_CAPTURE"):
        importlib.import_module(f"{__name__}.many_kernels.job_list").start_capture()
    hook = importlib.import_module("numba_cuda_autolink.import_hook")
    hook.install()  # where Python's start did not
    hook.activate_in_mlir()


def _start_or_explain() -> None:
    try:
        _start()
    except Exception as error:
        _raise_damage(error)
        raise


_start_or_explain()
