# SPDX-License-Identifier: BSD-2-Clause
"""Locks of modules, which no thread holds in a forked process: the threads of its parent are not there."""

from __future__ import annotations

import os
import threading


def fork_lock() -> threading.Lock:
    """Return a new lock that is free in forked processes. They keep it for ever: it is one for a module."""
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]
    return lock
