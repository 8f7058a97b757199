# SPDX-License-Identifier: BSD-2-Clause
"""The script ``numba-cuda-autolink``, which Ctrl-C ends with all that it started."""

import contextlib
import os
import signal
import sys
import threading
import time


def main():
    """Run the command line and return the exit code."""
    with interruptible():
        from .commands.main_command import main as run

        return run()


EXIT_CODE = 130  # what shells report for a program that SIGINT ended
_GRACE = 0.3  # seconds in which Python code may clean up
_CHILDREN = "numba.cuda.cudadrv.external_code.platform.child_process"
_STORE = "numba.cuda.cudadrv.external_code.cache.store"
_ending = threading.Lock()


@contextlib.contextmanager
def interruptible():
    """End this process as `end` does if SIGINT arrives inside the ``with`` block, in the main thread.

    A thread is told of the signal when it arrives, whatever the main thread does then. If the process ignores SIGINT,
    as in the background of a shell, nothing is told.
    """
    import socket

    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    threading.Thread(target=_watch, args=(receiver,), name="waits for Ctrl-C", daemon=True).start()
    previous = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    try:
        yield
    except KeyboardInterrupt:
        end()
    finally:
        signal.set_wakeup_fd(previous)
        sender.close()


def _watch(receiver):
    with receiver:
        while received := receiver.recv(64):
            if signal.SIGINT in received:
                time.sleep(_GRACE)
                end()


def end():
    """Kill the child processes of this project, clean up, say that the command was interrupted, and end the process."""
    _ending.acquire()  # never released: a second thread waits here for the end
    with contextlib.suppress(Exception):  # of modules that are only half imported, for example
        if (children := sys.modules.get(_CHILDREN)) is not None:
            children.kill_all()
        if (store := sys.modules.get(_STORE)) is not None:
            store.abandon()
        if (workers := sys.modules.get("multiprocessing.process")) is not None:
            for worker in workers.active_children():
                worker.terminate()
        if (util := sys.modules.get("multiprocessing.util")) is not None:
            # It removes semaphores, of which multiprocessing's own process would print that they are left.
            removing = threading.Thread(target=util._run_finalizers, args=(0,), daemon=True)
            removing.start()
            removing.join(_GRACE)
    with contextlib.suppress(OSError):
        # A bar may have hidden the cursor, and stands in the line.
        os.write(2, (b"\r\x1b[2K\x1b[?25h" if os.isatty(2) else b"") + b"numba-cuda-autolink: interrupted\n")
    os._exit(EXIT_CODE)
