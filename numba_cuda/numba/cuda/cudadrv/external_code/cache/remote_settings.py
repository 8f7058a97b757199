# SPDX-License-Identifier: BSD-2-Clause
"""The settings of the shared cache: where it is, whether this process writes to it, and which entries it trusts."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from .patience import PER_BUILD

REMOTE = "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE"
REMOTE_MODE = "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_MODE"
REMOTE_KEY = "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY"
REMOTE_LOCK = "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_LOCK"
REMOTE_WAIT = "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_WAIT"

_SHORTEST_KEY = 16  # bytes


class RemoteSettingsError(ValueError):
    """The settings of the shared cache contradict each other, or leave open which entries to trust."""


@dataclass(frozen=True)
class RemoteSettings:
    """A shared cache. At least one of ``key`` and ``lock`` is set.

    Attributes
    ----------
    address:
        A folder for fsspec: ``"s3://bucket/folder"``, ``"file:///net/cache"``, ``"https://host/folder"``, ...
    writes:
        Whether what is built here is written there.
    key:
        The secret that entries are signed with; empty if only ``lock`` says what is trusted.
    lock:
        The SHA-256 of the entries that are trusted whoever signed them, by the digests of their keys.
    wait:
        How many seconds each build may wait in vain.
    """

    address: str
    writes: bool = False
    key: bytes = field(default=b"", repr=False)
    lock: Mapping[bytes, bytes] = field(default_factory=dict, repr=False)
    wait: float = PER_BUILD

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> RemoteSettings | None:
        """Return the settings that *environ* describes; ``None`` if it names no address. Raises `RemoteSettingsError`,
        or `OSError` if the file of a key or lock cannot be read."""
        if not (address := environ.get(REMOTE, "").strip()):
            return None
        if "://" not in address and not os.path.isabs(address):  # a folder below whatever the working directory is
            raise RemoteSettingsError(f"{REMOTE}={address!r}: expected an address, such as s3://bucket/folder")
        mode = environ.get(REMOTE_MODE, "").strip().lower() or "ro"
        if mode not in ("ro", "rw"):
            raise RemoteSettingsError(f"{REMOTE_MODE}={mode!r}: expected ro or rw")
        key = key_in(environ)
        lock = environ.get(REMOTE_LOCK, "")
        if not key and not lock:
            raise RemoteSettingsError(f"set {REMOTE_KEY} or {REMOTE_LOCK}, which tell your own entries from others'")
        if not key and mode == "rw":
            raise RemoteSettingsError(f"{REMOTE_MODE}=rw needs {REMOTE_KEY} to sign what it writes")
        wait = _wait_in(environ)
        return cls(address, mode == "rw", key, read_lock(lock) if lock else {}, wait)


def _wait_in(environ: Mapping[str, str]) -> float:
    if not (text := environ.get(REMOTE_WAIT, "").strip()):
        return PER_BUILD
    try:
        milliseconds = float(text)
    except ValueError:
        milliseconds = 0.0
    if not 0 < milliseconds < math.inf:
        raise RemoteSettingsError(f"{REMOTE_WAIT}={text!r}: expected a number of milliseconds above 0")
    return milliseconds / 1e3


def key_in(environ: Mapping[str, str]) -> bytes:
    """Return the key of the site, empty if there is none: the variable's text, or what is in the file at a path after
    ``@``. Raises `RemoteSettingsError` if it is too short, or `OSError`."""
    text = environ.get(REMOTE_KEY, "")
    if text.startswith("@"):
        with open(os.path.expanduser(text[1:]), "rb") as file:
            key = file.read().strip()
    else:
        key = text.strip().encode()
    if key and len(key) < _SHORTEST_KEY:
        raise RemoteSettingsError(f"the key in {REMOTE_KEY} is shorter than {_SHORTEST_KEY} bytes")
    return key


def read_lock(path: str) -> dict[bytes, bytes]:
    """Return what the lock file at *path* lists. Raises `RemoteSettingsError` or `OSError`."""
    with open(os.path.expanduser(path), encoding="ascii", errors="replace") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    try:
        pairs = {bytes.fromhex(digest): bytes.fromhex(sha256) for digest, sha256 in lines}
    except ValueError as error:
        raise RemoteSettingsError(f"{path} is not a lock file: {error}") from error
    if any(len(each) != hashlib.sha256().digest_size for pair in pairs.items() for each in pair):
        raise RemoteSettingsError(f"{path} is not a lock file: it holds what is not the SHA-256 of anything")
    return pairs


def lock_line(digest: bytes, entry: bytes) -> str:
    """Return the line of a lock file that trusts *entry*, under the key with *digest*."""
    return f"{digest.hex()} {hashlib.sha256(entry).hexdigest()}\n"
