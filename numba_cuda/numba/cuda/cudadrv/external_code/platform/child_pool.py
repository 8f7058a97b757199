# SPDX-License-Identifier: BSD-2-Clause
"""Child processes that answer the same requests: one is kept while this process runs, others while needed."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from .child_process import ChildProcess

Child = TypeVar("Child", bound=ChildProcess)


class ChildPool(Generic[Child]):
    """Children that *start* starts, when one is needed and none is idle. Any thread may take one.

    A signal handler that raises, as Ctrl-C's does, ends the child that its thread waits for, and no other.
    """

    def __init__(self, start: Callable[[], Child]):
        self._start = start
        self.forget()

    @classmethod
    def of_process(cls, start: Callable[[], Child]) -> ChildPool[Child]:
        """Return a pool that ends with this process, and that a fork of it begins anew. It is kept for ever."""
        pool = cls(start)
        atexit.register(pool.close)
        os.register_at_fork(after_in_child=pool.forget)
        return pool

    def forget(self) -> None:
        """Have no children: after a fork, they are the parent process's."""
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._kept: Child | None = None

    @property
    def kept(self) -> Child | None:
        """The child that is kept, if there is one and it lives; it may be busy."""
        return None if self._kept is None or self._kept.has_ended else self._kept

    @contextlib.contextmanager
    def child(self) -> Iterator[Child]:
        """Take a child for the block; a request that is interrupted ends it. Raises `ChildStartError`."""
        child = self._take()
        try:
            yield child
        finally:
            if not child.has_ended:
                with self._lock:
                    self._idle.append(child)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.close()

    def trim(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, [child for child in self._idle if child is self._kept]
        for child in idle:
            if child is not self._kept:
                child.close()

    def _take(self) -> Child:
        """Take an idle child, the kept one if that is idle, or start one."""
        with self._lock:
            self._idle.sort(key=lambda child: child is not self._kept)
            while self._idle:
                child = self._idle.pop(0)
                if not child.has_ended:
                    return child
                child.close()
        child = self._start()
        if self.kept is None:
            self._kept = child
        return child
