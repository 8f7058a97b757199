# SPDX-License-Identifier: BSD-2-Clause
"""The link plan: what is linked into one kernel, in which order, and who brought it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..inputs.link_input import LinkInput
from ..target import Target
from .batching import batched

# The origin of what no call site brought.
NAMED_EXPLICITLY = "link="
COOPERATIVE_LAUNCH = "cooperative launch"
NRT = "numba-cuda's runtime"
DEVICE_RUNTIME = "a call of the device runtime"
HOSTS_OWN = frozenset({COOPERATIVE_LAUNCH, NRT, DEVICE_RUNTIME})


@dataclass(frozen=True)
class PlannedInput:
    """A link input and who brought it: call sites, or ``link=``. The same content is planned once. ``together`` is what
    a translation unit was put together of."""

    input: LinkInput
    origins: tuple[str, ...]
    together: tuple[PlannedInput, ...] = ()

    def __str__(self) -> str:
        return f"{self.input.kind} {self.input.name!r} of {' and of '.join(self.origins)}"


@dataclass(frozen=True)
class LinkPlan:
    """The inputs of one link, in the order of their first use, and the callbacks of the module that comes of it.

    Attributes
    ----------
    kernel:
        What is linked, for messages.
    target:
        The `Target` that is linked for.
    inputs:
        The code to link beside the kernel's own.
    setup_callbacks, teardown_callbacks:
        Each once, in order of first use.
    """

    kernel: str
    target: Target
    inputs: tuple[PlannedInput, ...]
    setup_callbacks: tuple[Callable[[Any], None], ...]
    teardown_callbacks: tuple[Callable[[Any], None], ...]

    @functools.cached_property
    def units(self) -> tuple[PlannedInput, ...]:
        """The inputs as they are compiled and linked: sources that share a translation unit are one."""
        return batched(self.inputs)

    @property
    def is_all_asked_for(self) -> bool:
        """Whether called objects brought it all, without callbacks: nothing outside then looks a symbol up by name."""
        return not (
            self.setup_callbacks
            or self.teardown_callbacks
            or any(planned.input.nrt or NAMED_EXPLICITLY in planned.origins for planned in self.inputs)
        )

    @classmethod
    def of(cls, kernel: str, target: Target, brought: Iterable[tuple[str, LinkInput]]) -> LinkPlan:
        """Plan a link of what was *brought*: pairs of an origin and an input, in order of use."""
        origins: dict[LinkInput, list[str]] = {}
        setup: list[Callable[[Any], None]] = []
        teardown: list[Callable[[Any], None]] = []
        for origin, link_input in brought:
            known = origins.setdefault(link_input, [])
            if origin not in known:
                known.append(origin)
            _add_once(setup, link_input.setup_callback)
            _add_once(teardown, link_input.teardown_callback)
        inputs = tuple(PlannedInput(link_input, tuple(origins[link_input])) for link_input in origins)
        return cls(kernel, target, inputs, tuple(setup), tuple(teardown))


def _add_once(callbacks: list[Callable[[Any], None]], callback: Callable[[Any], None] | None) -> None:
    # By equality, which for the bound methods of one object is what identity is for functions.
    if callback is not None and callback not in callbacks:
        callbacks.append(callback)
