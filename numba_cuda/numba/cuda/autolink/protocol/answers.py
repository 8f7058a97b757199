# SPDX-License-Identifier: BSD-2-Clause
"""Answers: what objects returned when they were asked for their code, remembered while the objects live."""

from __future__ import annotations

import functools
import itertools
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numba.cuda.cudadrv.external_code.diagnostics.messages import shown
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CUDASource
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, LinkInputError, file_of, from_item, is_item
from numba.cuda.cudadrv.external_code.platform.target import Target

from numba_cuda_autolink.printable_texts import number_of

from .callee import Callee, Identity

_MOST_ITEMS = 100_000  # of one answer; an iterable with more of them may never end


class CallingCode:
    """Compiled code, and the code of the objects that it calls. Two are equal if what they link is."""

    _library: Any  # the code library of the function that was compiled, which knows its calls
    _function_code: Any  # the `FunctionCode` of that function
    _undefined: tuple[str, ...]  # the functions that it calls and does not define
    _takes_arrays: bool  # whether C++ passes on the address of an array that it gets from the call

    def _traced_inputs(self, origin: str) -> Iterator[tuple[str, LinkInput]]:
        """Yield its code, whose origin is *origin*, and what the objects that it calls provide, each with its call."""
        raise NotImplementedError


# A piece of code; a file that is read when it is linked: its path, or a source with compile options; or code that calls
# objects in its turn.
Item = LinkInput | str | os.PathLike[str] | CUDASource | CallingCode
# The argument types of a call, and the target that its code is for.
Question = tuple[tuple[Any, ...], Target]


@dataclass(frozen=True, eq=False)
class Answer:
    """What an object returned for one signature and target: code in memory, and files, which each link reads again."""

    items: tuple[Item, ...]
    seconds: float = 0.0  # that the object took to answer
    stored: bool = False  # for the same link key, on disk: the object was not asked
    asks_compiler: bool = False  # whether it depends on a Python function that was compiled for C++

    @property
    def in_memory(self) -> bool:
        """Whether it is finished code without callbacks, so that neither a file nor a Python function affects it."""
        return not self.asks_compiler and all(
            isinstance(item, LinkInput)
            and item.kind is not kinds.CUDA
            and item.setup_callback is None
            and item.teardown_callback is None
            for item in self.items
        )

    def difference_from(self, later: Answer) -> str:
        """Return how a *later* answer to the same question differs; empty if it is the same code."""
        if len(self.items) != len(later.items):
            return f"first {len(self.items)} pieces of code, then {len(later.items)}"
        pairs = zip(self.items, later.items, strict=True)
        return next((f"first {_describe(one)}, then {_describe(two)}" for one, two in pairs if one != two), "")

    def inputs(self) -> tuple[LinkInput, ...]:
        """Return the code in its order; files are read now. Raise `LinkInputError` if one is not code to link."""
        return tuple(link_input for _, link_input in self.traced_inputs(""))

    def traced_inputs(self, origin: str) -> Iterator[tuple[str, LinkInput]]:
        """Yield the code as `inputs` does, each piece with its origin: *origin*, or a call in the code."""
        for item in self.items:
            if isinstance(item, CallingCode):
                yield from item._traced_inputs(origin)
            else:
                yield origin, item if isinstance(item, LinkInput) else from_item(item)

    @property
    def calling(self) -> tuple[CallingCode, ...]:
        return tuple(item for item in self.items if isinstance(item, CallingCode))


def _describe(item: Item) -> str:
    if isinstance(item, CallingCode):
        return str(item)
    if not isinstance(item, LinkInput):
        return str(file_of(item))
    return f"{item.kind} {item.name!r} ({number_of(len(item.code), 'byte')}, SHA-256 {item.digest[:12]})"


def items_of(returned: Any) -> tuple[Any, ...]:
    """Return the items that a hook *returned*. Raise `LinkInputError` for what is neither ``None``, one nor several."""
    if returned is None:
        return ()
    if is_item(returned) or isinstance(returned, CallingCode):
        return (returned,)
    if isinstance(returned, Iterable) and not isinstance(returned, (bytes, bytearray, memoryview, Mapping)):
        items = tuple(itertools.islice(returned, _MOST_ITEMS + 1))
        if len(items) <= _MOST_ITEMS:
            return items
        raise LinkInputError(
            f"got {shown(returned)} with more than {_MOST_ITEMS} items, expected an iterable that ends"
        )
    raise LinkInputError.unknown_item(returned)


class AnswerMemory(dict[Identity, tuple[dict[Question, Answer], list[Any]]]):
    """Answers by callee and question, for as long as all objects live that identify the callee.

    When one of them dies the answers go, before another object can get its identity; if that is interrupted, the other
    object does not get them. An object that cannot be referred to weakly is kept alive instead.
    """

    def of(self, callee: Callee) -> dict[Question, Answer]:
        found = self.get(callee.identity)
        if found is None or not all(map(_refers_to, found[1], callee.identified_by)):
            # The weak references live here, and so run their callback only while there is something to forget.
            found = {}, [self._reference(each, callee.identity) for each in callee.identified_by]
            self[callee.identity] = found
        return found[0]

    def _reference(self, obj: Any, identity: Identity) -> Any:
        try:
            # A built-in: what a signal handler raises in a Python function that is called back would be lost.
            return weakref.ref(obj, functools.partial(self.pop, identity))
        except TypeError:
            return obj


def _refers_to(reference: Any, obj: Any) -> bool:
    return obj is (reference() if isinstance(reference, weakref.ref) else reference)
