# SPDX-License-Identifier: BSD-2-Clause
"""Linking files: what one function needs linked, as paths and code that were named explicitly, and as call sites."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, LinkInputError, from_item, line_marker
from numba.cuda.cudadrv.external_code.plan.errors import LinkError
from numba.cuda.cudadrv.external_code.plan.link_plan import NAMED_EXPLICITLY
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.cudadrv.linkable_code import LinkableCode

from ...linkables.compiled_source import CompiledSource
from ...protocol.ask import with_answer
from ...protocol.call_sites import CallSite
from ...protocol.errors import HookError

# What was named explicitly, or a call site: an `AskedCall`, unless the kernel was loaded from a cache.
Entry: TypeAlias = str | os.PathLike[str] | LinkableCode | CallSite


class OrderedSet:
    """A set that keeps the order of insertion, with the methods that numba-cuda calls."""

    def __init__(self, items: Iterable[Any] = ()):
        self._items = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Any) -> None:
        self._items[item] = None

    def update(self, items: Iterable[Any]) -> None:
        self._items.update(dict.fromkeys(items))


class LinkingFiles(OrderedSet):
    """What one function needs linked, in order of first use.

    To numba-cuda it is a set of paths and ``LinkableCode``: a call site stands for the answer of the called object, for
    the target that the function was compiled for. CUDA C++ is compiled: numba-cuda would do so without the options
    of its source.
    """

    def __init__(self, target: Callable[[], Target]):
        super().__init__()
        self._target = target

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._items)

    def update(self, items: Iterable[Entry]) -> None:
        super().update(items.entries if isinstance(items, LinkingFiles) else items)

    def __iter__(self) -> Iterator[str | os.PathLike[str] | LinkableCode]:
        for entry in self._items:
            if isinstance(entry, CallSite):
                target = self._target()
                for each in with_answer(entry, target).answer.inputs():
                    yield CompiledSource({}, each, target).code if each.kind is kinds.CUDA else each.as_linkable()
            else:
                yield entry

    def __len__(self) -> int:
        calls = [entry for entry in self._items if isinstance(entry, CallSite)]
        answers = [with_answer(call, self._target()).answer for call in calls]
        return len(self._items) - len(calls) + sum(len(answer.inputs()) for answer in answers)


def inputs_of(entry: Entry | LinkInput, target: Target, origin: str = "") -> list[tuple[str, LinkInput]]:
    """Return the link inputs that *entry* stands for when it is linked for *target*, with their *origin*: by
    default the text of a call site. Raise `LinkError` if there are none: a file is missing, or an object refuses."""
    if isinstance(entry, CallSite):
        try:
            return list(with_answer(entry, target).answer.traced_inputs(origin or str(entry)))
        except HookError as error:
            raise LinkError(error.describe(entry)) from error
        except LinkInputError as error:  # of a file that was there when the object was asked
            raise LinkError(f"{error}\n  returned by: {entry}") from error
    try:
        link_input = entry if isinstance(entry, LinkInput) else from_item(entry)
    except LinkInputError as error:
        raise LinkError(str(error)) from error
    if link_input.kind is kinds.CUDA:
        # As in numba-cuda, messages name the file, and headers are searched in the working directory first.
        path, code = link_input.name, link_input.code
        if (target.lineinfo or target.debug) and os.path.isfile(path):
            code = line_marker(os.path.abspath(path)).encode() + code  # for debuggers
        link_input = dataclasses.replace(link_input, name=os.path.basename(path), code=code)
    return [(NAMED_EXPLICITLY, link_input)]
