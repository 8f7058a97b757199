# SPDX-License-Identifier: BSD-2-Clause
"""The report of a kernel, for one or several architectures."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_repr
from numba.cuda.cudadrv.external_code.plan.link_plan import PlannedInput
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapabilityLike
from numba.cuda.dispatcher import CUDADispatcher

from ..compilation.context import without_device
from ..frontend_api.front_end import vocabulary_of_kernel
from ..protocol.kernel_signatures import normalized
from ..reports.collect import of_facts
from ..reports.report import Report
from .ahead_of_time import LinkedKernel, build, compute_capability


def report(
    kernel: Any,
    signature: Any = None,
    cc: ComputeCapabilityLike | list[ComputeCapabilityLike] | None = None,
    *,
    listings: bool = False,
) -> Report:
    """Return a report of what the calls in *kernel* brought, how it was linked, and the result.

    Parameters
    ----------
    kernel:
        A kernel made by ``cuda.jit``, or with a *signature* a Python function, or a device function, whose report shows
        what it brings to the kernels that call it.
    signature:
        The signature to build the kernel for now, as `build` does; no GPU is needed. Without one, the report describes
        the kernel as it is already compiled.
    cc:
        The compute capability, ``(9, 0)``, or a list of several. Default: that of the current GPU, or those that the
        kernel is compiled for already.
    listings:
        Whether the report shows what the code became: PTX and, if ``nvdisasm`` is installed, machine code. Compile with
        ``lineinfo=True`` to see it beside the lines of Python and C++ that it comes from.

    Raises `TypeError` if *kernel* is not a kernel, or is a device function that does not return what the *signature*
    says; without a *signature* `ValueError`, if it is not compiled yet, or is compiled for several signatures.
    """
    capabilities: list[Any] = cc if isinstance(cc, list) else [cc]
    if signature is None and (builds := vocabulary_of_kernel(kernel).builds) is not None:
        launched = builds.launched(kernel)
        return _of_linked(launched) if listings else launched.report
    if signature is not None and isinstance(kernel, CUDADispatcher) and kernel.targetoptions.get("device"):
        reports = [_of_device_function(kernel, signature, compute_capability(each)) for each in capabilities]
    elif signature is not None:
        linked = [build(kernel, signature, cc=each) for each in capabilities]
        reports = [_of_linked(each) if listings else each.report for each in linked]
    else:
        compiled = _only_overload(kernel)
        library = compiled._codelibrary
        if cc is None:
            targets = list(library._cubin_cache) or [library._ensure_cc(None)]
        else:
            targets = [compute_capability(each) for each in capabilities]
        reports = [_of_library(library, _signature(compiled), each, listings) for each in targets]
    return dataclasses.replace(reports[0], builds=tuple(build for each in reports for build in each.builds))


def _only_overload(kernel: Any) -> Any:
    if not isinstance(kernel, CUDADispatcher):
        raise TypeError(
            f"report() without a signature expects a @cuda.jit kernel, got {type(kernel).__name__}\n"
            f"  object: {safe_repr(kernel)}\n"
            '  what to do: pass the signature to build it for, for example signature="void(float32[::1])"'
        )
    name = kernel.py_func.__name__
    if kernel.targetoptions.get("device"):
        raise TypeError(
            f"{name} is a device function: its report needs a signature\n"
            f'  what to do: pass one, for example report({name}, "float32(float32)", cc=(9, 0))'
        )
    overloads = list(kernel.overloads.values())
    if len(overloads) == 1:
        return overloads[0]
    if not overloads:
        raise ValueError(
            f"kernel {name} is not compiled yet\n  what to do: launch it, or pass the signature to build it for, for"
            f' example report({name}, "void(float32[::1])", cc=(9, 0))'
        )
    listed = "".join(f"\n  {_signature(each)}" for each in overloads)
    raise ValueError(f"kernel {name} is compiled for {len(overloads)} signatures; pass one of them:{listed}")


@global_compiler_lock
def _of_device_function(dispatcher: Any, signature: Any, cc: tuple[int, int, str]) -> Report:
    """Return the report of a device function compiled for *signature*: it is not linked on its own."""
    argtypes, return_type = normalized(signature)
    with without_device(cc):
        compiled = dispatcher.compile_device(argtypes)
        library, returned = compiled.library, compiled.signature.return_type
        if return_type is not None and return_type != returned:
            name = dispatcher.py_func.__name__
            raise TypeError(f"{name} returns {returned}, but the signature returns {return_type}")
        code, facts = bytes(library.get_ltoir(cc=cc)), library.facts(cc, "ltoir")
        inputs = library.plan(cc).inputs
    types = f"({', '.join(map(str, argtypes))})"
    made = of_facts(facts, types, lambda: inputs, code, "ltoir")
    (build,) = made.builds
    link = dataclasses.replace(build.link, why="left to the kernels that call it")
    named = dataclasses.replace(build, entry_name=compiled.fndesc.llvm_func_name, link=link)
    return dataclasses.replace(made, builds=(named,))


def _of_linked(linked: LinkedKernel) -> Report:
    """Return the report of a kernel that was built ahead of time, with listings."""
    what = linked._facts, linked.signature, lambda: linked.inputs, linked.code, linked.output
    return of_facts(*what, listings=True)


def _of_library(library: Any, signature: str, cc: Any, listings: bool) -> Report:
    """Return the report of a compiled kernel, which is linked for *cc* now if it is not yet."""
    cubin = bytes(library.get_cubin(cc).code)
    facts = library.facts_before_pickling(cc) or library.facts(cc)
    return of_facts(facts, signature, functools.partial(_planned, library, cc), cubin, "cubin", listings=listings)


def _planned(library: Any, cc: Any) -> Iterable[PlannedInput]:
    try:
        return tuple(library.plan(cc).inputs)
    except Exception:  # a file was removed since the build: its symbols are not shown
        return ()


def _signature(compiled: Any) -> str:
    return f"({', '.join(map(str, compiled.signature.args))})"
