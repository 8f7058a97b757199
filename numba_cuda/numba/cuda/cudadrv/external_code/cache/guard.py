# SPDX-License-Identifier: BSD-2-Clause
"""One build per key, among the threads of this process and among processes.

Processes exclude each other through lock files, which the operating system unlocks when the process that holds them
ends, however it ends. A guard only saves work: a thread that has waited too long, that would wait for itself or that
cannot lock builds too, and the result is the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

# In seconds; longer than any build. Reached only if the builder hangs, or waits for a lock that a waiting thread holds.
LONGEST_WAIT = 120.0

# Nothing waits for a pipe or a device, and no link is followed.
_SAFE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05

Found = TypeVar("Found")


class FileLock:
    """A lock that excludes other processes, and other threads of this one, held through an open file."""

    def __init__(self, path: str, descriptor: int):
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def try_lock(cls, path: str) -> FileLock | None:
        """Create the file at *path* if it is missing, and lock it. Return ``None`` if it is locked already.

        Raises
        ------
        OSError
            If files cannot be locked there.
        """
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _SAFE, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise OSError(f"{path} is not a regular file")
                if not _lock(descriptor):
                    os.close(descriptor)
                    return None
                if _is_same_file(path, descriptor):
                    return cls(path, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its last holder removed it

    def release(self) -> None:
        """Unlock and remove the file."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        # Removed while locked, so that a waiting process sees that it is gone. Windows cannot remove an open file.
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            with contextlib.suppress(OSError):
                # To close it is not enough: a forked child may have the file open.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
        if sys.platform == "win32":
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def leave_to_parent(self) -> None:
        """In a forked child: close the file without unlocking it for the parent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True

else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        return True


def _is_same_file(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


class _Claim:
    """A thread's claim to build an artefact. It is finished when the build has succeeded or failed."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.finished = threading.Event()
        self.lock: FileLock | None = None


class BuildGuard(Generic[Found]):
    """Lets one thread of one process at a time build under a key."""

    def __init__(self, longest_wait: float = LONGEST_WAIT):
        self._longest_wait = longest_wait
        self._mutex = threading.Lock()
        self._claims: dict[bytes, _Claim] = {}
        self._awaited: dict[int, _Claim] = {}

    @contextlib.contextmanager
    def turn(self, digest: bytes, folder: str | None, look: Callable[[], Found | None]) -> Iterator[Found | None]:
        """Wait for the turn to build under *digest*, among the processes that share *folder*.

        The context's value is what *look* found after another thread or process built; if it is ``None``, the caller
        builds within the context. It may build under other keys there.
        """
        deadline = time.monotonic() + self._longest_wait
        found, claim = self._claim(digest, look, deadline)
        try:
            if claim is not None:
                found = look()
                if found is None and folder is not None:
                    path = os.path.join(folder, f"{digest.hex()}.lock")
                    found, claim.lock = _wait_for_lock(path, look, deadline)
            yield found
        finally:
            if claim is not None:
                if claim.lock is not None:
                    claim.lock.release()
                with self._mutex:
                    if self._claims.get(digest) is claim:
                        del self._claims[digest]
                    claim.finished.set()

    def after_fork(self) -> None:
        """In a forked child, drop all claims: none of the threads that made them exists here."""
        for claim in self._claims.values():
            if claim.lock is not None:
                claim.lock.leave_to_parent()
        self._mutex = threading.Lock()
        self._claims = {}
        self._awaited = {}

    def _claim(
        self, digest: bytes, look: Callable[[], Found | None], deadline: float
    ) -> tuple[Found | None, _Claim | None]:
        """Return what another thread of this process built, or a claim of this thread. If both are ``None``, the caller
        builds without a claim."""
        me = threading.get_ident()
        while True:
            with self._mutex:
                other = self._claims.get(digest)
                if other is None:
                    self._claims[digest] = mine = _Claim()
                    return None, mine
                if self._waits_for(other, me):
                    return None, None
                self._awaited[me] = other
            try:
                in_time = other.finished.wait(max(0.0, deadline - time.monotonic()))
            finally:
                with self._mutex:
                    self._awaited.pop(me, None)
            found = look()
            if found is not None or not in_time:
                return found, None

    def _waits_for(self, claim: _Claim | None, thread: int) -> bool:
        """Return whether *thread* has made *claim*, or the claim's thread waits for *thread*."""
        while claim is not None and not claim.finished.is_set():
            if claim.thread == thread:
                return True
            claim = self._awaited.get(claim.thread)
        return False


def _wait_for_lock(
    path: str, look: Callable[[], Found | None], deadline: float
) -> tuple[Found | None, FileLock | None]:
    """Return what another process built, or the lock. Both are ``None`` if the lock cannot be had in time."""
    pause = _FIRST_PAUSE
    while True:
        try:
            lock = FileLock.try_lock(path)
        except OSError:
            return None, None
        try:
            found = look()
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        if lock is not None and found is not None:
            lock.release()
            lock = None
        if found is not None or lock is not None or time.monotonic() >= deadline:
            return found, lock
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
