# SPDX-License-Identifier: BSD-2-Clause
"""Transfers from and to a shared cache, in threads of their own that nobody has to wait for.

A store that stalls keeps these threads, and nothing is asked of it until one of them is free.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

_READERS = 4
_MOST_PENDING = 1024  # writes; further ones are dropped
_MOST_PENDING_BYTES = 256 << 20
_QUIET = 5.0  # seconds without a write, after which it is called quiet


class Read(NamedTuple):
    """What was read: the content of a file, or ``None`` if there is none; and the seconds that the store took."""

    content: bytes | None
    seconds: float


class Transfers:
    """Reads and writes that run in daemon threads, with the *files* that are opened in the first of them. *failed* is
    called with what a write raises, and *quiet*, in such a thread, when nothing was written for some seconds."""

    def __init__(self, files: Callable[[], Any], failed: Callable[[Exception], None], quiet: Callable[[], None]):
        self._open, self._failed, self._quiet = files, failed, quiet
        self._files: Any = None
        self._opening = threading.Lock()
        self._reads: queue.SimpleQueue[tuple[str, Future[Read]]] = queue.SimpleQueue()
        self._free = threading.Semaphore(0)
        self._readers = 0
        self._writes: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        self._has_writer = False
        self._changed = threading.Condition()
        self._pending = self._pending_bytes = 0

    def connect(self) -> None:
        """Start to open the files, which takes as long as importing what fsspec needs."""
        _start(self._connect)

    def _connect(self) -> None:
        with contextlib.suppress(Exception):  # the first question raises it again
            self._store()

    def read(self, name: str) -> Future[Read] | None:
        """Start to read a file; ``None`` if all readers are busy."""
        if not self._free.acquire(blocking=False):
            with self._changed:
                if self._readers == _READERS:
                    return None
                self._readers += 1
            _start(self._read_all)
        future: Future[Read] = Future()
        self._reads.put((name, future))
        return future

    def write(self, name: str, content: bytes) -> bool:
        """Queue a file to be written; return ``False`` if it is dropped because too much is queued."""
        with self._changed:
            if self._pending == _MOST_PENDING or self._pending_bytes + len(content) > _MOST_PENDING_BYTES:
                return False
            self._pending += 1
            self._pending_bytes += len(content)
            if not self._has_writer:
                self._has_writer = True
                _start(self._write_all)
        self._writes.put((name, content))
        return True

    def flush(self, patience: float, longest: float) -> int:
        """Wait until all is written, but no longer than *patience* seconds for any one file, or *longest* for all.
        Return how many files are not written."""
        end = time.monotonic() + longest
        with self._changed:
            while self._pending:
                before, wait = self._pending, min(patience, end - time.monotonic())
                if wait <= 0 or not self._changed.wait_for(functools.partial(self._is_below, before), wait):
                    break
            return self._pending

    def _is_below(self, before: int) -> bool:
        return self._pending < before

    def _store(self) -> Any:
        with self._opening:
            if self._files is None:
                self._files = self._open()
            return self._files

    def _read_all(self) -> None:
        while True:
            name, future = self._reads.get()
            try:
                files = self._store()
                start = time.monotonic()
                read = Read(files.read(name), time.monotonic() - start)
            except BaseException as error:
                self._free.release()
                future.set_exception(error)
            else:
                self._free.release()
                future.set_result(read)

    def _write_all(self) -> None:
        while True:
            try:
                name, content = self._writes.get(timeout=_QUIET)
            except queue.Empty:
                self._quiet()
                name, content = self._writes.get()
            try:
                self._store().write(name, content)
            except Exception as error:
                self._failed(error)
            finally:
                with self._changed:
                    self._pending -= 1
                    self._pending_bytes -= len(content)
                    self._changed.notify_all()


def _start(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="numba-cuda-autolink shared cache", daemon=True).start()
