# SPDX-License-Identifier: BSD-2-Clause
"""The vocabularies of front ends: the modules in which each keeps its Numba types and its IR, and how types translate.

The core of this project works on numba-cuda's types. Another front end has types of its own, which its kernels and the
hooks of called objects see. It registers a `Vocabulary` when it is activated.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.core import ir, ir_utils, sigutils, typed_passes
from numba.cuda.typing import typeof


def _same(numba_type: Any) -> Any:
    return numba_type


@dataclass(frozen=True)
class Vocabulary:
    """The words of one front end.

    Attributes
    ----------
    name:
        The front end's name, for messages.
    types, ir, ir_utils, typeof, typed_passes, sigutils:
        Its modules of these names: Numba types, Numba IR, helpers of the IR, ``typeof`` with ``Purpose``, type
        inference, and signatures.
    to_core, from_core:
        Translate a type of the front end to numba-cuda's, and back: each is the other's inverse.
    kernels, builds:
        The class of its kernels; the module with ``build``, ``launched`` and ``compiled_code`` for them. None for
        numba-cuda.
    """

    name: str
    types: Any
    ir: Any
    ir_utils: Any
    typeof: Any
    typed_passes: Any
    sigutils: Any
    to_core: Callable[[Any], Any] = _same
    from_core: Callable[[Any], Any] = _same
    kernels: Any = None
    builds: Any = None

    def is_type(self, value: Any) -> bool:
        """Return whether *value* is a type of the front end."""
        return isinstance(value, self.types.Type)


NUMBA_CUDA = Vocabulary("numba-cuda", types, ir, ir_utils, typeof, typed_passes, sigutils)
_others: list[Vocabulary] = []


def register(vocabulary: Vocabulary) -> None:
    """Let the core know the types of another front end."""
    if vocabulary not in _others:
        _others.append(vocabulary)


def others() -> tuple[Vocabulary, ...]:
    """Return the vocabularies of all front ends but numba-cuda."""
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
    return next((each for each in _others if isinstance(kernel, each.kernels)), NUMBA_CUDA)


def is_kernel(value: Any) -> bool:
    """Return whether *value* is a kernel or device function of a front end."""
    from numba.cuda.dispatcher import CUDADispatcher

    return isinstance(value, CUDADispatcher) or vocabulary_of_kernel(value) is not NUMBA_CUDA


def core_type(numba_type: Any) -> Any:
    """Return *numba_type* as numba-cuda's type; what is not a type, and what is one already, as it is."""
    return vocabulary_of(numba_type).to_core(numba_type)
