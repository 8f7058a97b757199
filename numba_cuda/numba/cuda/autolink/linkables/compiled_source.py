# SPDX-License-Identifier: BSD-2-Clause
"""CUDA C++ compiled for the current target: its code, and the lowered names of C++ expressions in it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numba.cuda.cudadrv.external_code.diagnostics import timeline
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, from_item
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..compilation.context import current_target

if TYPE_CHECKING:
    from numba.cuda.cudadrv.linkable_code import LinkableCode

_MOST_LABELS = 20  # of what was compiled together, in a timeline


@dataclass(frozen=True)
class CompiledSource:
    """CUDA C++ that `compiled` compiled.

    ``names`` maps each name expression to its lowered name, such as ``"_Z5scaleIfET_S0_"``. ``code`` is the code, which
    a ``__numba_cuda_link__`` can return. ``was_cached`` is whether NVRTC did not run, and ``log`` what it printed when
    it did.
    """

    names: Mapping[str, str]
    unit: LinkInput
    target: Target
    was_cached: bool = False
    log: str = ""

    @functools.cached_property
    def code(self) -> LinkableCode:
        """The compiled code: a ``cuda.LTOIR`` for a target with link-time optimisation, else a ``cuda.Cubin``."""
        from numba.cuda import LTOIR, Cubin
        from numba.cuda.cudadrv.external_code.compile import programs

        program = programs.compiled(self.unit, self.target)
        made = LTOIR if program.kind is kinds.LTO_IR else Cubin
        return made(program.code, name=self.unit.name)

    @functools.cached_property
    def own_headers(self) -> str:
        """The texts of the headers that it reads, without those of CUDA's toolkit."""
        from numba.cuda.cudadrv.external_code.compile import programs

        _, *texts = programs.header_texts(self.unit, self.target, with_toolkit=False)
        return "\n".join(texts)


def compiled(source: CUDASource | Iterable[CUDASource], names: Iterable[str] = ()) -> CompiledSource:
    """Compile CUDA C++ for `current_target`, and lower the C++ names in it, in one run of NVRTC.

    With it, an object asks C++ itself while a kernel is compiled. An expression such as ``&told<decltype(f(1.0f))>``,
    where ``template <class T> extern __device__ char told;`` declares a variable that no code refers to, has a lowered
    name that spells the type.

    Code and names are cached as all programs are: under the source, its options, NVRTC's version and the content of
    every header.

    Parameters
    ----------
    source : CUDASource or iterable of CUDASource
        The source. Several must name the same ``unit`` and have equal options. They are compiled together, in their
        order, as a link compiles them: the link of a kernel that calls objects with these sources, first used in this
        order, finds the program in the cache.
    names : iterable of str, optional
        Name expressions: addresses of ``__global__`` functions and of ``__device__`` or ``__constant__`` variables,
        as NVRTC's ``nvrtcAddNameExpression`` takes them.

    Raises
    ------
    CompileError
        If the source does not compile, or an expression does not name such a function or variable.
    TypeError, ValueError
        If *names* is one string; if the sources cannot be compiled together.
    RuntimeError
        If no kernel is being compiled.
    """
    if isinstance(names, str):
        raise TypeError(f"compiled() takes several names, got the str {names!r}")
    return compiled_with([source] if isinstance(source, CUDASource) else list(source), names)


def compiled_with(
    sources: Sequence[CUDASource], names: Iterable[str], asked: str = "", labels: Sequence[str] = ()
) -> CompiledSource:
    """Compile *sources* as `compiled` does, with further text for the names that are *asked*, which makes no code. The
    *labels*, by default the sources' names, say in timelines what for."""
    from numba.cuda.cudadrv.external_code.compile import programs
    from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError

    target = current_target()
    unit = unit_of_sources(sources)
    with timeline.span("compile", _list_labels(labels or [source.name for source in sources])) as span:
        try:
            lowered = programs.lowered_names(unit, target, tuple(names), asked)
        except CompileError:
            span.origin = timeline.REFUSED
            raise
        span.origin = lowered.origin
    return CompiledSource(lowered.names, unit, target, lowered.origin != "built", lowered.log)


def _list_labels(labels: Sequence[str]) -> str:
    shown = ", ".join(labels[:_MOST_LABELS])
    return shown if len(labels) <= _MOST_LABELS else f"{shown} and {len(labels) - _MOST_LABELS} more"


def unit_of_sources(sources: Sequence[Any]) -> LinkInput:
    """Return the translation unit that a link makes of *sources*. Raise `TypeError` or `ValueError` if none is made."""
    from numba.cuda.cudadrv.external_code.plan.link_plan import join_sources

    inputs = [from_item(source) for source in sources]
    if not inputs or any(each.kind is not kinds.CUDA for each in inputs):
        raise TypeError("compiled() takes CUDA C++: a CUDASource, or several")
    if len(inputs) > 1 and (not inputs[0].options.unit or len({each.options for each in inputs}) > 1):
        raise ValueError("compiled() takes several sources only of the same unit, with equal options")
    return join_sources(inputs)
