# SPDX-License-Identifier: BSD-2-Clause
"""What code is wanted: the target of the compilation in progress.

A kernel and the device functions that it calls are compiled by nested runs of the compiler, but there is one link,
and its target is the kernel's. So the outermost compilation sets the target, and everything compiled inside it sees
that one.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from numba.cuda.cudadrv.external_code.target import Target


@dataclass
class Compilation:
    """An outermost compilation: its target, and the objects that typing met in it, by their Numba types."""

    target: Target
    objects: dict[Any, list[Any]] = field(default_factory=dict)

    def met(self, numba_type: Any, obj: Any) -> None:
        """Remember that *obj* was given the type *numba_type*."""
        known = self.objects.setdefault(numba_type, [])
        if not any(obj is other for other in known):
            known.append(obj)


class _State(threading.local):
    compilation: Compilation | None = None
    asked_for: Target | None = None
    cc: tuple[int, int, str] | None = None


_state = _State()


def compilation() -> Compilation | None:
    """The outermost compilation in progress on this thread, if any."""
    return _state.compilation


@contextlib.contextmanager
def compiling(target: Target) -> Iterator[None]:
    """Run a compilation for *target*; inside another one, that one's target stays."""
    if _state.compilation is not None:
        yield
        return
    _state.compilation = Compilation(target)
    try:
        yield
    finally:
        _state.compilation = None


@contextlib.contextmanager
def asking(target: Target) -> Iterator[None]:
    """Ask a hook for code for *target*; what the hook itself compiles is a compilation of its own."""
    outer = _state.compilation, _state.asked_for
    _state.compilation, _state.asked_for = None, target
    try:
        yield
    finally:
        _state.compilation, _state.asked_for = outer


@contextlib.contextmanager
def without_device(cc: tuple[int, int, str]) -> Iterator[None]:
    """Compile for *cc* instead of the current GPU, which need not exist."""
    outer = _state.cc
    _state.cc = cc
    try:
        yield
    finally:
        _state.cc = outer


def cc_without_device() -> tuple[int, int, str] | None:
    """The compute capability set by `without_device`, if any."""
    return _state.cc


def current_target() -> Target:
    """The target that code is wanted for.

    Known while a ``__numba_cuda_link__`` or ``__numba_cuda_call__`` runs, with or without a GPU.

    Raises
    ------
    RuntimeError
        Outside of a compilation.
    """
    if _state.asked_for is not None:
        return _state.asked_for
    if _state.compilation is not None:
        return _state.compilation.target
    raise RuntimeError(
        "current_target() is known only while a kernel is being compiled: call it in __numba_cuda_link__ or"
        " __numba_cuda_call__"
    )
