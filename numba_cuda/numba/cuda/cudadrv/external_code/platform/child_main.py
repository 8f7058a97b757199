# SPDX-License-Identifier: BSD-2-Clause
"""The child's side of `child_process`: load a script, and answer requests with it until there are no more.

Messages are defined here, for both sides: a size, JSON, and the bytes that the JSON counts. This file runs as a script,
and imports little: every child waits for it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import select
import signal
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import IO, Any

    Content = dict[str, Any]  # of JSON values

_WATCH_INTERVAL = 1.0  # seconds between two looks of a child at its parent
_MOST_TRIES = 100
_MOST_CONTENT, _MOST_BYTES = 1 << 28, 1 << 32  # what no message exceeds


def packed(content: Content, blobs: Sequence[bytes] = ()) -> bytes:
    """Return the first part of a message, which *blobs* follow."""
    text = json.dumps([content, [len(blob) for blob in blobs]]).encode()
    return len(text).to_bytes(8, "little") + text


def send(file: IO[bytes], message: bytes, blobs: Sequence[bytes] = ()) -> None:
    for part in (message, *blobs):
        file.write(part)
    file.flush()


def receive(file: io.BufferedReader) -> tuple[Content, list[bytes]]:
    """Read a message. Raises `EOFError` if there is none, `ValueError` if it is not one."""
    content, sizes = json.loads(_exactly(file, int.from_bytes(_exactly(file, 8), "little"), _MOST_CONTENT))
    return content, [_exactly(file, size, _MOST_BYTES) for size in sizes]


def _exactly(file: io.BufferedReader, size: int, most: int = 8) -> bytes:
    if size > most:
        raise ValueError(f"a message of {size} bytes")
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _end_with_parent(requests: int, parent: int, folders: list[str]) -> None:
    """Wait for the end of the process *parent*; then remove *folders*, and kill this process with what it started."""
    poll = select.poll()
    poll.register(requests, 0)  # with no events, it reports only that nobody can write any more
    is_open = True
    while is_open and os.getppid() == parent:  # an orphan gets another; a fork of the parent may still have the pipe
        for _, event in poll.poll(_WATCH_INTERVAL * 1000):
            is_open = not event & select.POLLHUP
            poll.unregister(requests)  # the script has closed it
    _end(folders)


def _end(folders: list[str]) -> None:
    for folder in folders:
        _remove(folder)
    os.killpg(0, signal.SIGKILL)


def _remove(folder: str) -> None:
    """Remove *folder*, in which a process that this one started may be creating a file."""
    import shutil

    for _ in range(_MOST_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            break


def _limit(memory: int | None) -> None:
    """Leave no core file, since a crash is expected, and take at most *memory* bytes."""
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory:
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            least = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (least, hard))


def _resolved(path: str) -> str | None:
    """Return the real path of a folder; None if it is relative and the working directory was removed."""
    try:
        return os.path.realpath(path)
    except FileNotFoundError:
        return None


def _loaded(setup: Content) -> ModuleType:
    """Load the script, with the parent's path but for the working directory."""
    if setup["user_site"]:  # which an isolated interpreter leaves out
        import site

        site.addsitedir(setup["user_site"])
    if setup["path"] is not None:
        here = _resolved(os.curdir)
        # Where an installed package lies in the working directory (an editable install), that is in the path already.
        sys.path[:] = [entry for entry in setup["path"] if entry in sys.path or _resolved(entry) != here]
    spec = importlib.util.spec_from_file_location("numba_cuda_autolink_child", setup["script"])
    assert spec is not None and spec.loader is not None
    script = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def _flush() -> None:
    for file in sys.stdout, sys.stderr:
        with contextlib.suppress(AttributeError, OSError, ValueError):  # the script may have closed it
            file.flush()


def _main(mark: bytes) -> None:
    requests, replies, marks = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(2), "wb")
    folders: list[str] = []
    arguments = requests.fileno(), os.getppid(), folders
    threading.Thread(target=_end_with_parent, args=arguments, daemon=True).start()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    send(replies, mark)
    setup, _ = receive(requests)
    folders += setup["folders"]
    _limit(setup["memory"])
    script = _loaded(setup)
    with contextlib.suppress(EOFError):
        while True:
            content, blobs = receive(requests)
            try:
                answer, made = script.answer(content, blobs)
                message = packed({"answer": answer}, made)
            except Exception as error:
                message, made = packed({"raised": f"{error}" or type(error).__name__}), []
            _flush()
            send(marks, mark)
            send(replies, message, made)
            if (work := getattr(script, "after_answer", None)) is not None:
                work(lambda seconds: not select.select([requests], [], [], seconds)[0])
    _end(folders)


if __name__ == "__main__":
    _main(sys.argv[1].encode())
