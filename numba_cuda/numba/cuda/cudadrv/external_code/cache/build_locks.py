# SPDX-License-Identifier: BSD-2-Clause
"""One build per key, among the threads of this process and among processes.

Processes exclude each other through lock files, which the operating system unlocks when the process that holds them
ends, however it ends. A process that holds one sets its time every few seconds: one that is stopped, or whose machine
is gone, keeps nobody waiting. A guard only saves work: a thread that has waited too long, that would wait for itself
or that cannot lock builds too, and the result is the same.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from numba_cuda_autolink.files import NO_LINK, open_regular

# In seconds; longer than any build. Reached only if the builder waits for a lock that a waiting thread holds.
LONGEST_WAIT = 1000.0
BEAT = 5.0  # seconds from one sign of life to the next
LONGEST_SILENCE = 60.0  # seconds without one, after which the holder of a lock is taken for dead

_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05

Found = TypeVar("Found")


class FileLock:
    """A lock that excludes other processes, and other threads of this one, held through an open file."""

    def __init__(self, path: str, descriptor: int):
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def try_lock(cls, path: str) -> FileLock | None:
        """Create the file at *path* if it is missing, and lock it. Return ``None`` if it is locked already. Raise
        `OSError` if files cannot be locked there."""
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT | NO_LINK)
        try:
            # If its last holder has removed it meanwhile, what that built is there.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as error:
            os.close(descriptor)
            if getattr(error, "errno", None) in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                return None
            raise
        return cls(path, descriptor)

    def beat(self) -> None:
        if (descriptor := self._descriptor) is not None:
            with contextlib.suppress(OSError):
                os.utime(descriptor)

    def release(self) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        with contextlib.suppress(OSError):
            os.unlink(self._path)  # while it is locked, so that a waiting process sees that it is gone
        with contextlib.suppress(OSError):
            # To close it is not enough: a forked child may have the file open.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)

    def leave_to_parent(self) -> None:
        """In a forked child: close the file without unlocking it for the parent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _last_beat(path: str) -> int:
    """Return when the holder of the lock at *path* last showed life: of an opened file, since network file systems
    remember older states of others."""
    try:
        descriptor = open_regular(path, os.O_RDONLY | NO_LINK)
    except OSError:
        return 0
    try:
        return os.fstat(descriptor).st_mtime_ns
    finally:
        os.close(descriptor)


class BuildGuard(Generic[Found]):
    """Lets one thread of one process at a time build under a key."""

    def __init__(self, longest_wait: float = LONGEST_WAIT, silence: float = LONGEST_SILENCE):
        self._longest_wait, self._silence = longest_wait, silence
        self._locks: set[FileLock] = set()
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child, forget who builds: none of these threads exists here."""
        for lock in self._locks:
            lock.leave_to_parent()
        self._locks.clear()
        self._heart: threading.Thread | None = None
        self._finished = threading.Condition()
        self._builders: dict[bytes, int] = {}  # threads, by the key that they build under
        self._awaited: dict[int, bytes] = {}  # keys, by the thread that waits for them

    def release_all(self) -> None:
        """Release all locks, and remove their files: this process ends in the middle of its builds."""
        for lock in list(self._locks):
            lock.release()

    @contextlib.contextmanager
    def turn(self, digest: bytes, folder: str | None, look: Callable[[], Found | None]) -> Iterator[Found | None]:
        """Wait for the turn to build under *digest*, among the processes that share *folder*.

        The context's value is what *look* found after another thread or process built; if it is ``None``, the caller
        builds within the context. It may build under other keys there.
        """
        deadline = time.monotonic() + self._longest_wait
        is_builder = self._claim(digest, deadline)
        lock = None
        try:
            found = look()
            if is_builder and found is None and folder:
                for lock in self._tries(os.path.join(folder, f"{digest.hex()}.lock"), deadline):
                    if (found := look()) is not None or lock is not None:
                        break
            yield found
        finally:
            if lock is not None:
                lock.release()
                self._locks.discard(lock)
            if is_builder:
                with self._finished:
                    self._builders.pop(digest, None)
                    self._finished.notify_all()

    def _tries(self, path: str, deadline: float) -> Iterator[FileLock | None]:
        """Try to lock the file at *path* again and again, until it is locked, its holder shows no life, or it is too
        late. Yield the lock, or ``None`` after each time in vain."""
        pause, seen, since = _FIRST_PAUSE, 0, time.monotonic()
        with contextlib.suppress(OSError):  # it cannot be locked
            while (now := time.monotonic()) < deadline:
                if (lock := FileLock.try_lock(path)) is not None:
                    self._hold(lock)
                    yield lock
                    return
                if (beat := _last_beat(path)) != seen:
                    seen, since = beat, now
                elif now - since > self._silence:
                    return
                yield None
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _hold(self, lock: FileLock) -> None:
        self._locks.add(lock)
        if self._heart is None or not self._heart.is_alive():
            self._heart = threading.Thread(target=self._beat, name="holds locks", daemon=True)
            with contextlib.suppress(RuntimeError):  # the interpreter ends
                self._heart.start()

    def _beat(self) -> None:
        """Show for each lock that this process lives, until it has held none for a while."""
        while self._locks:
            time.sleep(BEAT)
            for lock in list(self._locks):
                lock.beat()

    def _claim(self, digest: bytes, deadline: float) -> bool:
        """Claim to build under *digest* when no other thread does. Return ``False`` if it is too late then, or if this
        thread would wait for itself."""
        me = threading.get_ident()
        with self._finished:
            while digest in self._builders:
                left = deadline - time.monotonic()
                if left <= 0 or self._waits_for(digest, me):
                    return False
                self._awaited[me] = digest
                try:
                    self._finished.wait(left)
                finally:
                    del self._awaited[me]
            self._builders[digest] = me
        return True

    def _waits_for(self, digest: bytes | None, thread: int) -> bool:
        """Return whether *thread* builds under *digest*, or the thread that does waits for *thread*."""
        while digest is not None:
            builder = self._builders.get(digest, 0)
            if builder == thread:
                return True
            digest = self._awaited.get(builder)
        return False
