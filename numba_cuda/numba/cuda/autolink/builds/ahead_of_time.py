# SPDX-License-Identifier: BSD-2-Clause
"""Ahead-of-time builds of finished kernels, on machines with or without a GPU and a driver."""

from __future__ import annotations

import dataclasses
import functools
import re
import warnings
from dataclasses import dataclass
from typing import Any, overload

from numba.cuda.core import config
from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkRequest
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, ComputeCapabilityLike

from numba_cuda_autolink.errors import flag
from numba_cuda_autolink.printable_texts import did_you_mean
from numba_cuda_autolink.short_tracebacks import short_traceback

from ..compilation.context import KernelEvent, announce
from ..frontend_api.front_end import BuildRequest, front_end_of
from ..frontend_api.jit_options import with_jit_options
from ..frontend_api.placed_messages import placed_error
from .result import LinkedKernel, RanLink, with_link

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_OUTPUTS = ("cubin", "ptx", "ltoir")
_FLAGS = ("cache", "debug", "fastmath", "forceinline", "lineinfo", "lto", "opt")


@overload
def build(
    kernel: Any,
    signature: Any,
    cc: ComputeCapabilityLike | None = ...,
    *,
    output: str = ...,
    entry_name: str | None = ...,
    **jit_options: Any,
) -> LinkedKernel: ...
@overload
def build(
    kernel: Any,
    signature: Any,
    cc: list[Any],
    *,
    output: str = ...,
    entry_name: str | None = ...,
    **jit_options: Any,
) -> list[LinkedKernel]: ...
@with_jit_options
def build(
    kernel: Any,
    signature: Any,
    cc: ComputeCapabilityLike | list[Any] | None = None,
    *,
    output: str = "cubin",
    entry_name: str | None = None,
    **jit_options: Any,
) -> LinkedKernel | list[LinkedKernel]:
    """Compile and link *kernel* for one signature and compute capability, or a list of them; no GPU is needed.

    Parameters
    ----------
    kernel:
        A Python function, or a kernel made of it by ``cuda.jit``, whose options then are the defaults: numba-cuda's or
        numba-cuda-mlir's. A function is compiled by numba-cuda.
    signature:
        As for ``cuda.jit``: ``"void(float32[::1])"``, ``(float32[::1],)`` or ``void(float32[::1])``.
    cc:
        What `ComputeCapability.parse` accepts: ``(9, 0)``, ``"9.0"``, ``"sm_90"``, ``90``; with the suffix ``a``
        (``"9.0a"``) for architecture-specific code. For a list of them, a list is returned, with one `LinkedKernel` for
        each. Default: that of the current GPU, as a launch would build for it.
    output:
        ``"cubin"``; ``"ptx"``, the PTX after link-time optimisation, without inputs that cannot take part in it; or
        ``"ltoir"``, the kernel's own LTO-IR, to be linked later with ``inputs``.
    entry_name:
        The kernel's name in the code, a C identifier. Default: Numba's name, which contains the signature and the
        options.
    **jit_options:
        Options of ``cuda.jit``, which `JitOptions` describes, or of numba-cuda-mlir's.

    Raises
    ------
    TypeError, ValueError
        If *kernel* is not a kernel; for an unknown option or output; for a compute capability that the CUDA toolkit
        does not know, or an empty list of them; for an entry name that is not a C identifier or is taken.
    numba.core.errors.TypingError, numba.cuda.cudadrv.driver.LinkerError
        If the kernel does not compile for the signature, or a called object rejects its arguments; if the link fails.
    """
    how = output, entry_name, jit_options
    if isinstance(cc, list) and not cc:
        raise ValueError(
            "cc is an empty list: there is nothing to build"
            "\n  what to do: pass compute capabilities, as in cc=[(8, 0), (9, 0)]; without cc=, the current GPU's"
        )
    with short_traceback(placed_error):
        if isinstance(cc, list):
            return [prepare(kernel, signature, each, *how).link() for each in cc]
        return prepare(kernel, signature, cc, *how).link()


@dataclass(frozen=True)
class PreparedBuild:
    """A kernel that its front end has compiled: the kernel without code, and the link that makes it; without *request*,
    the finished kernel."""

    kernel: LinkedKernel
    request: LinkRequest | None

    @global_compiler_lock
    def link(self) -> LinkedKernel:
        """Link the kernel. Raises what `build` describes."""
        return self.kernel if self.request is None else with_link(self.kernel, RanLink.of(self.request))


def prepare(
    kernel: Any,
    signature: Any,
    cc: ComputeCapabilityLike | None,
    output: str,
    entry_name: str | None,
    jit_options: dict[str, Any],
) -> PreparedBuild:
    """Compile *kernel* as `build` does, and do not link it. Raises what `build` describes."""
    if output not in _OUTPUTS:
        near = did_you_mean(output, _OUTPUTS)
        raise ValueError(f"output must be one of {', '.join(map(repr, _OUTPUTS))}, not {output!r}{near}")
    if entry_name is not None and not (isinstance(entry_name, str) and _IDENTIFIER.fullmatch(entry_name)):
        raise ValueError(f"entry_name must be a C identifier, not {entry_name!r}")
    for name in jit_options.keys() & set(_FLAGS):
        flag(f"{name}= of build()", jit_options[name])
    if config.ENABLE_CUDASIM:
        raise RuntimeError("build() compiles for a GPU, and the simulator (NUMBA_ENABLE_CUDASIM=1) has no compiler")
    announce(KernelEvent(kernel, signature, cc, output, entry_name, jit_options))
    return _prepare(kernel, signature, BuildRequest(cc, output, entry_name, jit_options))


def prepare_for_launch(
    kernel: Any, signature: Any, cc: ComputeCapability, jit_options: dict[str, Any]
) -> PreparedBuild:
    """Compile *kernel* exactly as a launch would, which then finds all of it in the cache."""
    return _prepare(kernel, signature, BuildRequest(cc.as_launched, jit_options=jit_options, for_launch=True))


@global_compiler_lock
def _prepare(kernel: Any, signature: Any, request: BuildRequest) -> PreparedBuild:
    record, link = front_end_of(kernel).prepare(kernel, signature, request)
    if record.emulated_texts is not None:
        record.emulated_texts.make_lined = functools.partial(_lined_texts, kernel, signature, request)
    return PreparedBuild(LinkedKernel(**vars(record)), link)


def _lined_texts(kernel: Any, signature: Any, request: BuildRequest) -> list[str]:
    """Return the PTX of *kernel* for the emulator, with the lines of its source."""
    options = {**request.jit_options, "lineinfo": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which the build itself has shown
        prepared = _prepare(kernel, signature, dataclasses.replace(request, jit_options=options))
    assert prepared.kernel.emulated_texts is not None
    return prepared.kernel.emulated_texts()
