# SPDX-License-Identifier: BSD-2-Clause
"""The options of a link, as nvJitLink takes them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from cuda.core import LinkerOptions

from ..inputs.kinds import LTO_IR
from ..inputs.link_input import LinkInput

if TYPE_CHECKING:
    from .linker_input import Part

Linkable: TypeAlias = "LinkInput | Part"


def options_for(inputs: Iterable[Linkable], arch: str, **options: Any) -> tuple[str, ...]:
    """Return nvJitLink's options for a link of *inputs*; *options* are more of `cuda.core.LinkerOptions`."""
    lto = any(item.kind is LTO_IR for item in inputs)
    as_bytes = LinkerOptions(arch=arch, link_time_optimization=lto or None, **options).as_bytes()
    return tuple(map(os.fsdecode, as_bytes))
