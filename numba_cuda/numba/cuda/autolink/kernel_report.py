# SPDX-License-Identifier: BSD-2-Clause
"""Makes the report of a kernel."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

from numba.cuda import dispatcher as host_dispatcher
from numba.cuda.cudadrv.external_code.link.plan import PlannedInput

from .ahead_of_time import build, compute_capability
from .reports.collect import of_facts
from .reports.facts import facts_of
from .reports.report_class import Report


def report(kernel: Any, signature: Any = None, cc: Any = None) -> Report:
    """What the calls in *kernel* brought, how it was linked, and what came of it.

    Parameters
    ----------
    kernel:
        What ``cuda.jit`` made, or with a *signature* a Python function.
    signature:
        Build it for this signature now, as `build` does; no GPU is needed. Without one the report is of what is
        compiled already.
    cc:
        The compute capability, ``(9, 0)``, or a list of several. Default: that of the current GPU, or what the kernel
        is compiled for already.

    Raises
    ------
    TypeError
        If *kernel* is no kernel.
    ValueError
        Without a *signature*, if nothing is compiled yet, or for several signatures.
    """
    if signature is not None:
        wanted = cc if isinstance(cc, list) else [cc]
        return merged([build(kernel, signature, cc=each).report for each in wanted])
    compiled = _the_compiled(kernel)
    library = compiled._codelibrary
    if cc is None:
        capabilities = list(library._cubin_cache) or [library._ensure_cc(None)]
    else:
        capabilities = [compute_capability(each) for each in (cc if isinstance(cc, list) else [cc])]
    return of_library(library, compiled.signature.args, capabilities)


def _the_compiled(kernel: Any) -> Any:
    if not isinstance(kernel, host_dispatcher.CUDADispatcher):
        raise TypeError(
            f"report() without a signature takes a @cuda.jit kernel, got {type(kernel).__name__} {kernel!r}: pass the"
            ' signature to build it for, for example signature="void(float32[::1])"'
        )
    name = kernel.py_func.__name__
    if kernel.targetoptions.get("device"):
        raise TypeError(f"report() is of kernels, and {name} is a device function")
    overloads = list(kernel.overloads.values())
    if len(overloads) == 1:
        return overloads[0]
    if not overloads:
        raise ValueError(
            f"kernel {name} is not compiled yet: launch it, or pass the signature to build it for, for example"
            f' report({name}, "void(float32[::1])", cc=(9, 0))'
        )
    listed = "".join(f"\n  {_signature(each.signature.args)}" for each in overloads)
    raise ValueError(f"kernel {name} is compiled for {len(overloads)} signatures; pass the one that is meant:{listed}")


def merged(reports: Sequence[Report]) -> Report:
    """One report of a kernel's builds for several architectures."""
    builds = tuple(build for each in reports for build in each.builds)
    return dataclasses.replace(reports[0], builds=builds)


def of_library(library: Any, argtypes: Iterable[Any], capabilities: Iterable[Any]) -> Report:
    """The report of a compiled kernel, for compute capabilities; it is linked for those that it is not yet."""
    made = []
    for cc in capabilities:
        cubin = bytes(library.get_cubin(cc).code)
        facts = library.facts_before_pickling(cc) or facts_of(library, cc)
        made.append(of_facts(facts, _signature(argtypes), functools.partial(_planned, library, cc), cubin, "cubin"))
    return merged(made)


def _planned(library: Any, cc: Any) -> Iterable[PlannedInput]:
    try:
        inputs: Iterable[PlannedInput] = library.plan(cc).inputs
    except Exception:  # a file is gone meanwhile: its symbols are not shown
        return ()
    return inputs


def _signature(argtypes: Iterable[Any]) -> str:
    return f"({', '.join(map(str, argtypes))})"
