# SPDX-License-Identifier: BSD-2-Clause
"""Child processes: an isolated Python interpreter that answers requests, and whose crash is an ordinary error.

The parent starts `child_main` as a script (``python -I``), which loads the child's script by its path. That script
imports nothing relative and defines ``answer(content, blobs)``: it gets a dictionary of JSON values and a list of
bytes, and returns the same two; ``after_answer(is_idle)``, if it defines that, is called when a reply is sent, with a
function that waits for some seconds and returns whether no request came. Code in the working directory is never run:
the child's ``sys.path`` has the parent's absolute entries without the working directory. The environment is the
parent's, so that libraries are found the same way, without what gives access to a shared cache: no child asks one.

What a library prints cannot corrupt a message: in the child, file descriptors 1 and 2 both lead to another pipe. Its
content is returned with each reply or error, and never shown.

A child ends within about a second of its parent, however that ends and whatever the child is doing: a thread watches
the parent. (``PR_SET_PDEATHSIG`` would watch the thread that started the child, which may end long before its process.)
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import queue
import re
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ..diagnostics.signal_handlers import raised_by_signal_handler
from . import child_main
from .child_main import packed, receive, send

if TYPE_CHECKING:
    from .child_main import Content

# The variables of a shared cache, of fsspec, of the clouds that it may be in, and all that are named like a secret.
_SECRETS = re.compile(
    r"NUMBA_CUDA_AUTOLINK_CACHE_REMOTE|FSSPEC_|AWS_|AZURE_|CLOUDSDK_|GCLOUD_|GOOGLE_"
    r"|.*(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|_KEY$|_KEY_)",
    re.IGNORECASE,
)

_START_LIMIT = 60.0  # seconds until the interpreter runs
_GRACE = 2.0  # seconds from the end of a child's pipes to its own end
_MOST_PRINTED = 1 << 16  # bytes: the last ones are kept


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


class ChildProcess(contextlib.AbstractContextManager["ChildProcess"]):
    """A child process that runs *script*, a file, with *environment* added to this process's and at most *memory*
    bytes. It may have a *folder* for files, which is removed at its end. Without packages, which the script then cannot
    import, it starts in a third of the time. Raises `ChildStartError` if there is no interpreter to start, or it does
    not start.

    Any number of requests may be made, one at a time, from any thread. Close it, or use it in a ``with`` statement.
    """

    def __init__(
        self,
        script: str,
        *,
        environment: Mapping[str, str] | None = None,
        memory: int | None = None,
        has_folder: bool = False,
        has_packages: bool = True,
    ):
        if not sys.executable:
            raise ChildStartError("no child process can be started: this Python is embedded (sys.executable is empty)")
        self._mark = os.urandom(16).hex().encode()
        self.folder = ""
        inherited = {name: value for name, value in os.environ.items() if not _SECRETS.match(name)}
        try:
            if has_folder:
                self.folder = tempfile.mkdtemp(prefix="numba-cuda-autolink-")
                self._remove_folder = weakref.finalize(self, _remove, self.folder, os.getpid())
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    *([] if has_packages else ["-S"]),
                    os.path.abspath(child_main.__file__),
                    self._mark.decode(),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=inherited | dict(environment or {}),
                start_new_session=True,  # a group of its own, to be killed as a whole
            )
        except OSError as error:
            raise ChildStartError(f"no child process can be started: {error}") from error
        # What an interrupt leaves to nobody ends too: `Popen` would keep it, with its pipes open.
        weakref.finalize(self, _kill, self._process, os.getpid())
        _running.add(self)
        requests, replies, noise = self._process.stdin, self._process.stdout, self._process.stderr
        assert requests is not None and isinstance(replies, io.BufferedReader) and isinstance(noise, io.BufferedReader)
        self._requests, self._replies, self._noise = requests, replies, noise
        self._texts: queue.Queue[bytes] = queue.Queue()
        # The thread holds no reference to this object: a child that nobody has ends.
        arguments = noise, self._mark, self._texts
        self._reader = threading.Thread(target=_read_noise, args=arguments, name="printed by a child", daemon=True)
        self._reader.start()
        self._lock = threading.Lock()
        self._ended: ChildEndedError | None = None
        user_site = site.getusersitepackages() if site.ENABLE_USER_SITE and has_packages else None
        setup = {
            "path": absolute_path() if has_packages else None,
            "user_site": user_site,
            "script": os.path.abspath(script),
            "memory": memory,
            "folders": [self.folder] if self.folder else [],
        }
        try:
            with self._limited(_START_LIMIT):
                send(requests, packed(setup))
                _skip(replies, self._mark)
        except ChildEndedError as error:
            raise ChildStartError(f"no child process can be started: {sys.executable}: {error}") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._ended is not None or self._process.poll() is not None

    def request(self, content: Content, blobs: Sequence[bytes] = (), *, timeout: float | None = None) -> Reply:
        """Have the script answer; *timeout* is in seconds. Raises `RequestError` if the script raised an exception,
        `ChildEndedError` if the child died or ran out of time, in this request or in an earlier one."""
        message = packed(content, blobs)
        with self._lock:
            if self._ended is not None:
                raise self._ended
            with self._limited(timeout):
                send(self._requests, message, blobs)
                reply, answer = receive(self._replies)
                printed = self._printed()
        if "raised" in reply:
            raise RequestError(reply["raised"])
        return Reply(reply["answer"], answer, printed)

    def close(self) -> None:
        """End the child. It may be closed twice."""
        self.kill()
        self._process.wait()
        self._reader.join(_GRACE)
        # A process that the child started may still have the other end of the third pipe.
        for pipe in (self._requests, self._replies, *([] if self._reader.is_alive() else [self._noise])):
            with contextlib.suppress(OSError):  # what was written and is unread
                pipe.close()
        if self.folder:
            self._remove_folder()

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _limited(self, seconds: float | None) -> Iterator[None]:
        """Kill the child after *seconds*, and whenever the block fails; raise `ChildEndedError` if the child died."""
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self.kill()

        timer = threading.Timer(threading.TIMEOUT_MAX if seconds is None else seconds, expire)
        timer.daemon = True
        try:
            try:
                timer.start()
                yield
            finally:
                timer.cancel()
                with contextlib.suppress(RuntimeError):  # it had not started when an interrupt came
                    timer.join()  # so that it kills nothing once the child's number may be another process's
        except BaseException as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                # The pipes of a dying process are closed first; killed at once, it would be taken for killed.
                self._process.wait(_GRACE if isinstance(error, (EOFError, OSError)) else 0)
            how = f"no answer within {seconds:g} s" if expired.is_set() else _how_it_ended(self._process.returncode)
            self.close()
            self._ended = ChildEndedError(how, self._printed())
            if isinstance(error, (EOFError, OSError, ValueError)) and not raised_by_signal_handler(error):
                raise self._ended from None
            raise

    def kill(self) -> None:
        """Kill the child, and all that it started; who waits for it gets `ChildEndedError`."""
        _kill(self._process, os.getpid())

    def _printed(self) -> str:
        """Return what was printed up to the mark that the child sets before it replies, or to the child's end."""
        try:
            printed = self._texts.get(timeout=_GRACE)
        except queue.Empty:  # a process that the child started has the pipe
            return ""
        return printed[-_MOST_PRINTED:].decode("utf-8", "replace").strip()


def _kill(process: subprocess.Popen[bytes], parent: int) -> None:
    """Kill a child of the process *parent*, and all that it started, unless this is a fork of the parent."""
    with contextlib.suppress(OSError):
        if parent != os.getpid():
            return
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _read_noise(noise: io.BufferedReader, mark: bytes, texts: queue.Queue[bytes]) -> None:
    """Read what a child prints, in a thread, so that the child never waits for it."""
    text = bytearray()
    with contextlib.suppress(OSError, ValueError):
        while data := noise.read1(_MOST_PRINTED):
            text += data
            while (end := text.find(mark)) >= 0:
                texts.put(bytes(text[:end]))
                del text[: end + len(mark)]
            del text[:-_MOST_PRINTED]
    texts.put(bytes(text))


def kill_all() -> None:
    """Kill all children of this process, which ends. They are in sessions of their own, which Ctrl-C does not reach."""
    for child in list(_running):
        child.kill()
        if child.folder:
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


os.register_at_fork(after_in_child=_leave_to_parent)


def limited_memory(most: int) -> int:
    """Return how many bytes a child may take: *most*, or half of the machine's memory if that is less."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return min(most, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    return most


def absolute_path() -> list[str]:
    return [entry for entry in sys.path if isinstance(entry, str) and os.path.isabs(entry)]


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "it closed its pipes or garbled a reply"
    names = {-number: number.name for number in signal.Signals}  # real-time signals have none
    return f"exit code {code}" if code >= 0 else names.get(code, f"signal {-code}")


def _skip(file: io.BufferedReader, mark: bytes) -> None:
    """Read up to *mark*, which the child sends when it runs: a startup file may have printed before."""
    text = bytearray()
    while not text.endswith(mark):
        if not (data := file.read1(_MOST_PRINTED)):
            raise EOFError
        text += data
        del text[:-_MOST_PRINTED]


def fork_lock() -> threading.Lock:
    """Return a new lock that is free in forked processes. They keep it for ever: it is one for a module."""
    lock = threading.Lock()
    os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]
    return lock


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
