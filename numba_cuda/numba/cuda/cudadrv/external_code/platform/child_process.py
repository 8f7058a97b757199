# SPDX-License-Identifier: BSD-2-Clause
"""Child processes: an isolated Python interpreter that answers requests, and whose crash is an ordinary error.

The parent starts this file as a script (``python -I``), which loads the child's script by its path. That script imports
nothing relative and defines ``answer(content, blobs)``: it gets a dictionary of JSON values and a list of bytes, and
returns the same two. Code in the working directory is never run: the child's ``sys.path`` has the parent's absolute
entries without the working directory. The environment is the parent's, so that libraries are found the same way,
without what gives access to a shared cache: no child asks one.

A message is a size, JSON, and the bytes that the JSON counts. What a library prints cannot corrupt one: in the child,
file descriptors 1 and 2 both lead to another pipe. Its content is returned with each reply or error, and never shown.

A child ends within about a second of its parent, however that ends and whatever the child is doing: a thread watches
the parent. (``PR_SET_PDEATHSIG`` would watch the thread that started the child, which may end long before its process.)
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import queue
import select
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

Content = dict[str, Any]  # of JSON values

# The variables of a shared cache, of fsspec, and of the clouds that it may be in.
_SECRETS = ("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE", "FSSPEC_", "AWS_", "AZURE_", "CLOUDSDK_", "GCLOUD_", "GOOGLE_")

_START_LIMIT = 60.0  # seconds until the interpreter runs
_GRACE = 2.0  # seconds from the end of a child's pipes to its own end
_WATCH_INTERVAL = 1.0  # seconds between two looks of a child at its parent
_MOST_PRINTED = 1 << 16  # bytes: the last ones are kept
_MOST_CONTENT, _MOST_BYTES = 1 << 28, 1 << 32  # what no reply exceeds


class ChildError(Exception):
    """A child process gave no reply."""


class ChildStartError(ChildError):
    """No child process could be started."""


class ChildEndedError(ChildError):
    """A child process ended during a request: *how* (``"SIGSEGV"``, ``"signal 40"``, ``"exit code 3"``, or ``"no answer
    within 5 s"`` if it was killed then), and the end of what it *printed*, up to 64 KiB."""

    def __init__(self, how: str, printed: str):
        self.how = how
        self.printed = printed
        super().__init__(f"the process ended ({how})" + (f": {printed}" if printed else ""))


class RequestError(ChildError):
    """The child's script raised an exception with this text; the child is ready for the next request."""


class Reply(NamedTuple):
    """What the child's script returned, and the end of what the child printed meanwhile, up to 64 KiB."""

    content: Content
    blobs: list[bytes]
    printed: str


_running: weakref.WeakSet[ChildProcess] = weakref.WeakSet()  # children that may still run


def _without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(_SECRETS)}


class ChildProcess(contextlib.AbstractContextManager["ChildProcess"]):
    """A child process that runs *script*, a file, with *environment* added to this process's. Raises `ChildStartError`
    if there is no interpreter to start, or it does not start.

    Any number of requests may be made, one at a time, from any thread. Close it, or use it in a ``with`` statement.
    """

    def __init__(self, script: str, *, environment: Mapping[str, str] | None = None):
        if not sys.executable:
            raise ChildStartError("no child process can be started: this Python is embedded (sys.executable is empty)")
        self._mark = os.urandom(16).hex().encode()
        self._folder: str | None = None
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", os.path.abspath(__file__), self._mark.decode()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**_without_secrets(os.environ), **(environment or {})},
                start_new_session=True,  # a group of its own, to be killed as a whole
            )
        except OSError as error:
            raise ChildStartError(f"no child process can be started: {error}") from error
        _running.add(self)
        requests, replies, noise = self._process.stdin, self._process.stdout, self._process.stderr
        assert requests is not None and isinstance(replies, io.BufferedReader) and isinstance(noise, io.BufferedReader)
        self._requests, self._replies, self._noise = requests, replies, noise
        self._texts: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read_noise, name="printed by a child process", daemon=True)
        self._reader.start()
        self._lock = threading.Lock()
        self._ended: ChildEndedError | None = None
        user_site = site.getusersitepackages() if site.ENABLE_USER_SITE else None
        setup = {"path": absolute_path(), "user_site": user_site, "script": os.path.abspath(script)}
        try:
            with self._limited(_START_LIMIT):
                _send(requests, _packed(setup))
                _skip(replies, self._mark)
        except ChildEndedError as error:
            raise ChildStartError(f"no child process can be started: {sys.executable}: {error}") from error

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def folder(self) -> str:
        """Return a folder for files of the script, which is removed with the child. Raises `OSError`."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="numba-cuda-autolink-")
            self._remove_folder = weakref.finalize(self, _remove, self._folder, os.getpid())
        return self._folder

    @property
    def has_ended(self) -> bool:
        """Whether it answers no more requests."""
        return self._ended is not None or self._process.poll() is not None

    def request(self, content: Content, blobs: Sequence[bytes] = (), *, timeout: float | None = None) -> Reply:
        """Have the script answer; *timeout* is in seconds. Raises `RequestError` if the script raised an exception,
        `ChildEndedError` if the child died or ran out of time, in this request or in an earlier one."""
        message = _packed(content, blobs)
        with self._lock:
            if self._ended is not None:
                raise self._ended
            with self._limited(timeout):
                _send(self._requests, message, blobs)
                reply, answer = _receive(self._replies)
                printed = self._printed()
        if "raised" in reply:
            raise RequestError(reply["raised"])
        return Reply(reply["answer"], answer, printed)

    def close(self) -> None:
        """End the child. It may be closed twice."""
        self._kill()
        self._process.wait()
        self._reader.join(_GRACE)
        # A process that the child started may still have the other end of the third pipe.
        for pipe in (self._requests, self._replies, *([] if self._reader.is_alive() else [self._noise])):
            with contextlib.suppress(OSError):  # what was written and is unread
                pipe.close()
        if self._folder is not None:
            self._remove_folder()

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _limited(self, seconds: float | None) -> Iterator[None]:
        """Kill the child after *seconds*, and whenever the block fails; raise `ChildEndedError` if the child died."""
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._kill()

        timer = threading.Timer(threading.TIMEOUT_MAX if seconds is None else seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            try:
                yield
            finally:
                timer.cancel()
                timer.join()  # so that it kills nothing once the child's number may be another process's
        except BaseException as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                # The pipes of a dying process are closed first; killed at once, it would be taken for killed.
                self._process.wait(_GRACE if isinstance(error, (EOFError, OSError)) else 0)
            how = f"no answer within {seconds:g} s" if expired.is_set() else _how_it_ended(self._process.returncode)
            self.close()
            self._ended = ChildEndedError(how, self._printed())
            from ..diagnostics.signal_handlers import (
                raised_by_signal_handler,  # not at the top: this file is a script too
            )

            if isinstance(error, (EOFError, OSError, ValueError)) and not raised_by_signal_handler(error):
                raise self._ended from None
            raise

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                self._process.kill()
            elif self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _read_noise(self) -> None:
        """Read what the child prints, in a thread, so that the child never waits for it."""
        text = bytearray()
        with contextlib.suppress(OSError, ValueError):
            while data := self._noise.read1(_MOST_PRINTED):
                text += data
                while (end := text.find(self._mark)) >= 0:
                    self._texts.put(bytes(text[:end]))
                    del text[: end + len(self._mark)]
                del text[:-_MOST_PRINTED]
        self._texts.put(bytes(text))

    def _printed(self) -> str:
        """Return what was printed up to the mark that the child sets before it replies, or to the child's end."""
        try:
            printed = self._texts.get(timeout=_GRACE)
        except queue.Empty:  # a process that the child started has the pipe
            return ""
        return printed[-_MOST_PRINTED:].decode("utf-8", "replace").strip()


def kill_all() -> None:
    """Kill all children of this process, which ends. They are in sessions of their own, which Ctrl-C does not reach."""
    for child in list(_running):
        child._kill()
        if child._folder is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child._process.wait(_GRACE)
            child._remove_folder()


def _remove(folder: str, process: int) -> None:
    if process == os.getpid():  # a fork leaves it to its parent
        shutil.rmtree(folder, ignore_errors=True)


def _leave_to_parent() -> None:
    """In a forked process: leave the children to the parent, with both ends of their pipes. What a pipe has still to
    write must not be written twice."""
    with contextlib.suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDWR)
        for child in list(_running):
            for pipe in filter(None, (child._process.stdin, child._process.stdout, child._process.stderr)):
                with contextlib.suppress(OSError, ValueError):  # it is closed
                    os.dup2(nothing, pipe.fileno(), inheritable=False)
        os.close(nothing)
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def absolute_path() -> list[str]:
    """Return the entries of ``sys.path`` that do not depend on the working directory."""
    return [entry for entry in sys.path if isinstance(entry, str) and os.path.isabs(entry)]


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "it closed its pipes or garbled a reply"
    names = {-number: number.name for number in signal.Signals}  # real-time signals have none
    return f"exit code {code}" if code >= 0 else names.get(code, f"signal {-code}")


def _packed(content: Content, blobs: Sequence[bytes] = ()) -> bytes:
    text = json.dumps([content, [len(blob) for blob in blobs]]).encode()
    return len(text).to_bytes(8, "little") + text


def _send(file: IO[bytes], message: bytes, blobs: Sequence[bytes] = ()) -> None:
    for part in (message, *blobs):
        file.write(part)
    file.flush()


def _receive(file: io.BufferedReader) -> tuple[Content, list[bytes]]:
    content, sizes = json.loads(_exactly(file, int.from_bytes(_exactly(file, 8), "little"), _MOST_CONTENT))
    return content, [_exactly(file, size, _MOST_BYTES) for size in sizes]


def _exactly(file: io.BufferedReader, size: int, most: int = 8) -> bytes:
    if size > most:
        raise ValueError(f"a message of {size} bytes")
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _skip(file: io.BufferedReader, mark: bytes) -> None:
    """Read up to *mark*, which the child sends when it runs: a startup file may have printed before."""
    text = bytearray()
    while not text.endswith(mark):
        if not (data := file.read1(_MOST_PRINTED)):
            raise EOFError
        text += data
        del text[:-_MOST_PRINTED]


def _end_with_parent(requests: int, parent: int) -> None:
    """Wait for the end of the process *parent*; then kill this process and all that it started."""
    poll = select.poll()
    poll.register(requests, 0)  # with no events, it reports only that nobody can write any more
    while os.getppid() == parent:  # an orphan gets another; a fork of the parent may still have the pipe
        for _, event in poll.poll(_WATCH_INTERVAL * 1000):
            if event & select.POLLHUP:
                os.killpg(0, signal.SIGKILL)
            poll.unregister(requests)  # the script has closed it
    os.killpg(0, signal.SIGKILL)


def _resolved(path: str) -> str | None:
    """Return the real path of a folder; None if it is relative and the working directory was removed."""
    try:
        return os.path.realpath(path)
    except FileNotFoundError:
        return None


def _main(mark: bytes) -> None:
    """Run the child: answer requests until there are no more."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is expected, and leaves no file
    requests, replies, marks = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(2), "wb")
    if hasattr(select, "poll"):
        threading.Thread(target=_end_with_parent, args=(requests.fileno(), os.getppid()), daemon=True).start()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    _send(replies, mark)
    setup, _ = _receive(requests)
    if setup["user_site"]:  # which an isolated interpreter leaves out
        site.addsitedir(setup["user_site"])
    here = _resolved(os.curdir)
    # Where an installed package lies in the working directory (an editable install), that is in the path already.
    sys.path[:] = [entry for entry in setup["path"] if entry in sys.path or _resolved(entry) != here]
    spec = importlib.util.spec_from_file_location("numba_cuda_autolink_child", setup["script"])
    assert spec is not None and spec.loader is not None
    script = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    with contextlib.suppress(EOFError):
        while True:
            content, blobs = _receive(requests)
            try:
                answer, made = script.answer(content, blobs)
                message = _packed({"answer": answer}, made)
            except Exception as error:
                message, made = _packed({"raised": f"{error}" or type(error).__name__}), []
            for file in sys.stdout, sys.stderr:
                with contextlib.suppress(AttributeError, OSError, ValueError):  # the script may have closed it
                    file.flush()
            _send(marks, mark)
            _send(replies, message, made)


if __name__ == "__main__":
    _main(sys.argv[1].encode())


def fork_lock() -> threading.Lock:
    """Return a new lock that is free in forked processes. They keep it for ever: it is one for a module."""
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]
    return lock
