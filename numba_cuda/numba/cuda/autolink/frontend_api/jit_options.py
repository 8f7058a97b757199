# SPDX-License-Identifier: BSD-2-Clause
"""The options of numba-cuda's ``cuda.jit`` that builds take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypedDict, TypeVar, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])


class JitOptions(TypedDict, total=False):
    """The options of ``cuda.jit`` that `build` and `Job` take, by name: the type of a dict.

    ``{"fastmath": True, "max_registers": 64}``. All may be left out. ``device`` is not one: kernels are built. Those of
    numba-cuda-mlir's ``cuda.jit`` are others, which it lists.

    Attributes
    ----------
    link:
        Files with code that the kernel calls, and objects such as `CUDASource`.
    debug:
        Keep what debuggers need, and check for exceptions. Default: ``NUMBA_CUDA_DEBUGINFO``, otherwise ``False``.
    opt:
        Whether the compiler optimises. Default: ``NUMBA_OPT``, otherwise ``True``.
    lineinfo:
        Keep the lines of the source, which profilers show. Default: ``False``.
    inline:
        ``"always"`` inlines a device function as Numba compiles it. Default: ``"never"``.
    forceinline:
        Have NVVM inline a device function. Default: ``False``.
    fastmath:
        Fast math in the Python of the kernel. That of C++ is ``use_fast_math`` of `ProgramOptions`. Default: ``False``.
    extensions:
        Objects whose ``prepare_args`` is called with each argument of a launch.
    max_registers:
        The most registers that a thread may use. Default: the compiler decides.
    lto:
        Whether all code is optimised as it is linked. Default: ``True``, and ``False`` with ``debug``.
    launch_bounds:
        The most threads in a block, or a tuple of that, the fewest blocks of a multiprocessor, and the most blocks of a
        cluster.
    shared_memory_carveout:
        How much of the L1 cache is shared memory: ``"MaxL1"``, ``"MaxShared"``, ``"default"``, or percent.
    cache:
        Whether launches keep what they compile on disk. A build is kept in any case. Default: ``False``.
    """

    link: Any
    debug: bool | None
    opt: bool | None
    lineinfo: bool
    inline: Literal["never", "always"] | bool | Callable[..., bool]
    forceinline: bool
    fastmath: bool
    extensions: Any
    max_registers: int | None
    lto: bool | None
    launch_bounds: int | tuple[int, ...] | None
    shared_memory_carveout: str | int | None
    cache: bool


def with_jit_options(function: F) -> F:
    """Give *function*, which takes ``**options``, a signature that has those of `JitOptions` by name, for ``help()``
    and editors."""
    shown = inspect.signature(function)
    others = [each for each in shown.parameters.values() if each.kind is inspect.Parameter.VAR_KEYWORD]
    own = [each for each in shown.parameters.values() if each not in others]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=kind)
        for name, kind in get_type_hints(JitOptions).items()
        if name not in shown.parameters
    ]
    function.__signature__ = shown.replace(parameters=[*own, *options, *others])  # type: ignore[attr-defined]
    return function
