# SPDX-License-Identifier: BSD-2-Clause
"""Cache keys, which are tables of named parts, and the format of an entry on disk: a checksum, the key's kind, name and
parts with short texts among them, and the data.

    magic (8 bytes) | sizes of header (4) and data (8) | digest of the key (32) | SHA-256 of the rest (32) | header |
    data

The header is JSON. To read an entry executes and unpickles nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import hashlib
import json
import os
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from numba_cuda_autolink.files import NO_LINK, open_regular

# Increased when the meaning of a digest changes, so that no entry of an earlier version is found.
KEY_SCHEMA = 2

_LONGEST_SHOWN = 80
_LONGEST_KEPT = 2000  # characters of a text that an entry has, to show what changed

DAMAGED = "replaces a damaged entry"  # the label of that fact
MODULE = "module"  # the label of the name of a kernel's module
PLACE_OF = "place of "  # before the label of a value, in that of the place where it is assigned
FILE = "file "  # before the name of a file, in the label of its digest
CLASS = "class "  # before the name of the class of an object that provides code, in the label of its lines
MADE_BY = "made by"  # the label of the objects that provide a source

# A key as it is stored with its entry and shown to users: labels, and values short enough to read.
PartsTable = tuple[tuple[str, str], ...]
# What users know of what is built, in their words: each fact has a subject, which is a file or function or empty, a
# label and a value.
Facts = tuple[tuple[str, str, str], ...]
# For the text behind a fact: ``label subject``, and a digest of each line.
LineDigests = tuple[tuple[str, tuple[str, ...]], ...]


@functools.lru_cache(256)  # kernels share the files of one library
def digests_of_lines(text: str) -> tuple[str, ...]:
    return tuple(hashlib.sha256(line.encode("utf-8", "surrogatepass")).hexdigest()[:8] for line in text.splitlines())


@dataclass(frozen=True)
class CacheKey:
    """Everything that a cached artefact depends on. Raises `ValueError` if two parts have one label.

    Two keys are equal if they have the same kind and the same parts in the same order. Text never equals bytes, and no
    part can run into the next.
    """

    kind: str  # what is cached: ``"program"``, ``"headers"``, ``"link"``, ``"kernel"``, ...; not empty
    name: str = field(compare=False)  # What messages call it. It does not affect equality.
    # Pairs of a label and a value, which is text or bytes. Labels are unique.
    parts: tuple[tuple[str, str | bytes], ...]
    # Files of which the parts have one digest together: the label is `FILE` and the name.
    files: PartsTable = field(default=(), compare=False)
    # Give what users are told of the entry, and the lines of the texts behind that; called when it is written.
    facts: Callable[[], Facts] = field(default=tuple, compare=False)
    lines: Callable[[], LineDigests] = field(default=tuple, compare=False)
    own_texts: Callable[[], PartsTable] = field(default=tuple, compare=False)  # those texts, of sources
    # The kernel that it is a build of, with its file, types and target: what a run uses under keys of one subject is
    # what the next run's builds are compared with.
    subject: tuple[str, ...] = field(default=(), compare=False)
    # Gives a digest of what may have been edited since the last run and needs no build; called where it is used.
    state: Callable[[], str] = field(default=str, compare=False)
    uses: tuple[bytes, ...] = field(default=(), compare=False)  # the digests of the keys of what was linked
    base: bytes = field(default=b"", compare=False)  # that of the entry that it is compared with
    run: str = field(default="", compare=False)  # the process that built it
    # The lines of the same texts as the last run read them, and the facts of the base as that run knew them, where
    # something was edited and that needed no build.
    read_before: LineDigests = field(default=(), compare=False)
    facts_before: Facts = field(default=(), compare=False)

    def __post_init__(self) -> None:
        labels = [label for label, _ in self.parts]
        if len(set(labels)) < len(labels):
            raise ValueError(f"a cache key has two parts of one label: {', '.join(labels)}")

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    def known_once(self) -> CacheKey:
        """Return the key of what was built: its facts and lines are found once, by who first asks for them."""
        return dataclasses.replace(self, facts=functools.cache(self.facts), lines=functools.cache(self.lines))

    @functools.cached_property
    def digest(self) -> bytes:
        """The SHA-256 of the schema, the kind and the parts, each framed by its length."""
        digest = hashlib.sha256(b"numba-cuda-autolink cache key\0")
        digest.update(_frame(str(KEY_SCHEMA)) + _frame(self.kind))
        for label, value in self.parts:
            digest.update(_frame(label) + (b"t" if isinstance(value, str) else b"b") + _frame(value))
        return digest.digest()

    @functools.cached_property
    def table(self) -> PartsTable:
        """The parts as they are stored with the entry: short text as it is, other values as size and digest."""
        shown = ((label, _show(value)) for label, value in self.parts)
        return (("key schema", str(KEY_SCHEMA)), *shown, *self.files)

    @property
    def texts(self) -> PartsTable:
        """The user's own texts, or else those that the table has as a digest, where they are short enough to be kept
        with the entry."""
        parts = ((label, value) for label, value in self.parts if isinstance(value, str) and value != _show(value))
        return tuple((label, value) for label, value in self.own_texts() or parts if len(value) <= _LONGEST_KEPT)


def _encode(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value  # paths may hold lone surrogates


def _frame(value: str | bytes) -> bytes:
    data = _encode(value)
    return len(data).to_bytes(8, "little") + data


def _show(value: str | bytes) -> str:
    if isinstance(value, str) and len(value) <= _LONGEST_SHOWN and value.isprintable():
        return value
    unit = "characters" if isinstance(value, str) else "bytes"
    return f"<{len(value)} {unit}, sha256 {hashlib.sha256(_encode(value)).hexdigest()[:16]}>"


IS_TEXT = re.compile(r"<\d+ characters, ")
_MAGIC = b"NCALINK1"
_PREFIX = struct.Struct("<8sIQ32s")
_CHECKSUM_END = _PREFIX.size + 32
_LONGEST_HEADER = 16 << 20


class DamagedEntryError(ValueError):
    """An entry does not hold what was written under its key."""


@dataclass(frozen=True)
class StoredEntry:
    """An entry on disk, as its header describes it: its size in bytes; when it was *written* and last *used*, in
    seconds since the epoch; what its key has, of some texts the whole; what users know of it; and digests of the lines
    of their own texts. *base* is the digest of the entry of the build before it, *uses* are those of what it links, and
    *run* is the process that built it. *kind* is ``"?"`` if the header cannot be read."""

    path: str
    size: int
    written: float
    used: float
    kind: str = "?"
    name: str = ""
    digest: bytes = b""
    parts: PartsTable = ()
    texts: PartsTable = ()
    facts: Facts = ()
    lines: LineDigests = ()
    base: bytes = b""
    uses: tuple[bytes, ...] = ()
    run: str = ""
    read_before: LineDigests = ()
    facts_before: Facts = ()

    def as_known(self, facts: Facts, lines: LineDigests) -> StoredEntry:
        """Return the entry as a later run knew it, which found it in the cache with these *facts*, if any, and read
        these *lines*."""
        all_lines = dict(self.lines) | dict(lines)
        return dataclasses.replace(self, facts=facts or self.facts, lines=tuple(all_lines.items()))


def described(key: CacheKey) -> StoredEntry:
    """Return what `describe` would say of an entry under *key*, without file, times and texts."""
    known = key.facts(), key.lines(), key.base, key.uses, key.run, key.read_before, key.facts_before
    return StoredEntry("", 0, 0.0, 0.0, key.kind, key.name, key.digest, key.table, (), *known)


def pack(key: CacheKey, data: bytes) -> bytes:
    described = {"kind": key.kind, "name": key.name, "parts": key.table, "texts": key.texts}
    history: dict[str, Any] = {"base": key.base.hex(), "uses": [each.hex() for each in key.uses], "run": key.run}
    known = {"facts": key.facts(), "lines": key.lines()}
    if key.read_before:
        history["read_before"] = key.read_before
    if key.facts_before:
        history["facts_before"] = key.facts_before
    header = json.dumps({**described, **history, **known}).encode()
    prefix = _PREFIX.pack(_MAGIC, len(header), len(data), key.digest)
    rest = header + data
    return prefix + _checksum(prefix, rest) + rest


def unpack(entry: bytes, digest: bytes) -> bytes:
    """Return the data of an *entry* that was written under the key with *digest*. Raise `DamagedEntryError` if a single
    bit differs from what was written, or it was written under another key."""
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
    return data_of(entry)


def data_of(entry: bytes) -> bytes:
    """Return the data of an *entry* that was checked before."""
    return entry[_CHECKSUM_END + _PREFIX.unpack_from(entry)[1] :]


def describe(path: str) -> StoredEntry:
    """Return what the header of the entry at *path* says. The data is not read, so the checksum is not checked. Raise
    `OSError` or `DamagedEntryError` if it is not a file that can be read."""
    with open_entry(path, getattr(os, "O_NOATIME", 0)) as file:
        status = os.fstat(file.fileno())
        entry = StoredEntry(path, status.st_size, status.st_mtime, status.st_atime)
        with contextlib.suppress(struct.error, ValueError, KeyError, TypeError, RecursionError):
            magic, header_size, _, digest = _PREFIX.unpack(file.read(_PREFIX.size))
            if magic == _MAGIC and header_size <= _LONGEST_HEADER:
                file.seek(_CHECKSUM_END)
                header = json.loads(file.read(header_size))
                return dataclasses.replace(
                    entry,
                    kind=str(header["kind"]),
                    name=str(header["name"]),
                    digest=digest,
                    parts=_table(header["parts"]),
                    texts=_table(header.get("texts", ())),
                    facts=read_facts(header.get("facts", ())),
                    lines=read_lines(header.get("lines", ())),
                    base=bytes.fromhex(header.get("base", "")),
                    uses=tuple(map(bytes.fromhex, header.get("uses", ()))),
                    run=str(header.get("run", "")),
                    read_before=read_lines(header.get("read_before", ())),
                    facts_before=read_facts(header.get("facts_before", ())),
                )
        return entry


def read_lines(read: Any) -> LineDigests:
    """Return digests of lines that were read from JSON."""
    return tuple((str(label), tuple(map(str, each))) for label, each in read)


def read_facts(read: Any) -> Facts:
    """Return facts that were read from JSON."""
    return tuple((str(of), str(label), str(value)) for of, label, value in read)


def _table(read: Any) -> PartsTable:
    return tuple((str(label), str(value)) for label, value in read)


def open_entry(path: str, flags: int = 0) -> BinaryIO:
    """Open the entry at *path*, with *flags* if the system permits; no link is followed. Raise `DamagedEntryError` if
    it is not a regular file, and `OSError` if it cannot be opened."""
    try:
        return open(path, "rb", opener=lambda path, reading: open_regular(path, reading | NO_LINK | flags))
    except PermissionError:
        if not flags:
            raise
        return open_entry(path)  # O_NOATIME is for the owner
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ELOOP, errno.ENXIO):  # a directory or pipe; a link; a socket
            raise DamagedEntryError("it is not a regular file") from error
        raise


def _checksum(prefix: bytes | memoryview, rest: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(prefix)
    digest.update(rest)
    return digest.digest()
