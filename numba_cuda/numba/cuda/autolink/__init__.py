# SPDX-License-Identifier: BSD-2-Clause
"""Call external CUDA device code from Numba-CUDA kernels: called objects bring their own code.

Importing this package (which importing ``numba.cuda`` does) makes numba-cuda ask every object that a kernel calls for
the code to link, through ``__numba_cuda_link__(*argtypes)``.

Public names:

- `DeviceCallable`, `Extern`, `device_method`, `cxx_type`: a base class for objects that have no Numba typing.
- `CUDASource`: CUDA C++ source with its own include paths, macros and options.
- `Bitcode`: LLVM bitcode.
- `Prebuilt`: device code that a package brings, built ahead of time for several architectures.
- `current_target`, `Target`: what code is wanted, for a hook to read.
- `build`, `LinkedKernel`: finished kernels with no GPU at hand.
- `report`, `Report`: what calls brought, how it was linked, and what came of it, as text, HTML, JSON or a graph.
- `cache`: the cache on disk.
- `testing`: `check_linkable`, a conformance check for objects with linkable code.
- `activate`, `deactivate`: attach to numba-cuda, and undo it.

How data flows, and which module does what:

=====================  ===============================================================================
``callsites``          which objects the calls of a typed function reach
``protocol``           asks an object for its code, once per signature and target
``passes``             when: once types are final, and while lowering
``library``            what a function needs linked, travelling with it to the kernel
``canonical``          names that do not depend on what was compiled before
``alignment``          the alignment of arrays that external code gets pointers to
``cudadrv.link_*``     link inputs (``link_formats``, ``link_checks``: what their headers tell; ``cubin_tables``),
                       the plan of a link, its symbols (``link_definitions``, ``link_signatures``,
                       ``cxx_names``), running it, saying what went wrong (``link_explain``,
                       ``link_errors``, ``compile_failure``, ``toolkit_missing``), and trying it in a
                       child process (``link_trial``)
``cudadrv.cache_*``    the store of what was built; ``cache`` shows and clears it
``cudadrv.program_cache``  CUDA C++ compiled once: ``cuda_source``, ``cuda_compile``, ``nvrtc_call``, ``batching`` and
                       ``compile_jobs`` compile it, ``header_scan``, ``header_macros``, ``headers`` and ``file_state``
                       tell whether a header changed; ``toolkit`` tells builds of the CUDA libraries apart
``cudadrv.bitcode_*``  LLVM bitcode compiled once (``bitcode_child`` in a process of its own); ``compile_input``
                       compiles either
``stored_answers``     what objects with a link key returned before, in whichever process
``kernel_cache``       ``@cuda.jit(cache=True)`` with external code: ``kernel_files``, ``kernel_record`` (what a kernel
                       was made of), ``reachable`` (the objects that it reaches), ``fingerprint``,
                       ``code_fingerprint``, ``declared`` and ``restored``
``call_graph``         by which functions a kernel gets to its call sites
``reports``            what was built, to be read: a package with a map of its own
``cudadrv.progress``   what a slow build is doing, in a terminal
``target``             what code is wanted; ``prebuilt`` chooses among what a package brings
``ahead_of_time``      building without a GPU
``errors``             errors at call sites
``install``            every seam with numba-cuda
``commands``           the command line: a package with a map of its own
``testing``            `check_linkable`, for library authors' tests; ``conformance`` does the checking
``device_callable``    the base class, on the public protocol alone, as a third party's would be, with
                       ``extern`` (which C function a call means), ``cabi`` (C types and layouts),
                       ``call_arguments``, ``callable_types``, ``callable_attributes``, ``constants``,
                       ``callable_lowering`` and, for the simulator, ``simulation``
=====================  ===============================================================================
"""

from __future__ import annotations

import importlib
import os
from typing import Any

_WHERE = {
    "Bitcode": "numba.cuda.cudadrv.external_code.inputs.bitcode",
    "CUDASource": "numba.cuda.cudadrv.external_code.inputs.cuda_source",
    "DeviceCallable": "numba.cuda.autolink.device_callable.objects",
    "Extern": "numba.cuda.autolink.device_callable.extern",
    "LinkedKernel": "numba.cuda.autolink.ahead_of_time",
    "Prebuilt": "numba.cuda.autolink.prebuilt",
    "Report": "numba.cuda.autolink.reports.report_class",
    "Target": "numba.cuda.cudadrv.external_code.target",
    "activate": "numba.cuda.autolink.frontends.numba_cuda",
    "build": "numba.cuda.autolink.ahead_of_time",
    "current_target": "numba.cuda.autolink.compilation",
    "cxx_type": "numba.cuda.autolink.device_callable.c_abi",
    "deactivate": "numba.cuda.autolink.frontends.numba_cuda",
    "device_method": "numba.cuda.autolink.device_callable.objects",
    "report": "numba.cuda.autolink.kernel_report",
}
_SUBMODULES = ("cache", "testing")
__all__ = sorted([*_WHERE, *_SUBMODULES])


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(_WHERE[name]), name)
    except ImportError as error:
        from numba.cuda.core import config

        if not config.ENABLE_CUDASIM:
            raise
        raise RuntimeError(
            f"autolink.{name} is about code for GPUs, which the simulator (NUMBA_ENABLE_CUDASIM=1) does not make"
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_SUBMODULES})


def _start() -> None:
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM or os.environ.get("NUMBA_CUDA_AUTOLINK") == "0":
        return
    from .frontends import numba_cuda

    try:
        numba_cuda.activate()
    except numba_cuda.MissingSeamError as error:
        import warnings

        warnings.warn(str(error), stacklevel=2)


_start()
