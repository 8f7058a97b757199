# SPDX-License-Identifier: BSD-2-Clause
"""The vocabularies of front ends: the modules in which each keeps its Numba types and its IR, and how types translate.

The core of this project works on numba-cuda's types. Another front end has types of its own, which its kernels and the
hooks of called objects see. It registers a `Vocabulary` when it is activated, which names the module that builds its
kernels, a `FrontEnd`.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from numba.cuda import types
from numba.cuda.core import ir, ir_utils, sigutils, typed_passes
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkRequest
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapabilityLike
from numba.cuda.typing import typeof

from numba_cuda_autolink.errors import at_call
from numba_cuda_autolink.short_tracebacks import print_short


def _same(numba_type: Any) -> Any:
    return numba_type


@dataclass(frozen=True)
class Vocabulary:
    """The words of one front end."""

    name: str  # the front end's name, for messages
    # types, ir, ir_utils, typeof, typed_passes, sigutils: its modules of these names: Numba types, Numba IR, helpers of
    # the IR, ``typeof`` with ``Purpose``, type inference, and signatures
    types: Any
    ir: Any
    ir_utils: Any
    typeof: Any
    typed_passes: Any
    sigutils: Any
    make_device_function: Callable[[Any], Any]  # makes a device function of a Python function
    find_module: Callable[[], Any]  # returns the module that kernels call ``cuda``
    front_end: str  # the name of the module that is its `FrontEnd`, imported when it is first needed
    # to_core, from_core: translate a type of the front end to numba-cuda's, and back: each is the other's inverse
    to_core: Callable[[Any], Any] = _same
    from_core: Callable[[Any], Any] = _same
    # The class of its kernels; ``None`` for numba-cuda, whose front end also takes what is not a kernel yet.
    kernels: type | None = None

    def is_type(self, value: Any) -> bool:
        return isinstance(value, self.types.Type)


@dataclass(frozen=True)
class BuildRequest:
    """How a kernel is to be built: for which compute capability (default: that of the current GPU), to which
    ``output``, under which name in the code, and with which options of ``cuda.jit``; *for_launch*, as a launch would
    build it."""

    cc: ComputeCapabilityLike | None
    output: str = "cubin"
    entry_name: str | None = None
    jit_options: Mapping[str, Any] = field(default_factory=dict)
    for_launch: bool = False


class FrontEnd(Protocol):
    """What a front end provides to build its kernels and to launch them. Records are
    `numba.cuda.autolink.function_code.build_record.BuildRecord`."""

    def active(self) -> bool:
        """Return whether the front end asks called objects for their code."""

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise `TypeError` or `ValueError` unless kernels can have the *options*."""

    def prepare(self, kernel: Any, signature: Any, request: BuildRequest) -> tuple[Any, LinkRequest | None]:
        """Compile *kernel*. Return its record without code, and the link that makes the code; ``None`` if the record
        has it. Raises what `numba.cuda.autolink.build` describes."""

    def read_launched(self, kernel: Any, capabilities: Sequence[ComputeCapabilityLike | None]) -> Sequence[Any]:
        """Return the records of *kernel* as launches compiled it: for *capabilities*, of which ``None`` alone stands
        for all that it was compiled for. Raise `ValueError` unless it was compiled for one signature."""

    def is_device_function(self, function: Any) -> bool:
        """Return whether *function* is a device function that `compile_device_function` takes."""

    def compile_device_function(self, function: Any, signature: Any, cc: ComputeCapabilityLike | None) -> Any:
        """Return the record of a device function, which is not linked on its own."""

    def code_for_bind(self, kernel: Any, argtypes: tuple[Any, ...]) -> Any:
        """Return the code of *kernel* for arguments of the types *argtypes*, compiled if it is not, which
        `numba_cuda_autolink` launches. Raise `FinishedKernelError` if it needs the launch of its front end."""


def _make_device_function(function: Any) -> Any:
    from numba import cuda

    return cuda.jit(device=True)(function)


def _find_module() -> Any:
    from numba import cuda

    return cuda


_PACKAGE = __name__.partition(".autolink.")[0] + ".autolink"
NUMBA_CUDA = Vocabulary(
    "numba-cuda",
    types,
    ir,
    ir_utils,
    typeof,
    typed_passes,
    sigutils,
    _make_device_function,
    _find_module,
    f"{_PACKAGE}.frontends.numba_cuda.front_end",
)
_others: list[Vocabulary] = []


def register(vocabulary: Vocabulary) -> None:
    if vocabulary not in _others:
        _others.append(vocabulary)


def others() -> tuple[Vocabulary, ...]:
    return tuple(_others)


def vocabulary_of(numba_type: Any) -> Vocabulary:
    """Return the vocabulary that *numba_type* belongs to; numba-cuda's for what is not a type."""
    if not isinstance(numba_type, types.Type):
        for vocabulary in _others:
            if isinstance(numba_type, vocabulary.types.Type):
                return vocabulary
    return NUMBA_CUDA


def vocabulary_of_kernel(kernel: Any) -> Vocabulary:
    """Return the vocabulary of the front end that made *kernel*; numba-cuda's for what is not a kernel."""
    if type(kernel).__module__.startswith("numba_cuda_mlir."):
        importlib.import_module("numba_cuda_mlir.mlir_compiler")  # which activates
    return next((each for each in _others if each.kernels and isinstance(kernel, each.kernels)), NUMBA_CUDA)


def front_end_of(kernel: Any) -> FrontEnd:
    """Return the front end that made *kernel*. Raise `RuntimeError` unless it asks called objects for their code."""
    front_end = cast(FrontEnd, importlib.import_module(vocabulary_of_kernel(kernel).front_end))
    if not front_end.active():
        is_set = os.environ.get("NUMBA_CUDA_AUTOLINK") == "0"
        what, remedy = (": NUMBA_CUDA_AUTOLINK=0", "unset it") if is_set else ("", "call autolink.activate()")
        print_short(error := RuntimeError(at_call(f"autolink is off{what}\n  what to do: {remedy}")))
        raise error
    return front_end


def check_options(kernel: Any, options: Mapping[str, Any]) -> None:
    """Raise `TypeError` or `ValueError` unless *kernel* can be built with the *options* of its front end's ``jit``."""
    cast(FrontEnd, importlib.import_module(vocabulary_of_kernel(kernel).front_end)).check_options(options)


def is_kernel(value: Any) -> bool:
    """Return whether *value* is a kernel or device function of a front end."""
    from numba.cuda.dispatcher import CUDADispatcher

    return isinstance(value, CUDADispatcher) or vocabulary_of_kernel(value) is not NUMBA_CUDA


def core_type(numba_type: Any) -> Any:
    """Return *numba_type* as numba-cuda's type; what is not a type, and what is one already, as it is."""
    return vocabulary_of(numba_type).to_core(numba_type)
