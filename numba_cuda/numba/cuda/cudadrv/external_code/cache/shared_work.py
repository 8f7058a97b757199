# SPDX-License-Identifier: BSD-2-Clause
"""Work that several processes share: which builds a thread leaves to another process, and what it built itself.

Programs and answers are what several kernels have in common. A process that builds one of many kernels builds only
those that were assigned to it, so that each is built once for all processes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from .key import CacheKey

# The kinds that several kernels have in common.
_SHARED_KINDS = frozenset(("answer", "names", "program", "prototype"))
# The kinds that another machine can use: no pickles, and nothing that is only true here.
PORTABLE_KINDS = frozenset(("answer", "headers", "link", "names", "program", "prototype", "symbols"))


class LeftToAnotherError(BaseException):
    """What a build needs is in no cache, and this thread was not to build it.

    It is not an `Exception`: nothing between the build and its caller handles it.

    Attributes
    ----------
    keys:
        The keys of what is missing.
    """

    def __init__(self, keys: Iterable[CacheKey]):
        self.keys = tuple(keys)
        super().__init__(", ".join(map(str, self.keys)))


class BuiltEntry(NamedTuple):
    """What was built under a key, and whether another machine can use it."""

    key: CacheKey
    data: bytes
    is_portable: bool


class _Work(threading.local):
    assigned: Collection[bytes] | None = None
    built: list[BuiltEntry] | None = None


_work = _Work()


@contextlib.contextmanager
def building_only(assigned: Collection[bytes]) -> Iterator[list[BuiltEntry]]:
    """Within the block, this thread builds of what kernels share only what has one of the digests *assigned*. The
    context's value lists all that it builds."""
    outer = vars(_work).copy()
    _work.assigned, _work.built = assigned, []
    try:
        yield _work.built
    finally:
        vars(_work).clear()
        vars(_work).update(outer)


def shares_work() -> bool:
    """Whether this thread leaves builds to other processes."""
    return _work.assigned is not None


def check_assigned(keys: Iterable[CacheKey]) -> None:
    """Raise `LeftToAnotherError` if a build under one of *keys* is left to another process."""
    if _work.assigned is not None:
        left = [key for key in keys if key.kind in _SHARED_KINDS and key.digest not in _work.assigned]
        if left:
            raise LeftToAnotherError(left)


def note_built(key: CacheKey, data: bytes, is_portable: bool) -> None:
    """Remember that *data* was built under *key*, and whether another machine can use it."""
    if _work.built is not None:
        _work.built.append(BuiltEntry(key, data, is_portable))
