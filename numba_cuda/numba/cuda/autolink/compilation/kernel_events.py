# SPDX-License-Identifier: BSD-2-Clause
"""Which kernels an application compiles, for whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class KernelEvent:
    """A kernel is about to be built by `build`, or was compiled or loaded for a launch: the fields of a job, with
    ``cc=None`` for the current GPU."""

    kernel: Any
    signature: Any
    cc: Any = None
    output: str = "cubin"
    entry_name: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    for_launch: bool = False


listeners: list[Callable[[KernelEvent], None]] = []


def announce(event: KernelEvent) -> None:
    for listener in listeners:
        listener(event)
