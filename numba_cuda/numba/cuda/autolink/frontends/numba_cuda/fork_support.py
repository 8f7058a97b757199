# SPDX-License-Identifier: BSD-2-Clause
"""A process that is forked while another thread of its parent compiles: an error in place of a wait without end.

Its lock of Numba's compilers, which the front ends take too, stays locked, as the locks in LLVM and NVRTC may.
"""

from __future__ import annotations

import functools
import os

from numba.core.compiler_lock import global_compiler_lock


class _LockOfParent:
    """In place of a lock that a thread of the parent process holds."""

    def acquire(self, blocking: bool = True) -> bool:
        if not blocking:
            return False
        raise RuntimeError(
            "this process cannot compile: another thread of its parent compiled when it was forked\n"
            "  reason: the locks of the compilers stay locked in it\n"
            "  what to do: fork before any thread compiles, or start processes with"
            ' multiprocessing.get_context("spawn")'
        )

    def release(self) -> None:
        """Do nothing: it was not acquired."""


@functools.cache
def watch_forks() -> None:
    """See to it that forked processes raise `RuntimeError` when they compile and cannot."""
    os.register_at_fork(after_in_child=_replace_lock)


def _replace_lock() -> None:
    lock = global_compiler_lock._lock
    if lock.acquire(blocking=False):
        lock.release()
    else:
        global_compiler_lock._lock = _LockOfParent()
