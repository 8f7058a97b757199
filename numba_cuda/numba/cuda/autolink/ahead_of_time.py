# SPDX-License-Identifier: BSD-2-Clause
"""Building finished kernels ahead of time, on machines that need no GPU and no driver."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numba import cuda
from numba.cuda import dispatcher as host_dispatcher
from numba.cuda.core import config, sigutils
from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.cudadrv import nvrtc
from numba.cuda.cudadrv.external_code.link.errors import LinkError
from numba.cuda.cudadrv.external_code.link.plan import PlannedInput
from numba.cuda.cudadrv.external_code.target import split_cc
from numba.cuda.cudadrv.external_code.toolkit import why_missing

from .compilation import cc_without_device, without_device
from .protocol.call_sites import CallSite
from .reports.facts import BuildFacts, facts_of

if TYPE_CHECKING:
    from .reports.records import Report

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_OUTPUTS = ("cubin", "ptx", "ltoir")


@dataclass(frozen=True)
class LinkedKernel:
    """A kernel that was built ahead of time.

    Attributes
    ----------
    code:
        The linked cubin; for ``output="ptx"`` the linked PTX; for ``output="ltoir"`` the kernel's own LTO-IR.
    entry_name:
        The kernel's name in the code, to be found by ``cuModuleGetFunction`` or ``cuda.core``'s ``get_kernel``.
    cc:
        What it was built for: ``(major, minor)`` or ``(major, minor, suffix)``.
    output:
        ``"cubin"``, ``"ptx"`` or ``"ltoir"``.
    call_sites:
        The calls that brought code, in order of first use.
    inputs:
        The code that was linked beside the kernel's own, in order.
    report:
        A `Report`: what each call brought, how it was linked, and what came of it. Made when it is first asked for.
    """

    code: bytes = field(repr=False)
    entry_name: str
    cc: tuple[Any, ...]
    output: str
    call_sites: tuple[CallSite, ...]
    inputs: tuple[PlannedInput, ...]
    _signature: str = field(repr=False)
    _facts: BuildFacts = field(repr=False, compare=False)

    @functools.cached_property
    def report(self) -> Report:
        """What each call brought, how it was linked, and what came of it."""
        from .reports.collect import of_facts

        return of_facts(self._facts, self._signature, lambda: self.inputs, self.code, self.output)


@global_compiler_lock
def build(
    kernel: Any,
    signature: Any,
    *,
    cc: Any = None,
    output: str = "cubin",
    entry_name: str | None = None,
    **jit_options: Any,
) -> LinkedKernel:
    """Compile and link *kernel* for one signature and compute capability; no GPU is needed.

    Parameters
    ----------
    kernel:
        A Python function, or what ``cuda.jit`` made of it; then its options hold unless given anew.
    signature:
        What ``cuda.jit`` takes: ``"void(float32[::1])"``, ``(float32[::1],)`` or ``void(float32[::1])``.
    cc:
        ``(9, 0)``, or ``(9, 0, "a")`` for architecture-specific code. Default: that of the current GPU, as a launch
        would build for it.
    output:
        ``"cubin"``; ``"ptx"``: PTX after link-time optimisation, without inputs that cannot take part in it;
        ``"ltoir"``: the kernel's own LTO-IR, for a later link with ``inputs``.
    entry_name:
        What the kernel is to be called in the code: a C identifier. Default: a name that says the signature, the
        compute capability and the options too.
    **jit_options:
        Options of ``cuda.jit``: ``link``, ``lto``, ``debug``, ``lineinfo``, ``fastmath``, ``max_registers`` ...

    Raises
    ------
    TypeError, ValueError
        For something that is no kernel, an unknown option or output, a compute capability that this toolkit does
        not know, or an entry name that is no C identifier or taken.
    numba.core.errors.TypingError
        If the kernel does not compile for the signature, or a called object rejects its arguments.
    numba.cuda.cudadrv.driver.LinkerError
        If the link fails.
    """
    if output not in _OUTPUTS:
        raise ValueError(f"output is one of {', '.join(map(repr, _OUTPUTS))}, not {output!r}")
    if entry_name is not None and not _IDENTIFIER.fullmatch(entry_name):
        raise ValueError(f"entry_name is a C identifier, not {entry_name!r}")
    if config.ENABLE_CUDASIM:
        raise RuntimeError("build() compiles for a GPU, which the simulator (NUMBA_ENABLE_CUDASIM=1) does not")
    py_func, options = _function_and_options(kernel, jit_options)
    argtypes, return_type = sigutils.normalize_signature(signature)
    if return_type not in (None, cuda.types.void):
        raise TypeError(f"a kernel returns nothing, but the signature says {return_type}")
    wanted = _compute_capability(cc)
    if output != "cubin":
        options["lto"] = True
    with without_device(wanted), _isolated_device_functions():
        try:
            compiled = host_dispatcher._Kernel(py_func, argtypes, **options)
        except TypeError as error:
            if "unexpected keyword argument" in str(error):
                raise TypeError(f"build() takes the options of cuda.jit: {error}") from error
            raise
        library = compiled._codelibrary
        if entry_name is not None:
            library.rename_entry(entry_name)
        if output == "cubin":
            code = bytes(library.get_cubin(cc=wanted).code)
        elif output == "ptx":
            code = library.get_lto_ptx(cc=wanted).encode()
        else:
            code = bytes(library.get_ltoir(cc=wanted))
        plan = library.plan(wanted)
        facts = facts_of(library, wanted, output)
    shown = wanted if wanted[2] else wanted[:2]
    types = f"({', '.join(map(str, argtypes))})"
    return LinkedKernel(code, library._entry_name, shown, output, library.call_sites, plan.inputs, types, facts)


def _function_and_options(kernel: Any, jit_options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    if isinstance(kernel, host_dispatcher.CUDADispatcher):
        options = {**kernel.targetoptions, **jit_options}
        if "debug" in jit_options and "lto" not in jit_options:
            options.pop("lto", None)  # its default depends on debug
        kernel = kernel.py_func
    else:
        if not callable(kernel) or not hasattr(kernel, "__code__"):
            raise TypeError(
                f"build() takes a Python function or a @cuda.jit kernel, got {type(kernel).__name__} {kernel!r}"
            )
        options = jit_options
    if options.get("device"):
        raise TypeError(f"build() makes kernels, and {kernel.__name__} is a device function")
    # cuda.jit fills in the defaults and refuses what goes against each other.
    options = {name: value for name, value in options.items() if name not in ("device", "cache")}
    targetoptions = dict(cuda.jit(kernel, **options).targetoptions)
    targetoptions["link"] = list(targetoptions.get("link") or ())
    return kernel, targetoptions


def _compute_capability(cc: Any) -> tuple[int, int, str]:
    if cc is None:
        try:
            major, minor = cuda.get_current_device().compute_capability
        except Exception as error:
            raise ValueError(
                "there is no GPU whose compute capability could be the default: pass cc=, for example cc=(9, 0)"
            ) from error
        return major, minor, "a" if (major, minor) >= (9, 0) else ""
    if not (isinstance(cc, tuple) and len(cc) in (2, 3) and all(isinstance(part, int) for part in cc[:2])):
        raise TypeError(f"cc is (major, minor) or (major, minor, suffix), for example (9, 0), not {cc!r}")
    capability, suffix = split_cc(cc)
    if missing := why_missing("NVRTC"):
        raise LinkError(f"build() cannot begin: {missing[0]}", str(missing[1])) from missing[1]
    known = nvrtc.get_supported_ccs()
    if capability not in known:
        names = ", ".join(f"{major}.{minor}" for major, minor in known)
        raise ValueError(f"compute capability {cc!r} is not known to this CUDA toolkit, which knows {names}")
    return (*capability, suffix)


_isolated: list[dict[int, tuple[Any, Any]]] = []


@contextlib.contextmanager
def _isolated_device_functions() -> Iterator[None]:
    """Device functions compiled inside are this build's own: they may be for another compute capability."""
    _isolated.append({})
    try:
        yield
    finally:
        for dispatcher, overloads in _isolated.pop().values():
            dispatcher.overloads = overloads


def isolate(dispatcher: Any) -> None:
    """Give *dispatcher* its own overloads for the build in progress, if there is one."""
    if cc_without_device() is not None and _isolated and id(dispatcher) not in _isolated[-1]:
        _isolated[-1][id(dispatcher)] = (dispatcher, dispatcher.overloads)
        dispatcher.overloads = type(dispatcher.overloads)()
