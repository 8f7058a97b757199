# SPDX-License-Identifier: BSD-2-Clause
"""Files of cache entries, for machines without a network.

    a first line | for each entry: the digest of its key (32 bytes), a size (8 bytes), when it was built (8 bytes, in
    nanoseconds since the epoch), the signed entry | 48 zeros

A file is checked from its first to its last byte before anything of it is kept. Without a key the signatures mean
nothing, and whoever made the file decides what runs where it is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from numba_cuda_autolink.errors import PrintableError
from numba_cuda_autolink.files import open_regular, replace_whole

from .disk import DiskEntries
from .entry import DamagedEntryError, unpack
from .remote_store import LARGEST, UntrustedEntryError, authenticate, entry_of, sign
from .settings import REMOTE_KEY
from .store import PORTABLE_KINDS, CacheStore

_FIRST_LINE = b"numba-cuda-autolink: cache entries 2\n"
_END = bytes(48)


class EntryFileError(PrintableError, ValueError):
    """A file is not one of cache entries, or has entries that are not trusted."""


def write_entries(path: str | os.PathLike[str], disk: DiskEntries, keys: Sequence[bytes]) -> int:
    """Write the entries on *disk* that other machines can use to a file, in a fixed order, signed with the first of
    *keys*, if there is one. Return how many. Raises `OSError` if it cannot be written."""
    portable = PORTABLE_KINDS - {"headers"}
    found = {each.digest: int(each.written * 1e9) for each in disk.entries() if each.kind in portable}
    count = 0
    with replace_whole(path) as whole:
        whole.write(_FIRST_LINE)
        for digest in sorted(found):
            if (entry := disk.read_entry(digest)) is not None:
                blob = sign(keys, digest, entry)
                whole.write(digest + len(blob).to_bytes(8, "little") + found[digest].to_bytes(8, "little") + blob)
                count += 1
        whole.write(_END)
    return count


def read_entries(path: str | os.PathLike[str], store: CacheStore, keys: Sequence[bytes] | None) -> int:
    """Keep all entries of a file in *store*, if each is signed with one of *keys*, or for ``None`` whoever made it.
    Return how many. Raises `OSError` if it cannot be read, and `EntryFileError` before anything is kept."""
    count = sum(1 for _ in _trusted_entries(path, keys))
    found = _trusted_entries(path, keys)
    lost = sum(not store.adopt(digest, entry, memory=False, built=built) for digest, entry, built in found)
    if lost:
        raise EntryFileError(
            f"{lost} of {count} entries of {os.fspath(path)} could not be written to the cache\n"
            f"  cache:      {store.settings.directory}\n"
            "  what to do: see the warning; numba-cuda-autolink cache info shows its size and limit"
        )
    return count


def check_file(path: str | os.PathLike[str]) -> None:
    """Raise `EntryFileError` if the file at *path* does not begin as those of `write_entries`, and `OSError` if it
    cannot be read."""
    with open(path, "rb", opener=open_regular) as file:
        _check_beginning(file, os.fspath(path))


def _check_beginning(file: BinaryIO, path: str) -> None:
    if file.read(len(_FIRST_LINE)) != _FIRST_LINE:
        raise EntryFileError(f"{path} is not a file of cache entries\n  what to do: write one with cache export")


def _trusted_entries(path: str | os.PathLike[str], keys: Sequence[bytes] | None) -> Iterator[tuple[bytes, bytes, int]]:
    with open(path, "rb", opener=open_regular) as file:
        for digest, blob, built in _blobs(file, os.fspath(path)):
            entry = entry_of(blob)
            try:
                if keys is None:
                    unpack(entry, digest)
                else:
                    authenticate(keys, digest, blob)
            except (UntrustedEntryError, DamagedEntryError) as error:
                raise EntryFileError(
                    f"{os.fspath(path)} is not used: {error}\n"
                    f"  entry:      {digest.hex()}\n"
                    f"  what to do: export the file again, with the key that {REMOTE_KEY} has here"
                ) from error
            yield digest, entry, built


def _blobs(file: BinaryIO, path: str) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield the digests and signed entries of a *file*, and when they were built. Raise `EntryFileError` unless all of
    it is what `write_entries` writes."""
    _check_beginning(file, path)
    while (header := file.read(len(_END))) != _END:
        digest, size = header[:32], int.from_bytes(header[32:40], "little")
        blob = file.read(min(size, LARGEST))
        if len(header) < len(_END) or len(blob) != size:
            raise EntryFileError(f"{path} is not a file of cache entries: it is cut off, or damaged")
        yield digest, blob, int.from_bytes(header[40:], "little")
    if file.read(1):
        raise EntryFileError(f"{path} is not a file of cache entries: it continues after its end")
