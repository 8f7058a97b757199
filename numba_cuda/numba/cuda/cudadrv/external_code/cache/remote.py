# SPDX-License-Identifier: BSD-2-Clause
"""The shared level of the cache, behind the local ones: slow, absent, full or hostile, it never makes a result wrong.

Entries are used only if they are sealed (`seals`), and no build waits for them longer than its budget (`patience`).
What comes too late is kept for the next build. When several entries of a pack were needed, the whole pack is read, for
which nobody waits (`packs`). Nor does anybody wait for writes, which are dropped if too many are pending.
"""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

from numba_cuda_autolink import shared_files

from .packs import NAME_SIZE, HeldPacks, NewPack, file_name
from .patience import Patience
from .remote_settings import REMOTE, RemoteSettings
from .seals import UntrustedEntryError, opened, sealed
from .settings import CacheWarning
from .transfers import Read, Transfers

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0  # seconds in which nothing is asked after an error, twice as long each time
_STALLED = 10.0  # seconds without an answer after which a warning says so
_FLUSH_PATIENCE = 5.0  # seconds for one file, where a user waits for all


@dataclass
class RemoteCounts:
    """What a process did with the shared cache: entries found, missing and not trusted; questions that were answered
    late, failed, or were not asked; entries written, dropped, and bytes in both directions."""

    found: int = 0
    missing: int = 0
    untrusted: int = 0
    late: int = 0
    failed: int = 0
    not_asked: int = 0
    written: int = 0
    dropped: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


class Clock:
    """The time in seconds, and waiting for what a thread reads."""

    def now(self) -> float:
        """Return the time."""
        return time.monotonic()

    def wait(self, future: Future[Read], seconds: float) -> None:
        """Wait for *future*, no longer than so many *seconds*."""
        wait([future], seconds)


class RemoteEntries:
    """The entries of the shared cache in *settings*. *keep* is called, in another thread, with what came too late."""

    def __init__(
        self,
        settings: RemoteSettings,
        keep: Callable[[bytes, bytes], object],
        files: Callable[[], Any] | None = None,
        clock: Clock | None = None,
    ):
        self.settings = settings
        self.counts = RemoteCounts()
        self.patience = Patience(settings.wait)
        self._keep, self._clock = keep, clock or Clock()
        self._transfers = Transfers(
            files or (lambda: shared_files.opened(settings.address)), self._fail, self._write_pack
        )
        self._is_there: set[bytes] = set()  # what need not be written
        self._new_pack, self._held = NewPack(), HeldPacks()
        self._closed_until, self._pause = 0.0, _FIRST_PAUSE
        self._warned: set[str] = set()
        self._coming: dict[bytes, Future[bytes | None]] = {}  # the entries that are still to come, late
        self._asked_since = 0.0  # when the first of these was asked for
        self._lock = threading.Lock()

    def read(self, digest: bytes) -> bytes | None:
        """Return the entry under the key with *digest*, or ``None``: if there is none that is trusted, or it takes too
        long."""
        if (blob := self._held.take(digest)) is not None:
            return self._opened(digest, blob)
        start = self._clock.now()
        if start < self._closed_until:
            self.counts.not_asked += 1
            return None
        allowed = self.patience.wait(start)
        entry = None
        try:
            is_asked = allowed.seconds or (self.patience.is_too_slow and not self._coming)
            future = self._transfers.read(_name(digest)) if is_asked else None
            if future is None:
                self.counts.not_asked += 1
                self._warn_if_stalled(start)
            else:
                entry = self._answer(digest, future, allowed.seconds)
        finally:
            allowed.end(self._clock.now(), found=entry is not None)
        return entry

    def _answer(self, digest: bytes, future: Future[Read], seconds: float) -> bytes | None:
        """Return the entry if it comes within so many *seconds*; else it is kept when it comes."""
        self._clock.wait(future, seconds)
        if not future.done():
            self.counts.late += 1
            self.patience.note_no_answer(seconds)
            if not self._coming:
                self._asked_since = self._clock.now()
            self._coming.setdefault(digest, Future())
            future.add_done_callback(lambda late: self._take_late(digest, late))
            return None
        try:
            read = future.result()
        except Exception as error:
            self._fail(error)
            return None
        self.patience.note_answer(read.seconds)
        self._pause = _FIRST_PAUSE
        return self._entry(digest, read.content)

    def coming(self, digest: bytes) -> Future[bytes | None] | None:
        """Return the entry that was asked for and is to come late, if it is there; ``None`` if nothing was asked, or
        nothing shows that the store answers at all."""
        return self._coming.get(digest) if self.patience.has_answered else None

    def write(self, digest: bytes, entry: bytes) -> None:
        """Queue an entry to be written, unless it is there, or this process does not write."""
        if not self.settings.writes or digest in self._is_there or self._clock.now() < self._closed_until:
            return
        blob = sealed(self.settings, digest, entry)
        with self._lock:
            content = self._new_pack.add(digest, blob)
            is_full = self._new_pack.is_full
        if self._transfers.write(_name(digest), content):
            self._is_there.add(digest)
            self.counts.written += 1
            self.counts.bytes_written += len(content)
        else:
            self.counts.dropped += 1
        if is_full:
            self._write_pack()

    def _write_pack(self) -> None:
        """Queue the pack to be written, and begin another one."""
        with self._lock:
            pack, self._new_pack = self._new_pack, NewPack()
        if (content := pack.content()) is not None and self._transfers.write(file_name(pack.name), content):
            self.counts.bytes_written += len(content)

    def connect(self) -> None:
        """Start connecting, so that the first lookup does not wait for it."""
        self._transfers.connect()

    def flush(self, timeout: float) -> int:
        """Wait until all is written, at most *timeout* seconds. Return how many entries are not written."""
        self._write_pack()
        return self._transfers.flush(_FLUSH_PATIENCE, timeout)

    def end(self, patience: float | None = None) -> None:
        """Wait for the writes when the process ends, each at most *patience* seconds, by default as long as a build may
        wait."""
        if self._clock.now() >= self._closed_until:
            self._write_pack()
            if patience is None:
                self._transfers.flush(self.settings.wait, _FLUSH_PATIENCE)
            else:
                self._transfers.flush(patience, _LONGEST_PAUSE)

    def _entry(self, digest: bytes, blob: bytes | None) -> bytes | None:
        if blob is None:
            self.counts.missing += 1
            return None
        self.counts.bytes_read += len(blob)
        entry = self._opened(digest, blob[NAME_SIZE:])
        if entry is not None:
            self._read_pack(blob[:NAME_SIZE])
        return entry

    def _read_pack(self, name: bytes) -> None:
        """Begin to read the pack of an entry that was needed, if it is worth it and a reader is free."""
        if self._held.is_needed(name) and (future := self._transfers.read(file_name(name))) is not None:
            self._held.begin(name)
            future.add_done_callback(self._take_pack)

    def _take_pack(self, future: Future[Read]) -> None:
        with contextlib.suppress(Exception):  # it is an offer; what is wrong with the store shows elsewhere
            if (content := future.result().content) is not None:
                self.counts.bytes_read += len(content)
                self._held.add(content)

    def _opened(self, digest: bytes, blob: bytes) -> bytes | None:
        """Return the entry in a sealed *blob*, or ``None`` if it is not trusted."""
        try:
            entry = opened(self.settings, digest, blob)
        except UntrustedEntryError as error:
            self.counts.untrusted += 1
            self._warn("trust", f"does not use entries of its shared cache {self.settings.address}: {error}.")
            return None
        self.counts.found += 1
        self._is_there.add(digest)
        return entry

    def _take_late(self, digest: bytes, future: Future[Read]) -> None:
        entry = None
        try:
            read = future.result()
            self.patience.note_answer(read.seconds)
            if (entry := self._entry(digest, read.content)) is not None:
                self._keep(digest, entry)
        except Exception as error:
            self._fail(error)
        finally:
            if (coming := self._coming.pop(digest, None)) is not None:
                coming.set_result(entry)

    def _warn_if_stalled(self, now: float) -> None:
        if self._coming and now - self._asked_since > _STALLED:
            self._warn("use", f"waits for its shared cache {self.settings.address}, which does not answer.")

    def _fail(self, error: Exception) -> None:
        with self._lock:
            self.counts.failed += 1
            self._closed_until = self._clock.now() + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        if isinstance(error, ImportError):
            error = ImportError(f"{error} (pip install 'numba-cuda-autolink[remote]', and fsspec's package for it)")
        what = str(error).splitlines()[0] if str(error) else ""
        self._warn(
            "use",
            f"cannot use its shared cache {self.settings.address} and continues without it:"
            f" {type(error).__name__}: {what}. Unset {REMOTE} to do without.",
        )

    def _warn(self, fault: str, message: str) -> None:
        if fault not in self._warned:
            self._warned.add(fault)
            warnings.warn(f"numba-cuda-autolink {message}", CacheWarning, stacklevel=2)


def _name(digest: bytes) -> str:
    """Return the name of an entry's file."""
    return f"{digest.hex()[:2]}/{digest.hex()[2:]}"
