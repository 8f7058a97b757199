# SPDX-License-Identifier: BSD-2-Clause
"""Files of cache entries, for machines without a network: a tar file of signed entries, each named by its key's digest.

A file is checked from its first to its last byte before anything of it is kept. Without a key the signatures mean
nothing, and whoever made the file decides what runs where it is imported.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from numba_cuda_autolink.errors import PrintableError
from numba_cuda_autolink.files import open_regular, replace_whole

from .disk import DiskEntries
from .entry import DamagedEntryError, unpack
from .remote_store import LARGEST, UntrustedEntryError, authenticate, entry_of, sign
from .settings import REMOTE_KEY
from .store import PORTABLE_KINDS, CacheStore

_BLOCK = tarfile.BLOCKSIZE
_END = bytes(2 * _BLOCK)


class EntryFileError(PrintableError, ValueError):
    """A file is not one of cache entries, or has entries that are not trusted."""


def write_entries(path: str | os.PathLike[str], disk: DiskEntries, keys: Sequence[bytes]) -> int:
    """Write the entries on *disk* that other machines can use to a file, in a fixed order, signed with the first of
    *keys*, if there is one. Return how many. Raises `OSError` if it cannot be written."""
    found = {each.digest for each in disk.entries() if each.kind in PORTABLE_KINDS and each.kind != "headers"}
    count = 0
    with replace_whole(path) as whole:
        for digest in sorted(found):
            if (entry := disk.read_entry(digest)) is not None:
                blob = sign(keys, digest, entry)
                whole.write(_header(digest, len(blob)) + blob + _padding(len(blob)))
                count += 1
        whole.write(_END)
    return count


def read_entries(path: str | os.PathLike[str], store: CacheStore, keys: Sequence[bytes] | None) -> int:
    """Keep all entries of a file in *store*, if each is signed with one of *keys*, or for ``None`` whoever made it.
    Return how many. Raises `OSError` if it cannot be read, and `EntryFileError` before anything is kept."""
    count = sum(1 for _ in _trusted_entries(path, keys))
    lost = sum(not store.adopt(digest, entry, memory=False) for digest, entry in _trusted_entries(path, keys))
    if lost:
        raise EntryFileError(
            f"{lost} of {count} entries of {os.fspath(path)} could not be written to the cache\n"
            f"  cache:      {store.settings.directory}\n"
            "  what to do: see the warning; numba-cuda-autolink cache info shows its size and limit"
        )
    return count


def _trusted_entries(path: str | os.PathLike[str], keys: Sequence[bytes] | None) -> Iterator[tuple[bytes, bytes]]:
    with open(path, "rb", opener=open_regular) as file:
        for digest, blob in _blobs(file, os.fspath(path)):
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
            yield digest, entry


def _blobs(file: BinaryIO, path: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the digests and signed entries of a *file*. Raise `EntryFileError` unless each header, and the end of the
    file, are what `write_entries` writes: nothing else that a tar file may say is looked at."""
    while True:
        start, header = file.tell(), file.read(_BLOCK)
        if header == _END[:_BLOCK]:
            if header + file.read(len(_END)) != _END:
                raise EntryFileError(
                    f"{path} is not a file of cache entries: it is cut off, or continues after its end"
                )
            return
        try:
            digest, size = bytes.fromhex(header[:64].decode("ascii")), int(header[124:135], 8)
            is_ours = len(digest) == 32 and size <= LARGEST and header == _header(digest, size)
        except ValueError:
            is_ours = False
        if not is_ours:
            what = "it is cut off" if not header else f"there is none at byte {start}"
            raise EntryFileError(f"{path} is not a file of cache entries: {what}")
        blob, padding = file.read(size), _padding(size)
        if len(blob) != size or file.read(len(padding)) != padding:
            raise EntryFileError(f"{path} is not a file of cache entries: it is cut off, or damaged")
        yield digest, blob


def _header(digest: bytes, size: int) -> bytes:
    member = tarfile.TarInfo(digest.hex())
    member.size = size
    return member.tobuf(tarfile.USTAR_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK)
