# SPDX-License-Identifier: BSD-2-Clause
"""Every seam between this project and numba-cuda: the only module that assigns to numba-cuda's internals.

`activate` checks that all seams are there before it touches any, does nothing the second time, and `deactivate` puts
everything back.
"""

from __future__ import annotations

import functools
import importlib
import types as pytypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.external_code import progress
from numba.cuda.cudadrv.external_code.target import ComputeCapability, Target

from ..compilation import cc_without_device, compilation, compiling

# What the replacements need beyond `target` is imported when something is compiled: importing numba.cuda stays quick.


class MissingSeamError(ImportError):
    """The installed numba-cuda lacks something that this project attaches to."""


@dataclass(frozen=True)
class Seam:
    """One attribute of numba-cuda that is replaced: ``module:Class.attribute`` and what makes the replacement."""

    path: str
    replacement: Callable[[Any], Any]

    def owner(self) -> tuple[Any, str]:
        """The object that has the attribute, and the attribute's name."""
        module, _, attribute = self.path.partition(":")
        owner: Any = importlib.import_module(module)
        *parents, name = attribute.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        return owner, name


def _library_class(host: Any) -> Any:
    def make_library(*args: Any, **kwargs: Any) -> Any:
        from ..compiling.code_library import LinkingCodeLibrary

        return LinkingCodeLibrary(*args, **kwargs)

    return staticmethod(make_library)


def _external_library_class(host: Any) -> Any:
    def make_library(*args: Any, **kwargs: Any) -> Any:
        from ..compiling.declared_functions import LinkingExternalLibrary

        return LinkingExternalLibrary(*args, **kwargs)

    return make_library


def _lowering_pipeline(host: Any) -> Any:
    """Ask called objects when types are final; lower with our lowering class."""

    @functools.wraps(host)
    def define_cuda_lowering_pipeline(self: Any, state: Any) -> Any:
        from numba.cuda.compiler import CUDANativeLowering

        from ..compiling.passes import AskCallees, LinkingNativeLowering

        manager = host(self, state)
        manager.passes = [
            (AskCallees, "ask called objects for linkable code"),
            *(
                (LinkingNativeLowering if implementation is CUDANativeLowering else implementation, description)
                for implementation, description in manager.passes
            ),
        ]
        return manager

    return define_cuda_lowering_pipeline


def _compile_for_device(host: Any) -> Any:
    """Kernels and device functions of dispatchers are linked for a GPU, architecture-specific where there is that."""

    @functools.wraps(host)
    def compile_cuda(*args: Any, **options: Any) -> Any:
        function = getattr(args[0], "__name__", "a function")
        with compiling(_target(options, for_device=True)), progress.step(f"compiling {function}"):
            compiled = host(*args, **options)
        if isinstance(compiled.library, _library().LinkingCodeLibrary):
            compiled.library.expect_search()
        return compiled

    return compile_cuda


def _library() -> Any:
    from ..compiling import code_library as library

    return library


def _compile(host: Any) -> Any:
    """``cuda.compile`` and the like compile for what they are told."""

    @functools.wraps(host)
    def compile_cuda(*args: Any, **options: Any) -> Any:
        with compiling(_target(options, for_device=False)):
            return host(*args, **options)

    return compile_cuda


def _target(options: dict[str, Any], for_device: bool) -> Target:
    capability = ComputeCapability.parse(options["cc"])
    without_device = cc_without_device()
    if for_device and without_device is not None:
        capability = ComputeCapability(*without_device)
    elif for_device:
        capability = capability.as_launched
    debug = bool(options.get("debug"))
    lto = options.get("lto")
    if lto is None:
        from numba.cuda.cudadrv.driver import _have_nvjitlink

        # A device function has no say in how its kernel is linked: assume what kernels do by default.
        lto = (_have_nvjitlink() and not debug) if for_device else "gen-lto" in (options.get("nvvm_options") or {})
    return Target(
        capability,
        lto=bool(lto),
        debug=debug,
        lineinfo=bool(options.get("lineinfo")),
        fastmath=bool(options.get("fastmath")),
        max_registers=options.get("max_registers") or None,
    )


def _current_device(host: Any) -> Any:
    """Compile for the compute capability that `build` asks for, with or without a GPU."""

    @functools.wraps(host)
    def get_current_device() -> Any:
        cc = cc_without_device()
        return host() if cc is None else pytypes.SimpleNamespace(compute_capability=cc[:2])

    return get_current_device


def _magic_tuple(host: Any) -> Any:
    """Cache kernels that are compiled without a GPU by the compute capability that they are compiled for."""

    @functools.wraps(host)
    def magic_tuple(self: Any) -> Any:
        cc = cc_without_device()
        if cc is None:
            return host(self)
        from numba.cuda.cudadrv.runtime import runtime

        return runtime.get_version(), cc

    return magic_tuple


def _bind(host: Any) -> Any:
    """Without a GPU, link a compiled kernel and do not load it."""

    @functools.wraps(host)
    def bind(self: Any) -> None:
        cc = cc_without_device()
        if cc is None:
            host(self)
        else:
            self._codelibrary.get_cubin(cc)

    return bind


def _compile_device(host: Any) -> Any:
    """Keep device functions compiled by `build` apart from those compiled for the current GPU."""

    @functools.wraps(host)
    def compile_device(self: Any, *args: Any, **kwargs: Any) -> Any:
        from ..ahead_of_time import isolate

        isolate(self)
        return host(self, *args, **kwargs)

    return compile_device


def _resolve_value_type(host: Any) -> Any:
    """Remember which objects with linkable code were given which type."""

    @functools.wraps(host)
    def resolve_value_type(self: Any, value: Any) -> Any:
        numba_type = host(self, value)
        if compilation() is not None:
            from ..protocol.call_sites import note_objects

            note_objects(numba_type, value)
        return numba_type

    return resolve_value_type


def _get_function(host: Any) -> Any:
    """Attach the code of objects that only an intrinsic asks for."""

    @functools.wraps(host)
    def get_function(self: Any, func_type: Any, signature: Any, *args: Any, **kwargs: Any) -> Any:
        if compilation() is not None:
            from ..compiling.passes import attach_requested

            attach_requested(self, func_type, signature)
        return host(self, func_type, signature, *args, **kwargs)

    return get_function


def _enable_caching(host: Any) -> Any:
    """Cache kernels with external code too."""

    @functools.wraps(host)
    def enable_caching(self: Any) -> None:
        if self.targetoptions.get("device"):
            host(self)
            return
        from ..kernel_cache.dispatcher_cache import KernelCache

        self._cache = KernelCache(self.py_func, self.targetoptions)

    return enable_caching


def _declare_device_function(host: Any) -> Any:
    """Remember what declared functions link."""

    @functools.wraps(host)
    def declare_device_function(
        name: Any, restype: Any, argtypes: Any, link: Any, use_cooperative: Any, abi: Any
    ) -> Any:
        from ..compiling.declared_functions import remember

        template = host(name, restype, argtypes, link, use_cooperative, abi)
        remember(template.key, link, use_cooperative, abi)
        return template

    return declare_device_function


def _reduce_extern_function(host: Any) -> Any:
    """Pickle declared functions so that they can be called where they are unpickled."""

    def __reduce__(self: Any) -> Any:
        from ..compiling.declared_functions import reduce_function

        return reduce_function(self)

    return __reduce__


SEAMS = (
    Seam("numba.cuda.codegen:JITCUDACodegen._library_class", _library_class),
    Seam("numba.cuda.codegen:JITCUDACodegen.magic_tuple", _magic_tuple),
    Seam("numba.cuda.compiler:ExternalCodeLibrary", _external_library_class),
    Seam("numba.cuda.compiler:CUDACompiler.define_cuda_lowering_pipeline", _lowering_pipeline),
    Seam("numba.cuda.compiler:compile_cuda", _compile),
    Seam("numba.cuda.compiler:ExternFunction.__reduce__", _reduce_extern_function),
    Seam("numba.cuda.decorators:declare_device_function", _declare_device_function),
    Seam("numba.cuda.dispatcher:compile_cuda", _compile_for_device),
    Seam("numba.cuda.dispatcher:get_current_device", _current_device),
    Seam("numba.cuda.dispatcher:_Kernel.bind", _bind),
    Seam("numba.cuda.dispatcher:CUDADispatcher.compile_device", _compile_device),
    Seam("numba.cuda.dispatcher:CUDADispatcher.enable_caching", _enable_caching),
    Seam("numba.cuda.target:CUDATypingContext.resolve_value_type", _resolve_value_type),
    Seam("numba.cuda.target:CUDATargetContext.get_function", _get_function),
)
# What is used of numba-cuda beyond the seams themselves.
_ALSO_NEEDED = (
    "numba.cuda.codegen:CUDACodeLibrary._reduce_states",
    "numba.cuda.codegen:CUDACodeLibrary.get_cubin",
    "numba.cuda.codegen:CUDACodeLibrary._ensure_cc",
    "numba.cuda.compiler:CUDANativeLowering.lowering_class",
    "numba.cuda.cudadrv.linkable_code:LinkableCode",
    "numba.cuda.cudadrv.nvrtc:_get_nvrtc_version",
    "numba.cuda.dispatcher:CUDACache._load_overload",
    "numba.cuda.dispatcher:CUDACache._save_overload",
    "numba.cuda.lowering:CUDALower.lower_call",
    "numba.cuda.memory_management.nrt:NRT_LIBRARY",
)

_undo: list[tuple[Any, str, bool, Any]] = []


def activate() -> None:
    """Make numba-cuda ask called objects for their code. Does nothing if it already does.

    Raises
    ------
    MissingSeamError
        If the installed numba-cuda is not one that this project knows how to attach to; it is left as it is.
    """
    if _undo:
        return
    places = [_found(seam) for seam in SEAMS]
    for path in _ALSO_NEEDED:
        owner, name = _found(Seam(path, lambda host: host))
    replacements = [seam.replacement(getattr(owner, name)) for seam, (owner, name) in zip(SEAMS, places, strict=True)]
    for (owner, name), replacement in zip(places, replacements, strict=True):
        own = name in vars(owner)
        _undo.append((owner, name, own, vars(owner).get(name)))
        setattr(owner, name, replacement)


def deactivate() -> None:
    """Put numba-cuda back as it was. Kernels that are compiled already keep working."""
    while _undo:
        owner, name, own, original = _undo.pop()
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)


def active() -> bool:
    """Whether numba-cuda asks called objects for their code."""
    return bool(_undo)


def _found(seam: Seam) -> tuple[Any, str]:
    try:
        owner, name = seam.owner()
        getattr(owner, name)
    except (ImportError, AttributeError) as error:
        from importlib.metadata import version

        raise MissingSeamError(
            f"numba-cuda-autolink cannot attach to numba-cuda {version('numba-cuda')}: it has no {seam.path}. Called"
            " objects are not asked for their code; everything else in numba-cuda works as before. Install a"
            " numba-cuda version that this numba-cuda-autolink supports, or set NUMBA_CUDA_AUTOLINK=0"
        ) from error
    return owner, name
