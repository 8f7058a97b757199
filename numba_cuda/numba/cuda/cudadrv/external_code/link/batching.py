# SPDX-License-Identifier: BSD-2-Clause
"""Batching: CUDA C++ sources that may share a translation unit become one source."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..inputs import kinds
from ..inputs.cuda_source import CompileOptions
from ..inputs.link_input import LinkInput

if TYPE_CHECKING:
    from .plan import PlannedInput


def batched(inputs: Iterable[PlannedInput]) -> tuple[PlannedInput, ...]:
    """*inputs*, with the sources of one unit and the same options put together, where the first of them was."""
    groups: dict[object, list[PlannedInput]] = {}
    for number, planned in enumerate(inputs):
        options = planned.input.options
        is_shared = planned.input.kind is kinds.CUDA and options.unit != ""
        groups.setdefault(options if is_shared else number, []).append(planned)
    return tuple(group[0] if len(group) == 1 else _together(group) for group in groups.values())


def _together(group: list[PlannedInput]) -> PlannedInput:
    options = group[0].input.options
    code = "".join(
        _marked(name, planned.input.code.decode()) for name, planned in zip(_names(group), group, strict=True)
    )
    origins = dict.fromkeys(itertools.chain.from_iterable(planned.origins for planned in group))
    joined = LinkInput(kinds.CUDA, code.encode(), _without_unit(options), f"{options.unit}.cu")
    return type(group[0])(joined, tuple(origins), tuple(group))


def _without_unit(options: CompileOptions) -> CompileOptions:
    return CompileOptions(options.include_paths, options.defines, options.options)


def _names(group: list[PlannedInput]) -> list[str]:
    """The sources' names, each once, so that NVRTC's messages tell which source they are about."""
    seen: collections.Counter[str] = collections.Counter()
    names = []
    for planned in group:
        name = planned.input.name
        seen[name] += 1
        names.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return names


def _marked(name: str, code: str) -> str:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'#line 1 "{quoted}"\n{code}\n'
