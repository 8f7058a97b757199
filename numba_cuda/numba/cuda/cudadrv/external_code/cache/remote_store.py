# SPDX-License-Identifier: BSD-2-Clause
"""The cache that machines share, at an address of fsspec: read, write and authenticate entries.

    HMAC-SHA256 of the digest of the key and the entry (32 bytes) | entry          a file, named by that digest

An entry is used if it was signed with a key of this site for the name under which it was found. A failure is a miss,
and is counted. After one answer that takes too long, this process stops asking. Nobody waits for writes.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import functools
import hashlib
import hmac
import os
import queue
import re
import secrets
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .disk import remove_abandoned
from .entry import DamagedEntryError, open_entry, unpack
from .settings import REMOTE, REMOTE_WAIT, CacheWarning, RemoteSettings, redact

LARGEST = 256 << 20  # bytes of one file
_MOST_PENDING = 256  # writes; further ones are dropped
_LONGEST_TEXT = 200  # characters of a server's text that are shown
_TEMPORARY = ".numba-cuda-autolink-"  # begins the name of a file that is being written
_SOME = "00"  # begins the name of one entry in 256: where that is written, what killed processes left is removed

_PURPOSE = b"numba-cuda-autolink shared entry 2\0"
_SIGNATURE_SIZE = hashlib.sha256().digest_size


class UntrustedEntryError(ValueError):
    """An entry is not one of the site's own."""


def sign(keys: Sequence[bytes], digest: bytes, entry: bytes) -> bytes:
    """Return *entry*, which was written under the key with *digest*, after its signature with the first of *keys*."""
    return _signature(keys[0] if keys else b"", digest, entry) + entry


def authenticate(keys: Sequence[bytes], digest: bytes, blob: bytes) -> bytes:
    """Return the entry in a signed *blob*. Raise `UntrustedEntryError` unless it was signed with one of *keys* under
    the key with *digest*, and is as it was written."""
    signature, entry = blob[:_SIGNATURE_SIZE], blob[_SIGNATURE_SIZE:]
    if not any(key and hmac.compare_digest(signature, _signature(key, digest, entry)) for key in keys):
        raise UntrustedEntryError("its signature is not this site's")
    try:
        unpack(entry, digest)
    except DamagedEntryError as error:  # which its author signed
        raise UntrustedEntryError(str(error)) from error
    return entry


def entry_of(blob: bytes) -> bytes:
    """Return the entry in a *blob*, whoever signed it."""
    return blob[_SIGNATURE_SIZE:]


def _signature(key: bytes, digest: bytes, entry: bytes) -> bytes:
    return hmac.digest(key, _PURPOSE + len(digest).to_bytes(8, "little") + digest + entry, "sha256")


class SharedFiles:
    """The files in the folder at an address of fsspec. Raises what fsspec raises."""

    def __init__(self, address: str):
        import fsspec

        self._address = address
        # It imports what the address needs, which takes longer than many an answer.
        fsspec.get_filesystem_class(fsspec.core.split_protocol(address)[0])

    def read(self, name: str) -> bytes | None:
        system, root, is_local = self._folder
        try:
            if is_local:
                with open_entry(os.path.join(root, name)) as file:
                    content = file.read(LARGEST + 1)
            else:  # in one request, where opening a file takes another one for its size
                content = system.cat_file(f"{root}/{name}", start=0, end=LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            content = b""  # S3 has no range of an empty file
        if len(content) > LARGEST:
            raise OSError(f"{name} is larger than {LARGEST} bytes")
        return bytes(content)

    def write(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all."""
        if len(content) > LARGEST:  # which nobody would read
            raise OSError(f"{name} is larger than {LARGEST} bytes")
        system, root, is_local = self._folder
        if not is_local:  # object stores write in one step
            system.pipe_file(f"{root}/{name}", content)
            return
        os.makedirs(root, exist_ok=True)
        temporary = os.path.join(root, _TEMPORARY + secrets.token_hex(8))
        try:
            with open(temporary, "xb") as file:
                file.write(content)
            os.replace(temporary, os.path.join(root, name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if name.startswith(_SOME):
            remove_abandoned(root, _TEMPORARY)

    @functools.cached_property
    def _folder(self) -> tuple[Any, str, bool]:
        """The file system, the folder in it, and whether that is one of this machine. All files are in the folder
        itself, so that no link in it leads to another one."""
        import fsspec

        is_web = self._address.startswith(("http://", "https://"))
        system, root = fsspec.core.url_to_fs(self._address, **_web_options() if is_web else {})
        protocols = system.protocol
        return system, root.rstrip("/"), "file" in ((protocols,) if isinstance(protocols, str) else protocols)


def _web_options() -> dict[str, Any]:
    """Return options of fsspec that bound what a web server can make a process read: it may send more than it was asked
    for, or little that unpacks to much."""
    import aiohttp
    import fsspec

    class BoundedResponse(aiohttp.ClientResponse):
        async def read(self) -> bytes:
            parts, size = [], 0
            async for part in self.content.iter_any():
                parts.append(part)
                if (size := size + len(part)) > LARGEST:
                    self.close()
                    parts.clear()  # which the error's traceback would keep
                    raise OSError(errno.EFBIG, f"the server sent more than {LARGEST} bytes")
            return b"".join(parts)

    own = fsspec.config.conf.get("http", {}).get("client_kwargs", {})
    return {"client_kwargs": {**own, "auto_decompress": False, "response_class": BoundedResponse}}


class RemoteStore:
    """The entries of the shared cache in *settings*, whose files are *opened* when they are first needed."""

    def __init__(self, settings: RemoteSettings, opened: Callable[[], SharedFiles] | None = None):
        self.settings = settings
        # What this process did with the shared cache: entries found, missing and not trusted, questions that failed or
        # were not asked, entries written, writes that failed, and bytes in both directions.
        self.counts: collections.Counter[str] = collections.Counter()
        self._open_files = opened or functools.partial(SharedFiles, settings.address)
        self._files: SharedFiles | None = None
        self._lock = threading.Lock()
        self._is_off = False
        # The entries that need not be written, by digest; one of the same key with other content replaces it.
        self._is_there: dict[bytes, bytes] = {}
        self._unstored: set[bytes] = set()
        self._writes: queue.Queue[tuple[bytes, bytes, bytes, bool]] = queue.Queue()
        self._has_writer = self._is_stalled = False
        self._failed_write = ""
        self._warned: set[str] = set()

    def read(self, digest: bytes) -> bytes | None:
        """Return the entry under the key with *digest*, or ``None``: if there is none that is trusted, or no answer."""
        self.warn_of_writes()
        if self._is_off:
            self.counts["not_asked"] += 1
            return None
        try:
            blob = self._ask(digest.hex())
        except Exception as error:
            self.counts["failed"] += 1
            self._warn("read", f"cannot read its shared cache {self._where}: {self._describe(error)}.")
            return None
        if blob is None:
            self.counts["missing"] += 1
            return None
        self.counts["bytes_read"] += len(blob)
        try:
            entry = authenticate(self.settings.keys, digest, blob)
        except UntrustedEntryError as error:
            self.counts["untrusted"] += 1
            self._warn("trust", f"does not use entries of its shared cache {self._where}: {error}.")
            return None
        self.counts["found"] += 1
        self._is_there[digest] = _mark(entry)
        return entry

    def _ask(self, name: str) -> bytes | None:
        """Read a file in another thread, which a store that stalls may keep."""
        answers: queue.SimpleQueue[bytes | Exception | None] = queue.SimpleQueue()
        try:
            files = self._open()
            _start(lambda: answers.put(_outcome(files, name)))
            answer = answers.get(timeout=self.settings.wait)
        except queue.Empty:
            self._is_off = True
            raise TimeoutError(
                f"no answer in {self.settings.wait:g} s, so that this process asks for nothing anymore"
                f" ({REMOTE_WAIT} sets the time)"
            ) from None
        except Exception:  # it cannot be opened, or this process is ending
            self._is_off = True
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer

    def write(self, digest: bytes, entry: bytes, *, if_missing: bool = False) -> None:
        """Queue an entry to be written, unless it is there, or this process does not write. Whether it is there is
        asked before, *if_missing*."""
        known = self._is_there.get(digest)
        if self.settings.writes and (known is None or not (if_missing or known == _mark(entry))):
            self._unstored.add(digest)
            if self._writes.unfinished_tasks < _MOST_PENDING:
                self._queue(digest, entry, if_missing)
        self.warn_of_writes()

    def _queue(self, digest: bytes, entry: bytes, if_missing: bool) -> None:
        try:
            self._open()
            with self._lock:
                if not self._has_writer:
                    _start(self._write_all)
                    self._has_writer = True
        except Exception as error:
            self._note_failed_write(error)
        else:
            self._writes.put((digest, _mark(entry), sign(self.settings.keys, digest, entry), if_missing))

    def flush(self, timeout: float) -> int:
        """Wait until all is written, at most *timeout* seconds. Return how many entries of this process are not stored.
        A store that stalls is waited for once, until it goes on."""
        with self._writes.all_tasks_done:
            if not self._is_stalled:
                is_done = self._writes.all_tasks_done.wait_for(lambda: not self._writes.unfinished_tasks, timeout)
                self._is_stalled = not is_done
        return len(self._unstored)

    def _write_all(self) -> None:
        files = self._open()
        while True:
            digest, mark, blob, if_missing = self._writes.get()
            is_written = False
            try:
                if is_written := not (if_missing and self._has(files, digest)):
                    files.write(digest.hex(), blob)
            except BaseException as error:  # asyncio's CancelledError is one
                self._note_failed_write(error)
            else:
                self._is_there[digest] = mark
                self._unstored.discard(digest)
                self.counts["written"] += is_written
                self.counts["bytes_written"] += len(blob) * is_written
            finally:
                self._is_stalled = False
                self._writes.task_done()

    def _has(self, files: SharedFiles, digest: bytes) -> bool:
        """Whether there is an entry under the key with *digest* that a reader would use."""
        try:
            authenticate(self.settings.keys, digest, files.read(digest.hex()) or b"")
        except UntrustedEntryError:
            return False
        return True

    def _note_failed_write(self, error: BaseException) -> None:
        """Note what another thread warns of: where warnings are errors, they would end this one."""
        self.counts["failed_writes"] += 1
        self._failed_write = self._failed_write or self._describe(error)

    def warn_of_writes(self) -> None:
        if self._failed_write:
            self._warn("write", f"cannot write to its shared cache {self._where}: {self._failed_write}.")

    def _open(self) -> SharedFiles:
        with self._lock:
            if self._files is None:
                self._files = self._open_files()
            return self._files

    @property
    def _where(self) -> str:
        return redact(self.settings.address)

    def _describe(self, error: BaseException) -> str:
        """Return one printable line about *error*, whose text may be a server's, without the password to it."""
        text = str(error)
        if isinstance(error, ImportError):
            text += " (pip install 'numba-cuda-autolink[remote]', and fsspec's package for it)"
        if password := re.search(r"://[^:@]*:(.+)@", self.settings.address):
            text = text.replace(password[1], "***")
        printable = "".join(each if each.isprintable() else " " for each in f"{type(error).__name__}: {redact(text)}")
        return " ".join(printable.split())[:_LONGEST_TEXT]

    def _warn(self, fault: str, message: str) -> None:
        if fault not in self._warned:
            self._warned.add(fault)
            advice = f"It continues without it. Unset {REMOTE} to do without."
            warnings.warn(f"numba-cuda-autolink {message} {advice}", CacheWarning, stacklevel=2)


def _mark(entry: bytes) -> bytes:
    """Return what tells the content of *entry* from that of others."""
    return hashlib.sha256(entry).digest()


def _outcome(files: SharedFiles, name: str) -> bytes | Exception | None:
    try:
        return files.read(name)
    except Exception as error:
        return error
    except BaseException as error:  # asyncio's CancelledError would end a build
        return ConnectionError(f"{type(error).__name__}: {error}")


def _start(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="numba-cuda-autolink shared cache", daemon=True).start()
