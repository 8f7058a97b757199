# SPDX-License-Identifier: BSD-2-Clause
"""The format of a cache entry on disk: a checksum, the key's kind, name and parts, and the data.

    magic (8 bytes) | sizes of header (4) and data (8) | digest of the key (32) | SHA-256 of the rest (32) | header |
    data

The header is JSON. To read an entry executes and unpickles nothing.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import struct
from dataclasses import dataclass
from typing import BinaryIO

from .key import CacheKey, PartsTable

_MAGIC = b"NCALINK1"
_PREFIX = struct.Struct("<8sIQ32s")
_CHECKSUM_END = _PREFIX.size + 32
_LONGEST_HEADER = 16 << 20


class DamagedEntryError(ValueError):
    """An entry does not hold what was written under its key."""


@dataclass(frozen=True)
class StoredEntry:
    """An entry on disk, as its header describes it.

    Attributes
    ----------
    path:
        The entry's file.
    size:
        The size of the file in bytes.
    written, used:
        When it was written and last used, in seconds since the epoch.
    kind, name, digest, parts:
        Those of its key. ``kind`` is ``"?"`` if the header cannot be read.
    """

    path: str
    size: int
    written: float
    used: float
    kind: str = "?"
    name: str = ""
    digest: bytes = b""
    parts: PartsTable = ()


def pack(key: CacheKey, data: bytes) -> bytes:
    """Return the entry that holds *data* under *key*."""
    header = json.dumps({"kind": key.kind, "name": key.name, "parts": key.table}).encode()
    prefix = _PREFIX.pack(_MAGIC, len(header), len(data), key.digest)
    return b"".join((prefix, _checksum(prefix, header, data), header, data))


def unpack(entry: bytes, digest: bytes) -> bytes:
    """Return the data of an *entry* that was written under the key with *digest*.

    Raises
    ------
    DamagedEntryError
        If a single bit differs from what was written, or the entry was written under another key.
    """
    if len(entry) < _CHECKSUM_END:
        raise DamagedEntryError("it is empty" if not entry else "it is cut off")
    magic, header_size, size, entry_digest = _PREFIX.unpack_from(entry)
    if magic != _MAGIC:
        raise DamagedEntryError("it does not begin with an entry's magic number")
    if len(entry) != _CHECKSUM_END + header_size + size:
        raise DamagedEntryError("its size is wrong")
    view = memoryview(entry)
    if view[_PREFIX.size : _CHECKSUM_END] != _checksum(view[: _PREFIX.size], view[_CHECKSUM_END:]):
        raise DamagedEntryError("its checksum is wrong")
    if entry_digest != digest:
        raise DamagedEntryError("it belongs to another key")
    return entry[_CHECKSUM_END + header_size :]


def describe(path: str) -> StoredEntry:
    """Return what the header of the entry at *path* says. The data is not read, so the checksum is not checked.

    Raises
    ------
    OSError, DamagedEntryError
        If it is not a file that can be read.
    """
    with open_regular(path, getattr(os, "O_NOATIME", 0)) as file:
        status = os.fstat(file.fileno())
        where = (path, status.st_size, status.st_mtime, status.st_atime)
        try:
            magic, header_size, _, digest = _PREFIX.unpack(file.read(_PREFIX.size))
            if magic != _MAGIC or header_size > _LONGEST_HEADER:
                return StoredEntry(*where)
            file.seek(_CHECKSUM_END)
            header = json.loads(file.read(header_size))
            parts = tuple((str(label), str(value)) for label, value in header["parts"])
            return StoredEntry(*where, str(header["kind"]), str(header["name"]), digest, parts)
        except (struct.error, ValueError, KeyError, TypeError, RecursionError):
            return StoredEntry(*where)


def open_regular(path: str, flags: int = 0) -> BinaryIO:
    """Open the regular file at *path*, with *flags* if the system permits: nothing waits for a pipe or a device, and no
    link is followed.

    Raises
    ------
    DamagedEntryError
        If it is something else.
    OSError
        If it cannot be opened.
    """
    safe = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        try:
            descriptor = os.open(path, safe | flags)
        except PermissionError:  # O_NOATIME is for the owner
            descriptor = os.open(path, safe)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket
            raise DamagedEntryError("it is not a regular file") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedEntryError("it is not a regular file")
    return os.fdopen(descriptor, "rb")


def _checksum(*pieces: bytes | memoryview) -> bytes:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.digest()
