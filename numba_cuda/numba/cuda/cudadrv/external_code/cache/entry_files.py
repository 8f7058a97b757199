# SPDX-License-Identifier: BSD-2-Clause
"""Files of cache entries, for machines without a network: a tar file of sealed entries, each named by its key's digest.

Without a key the seals mean nothing, and whoever made the file decides what runs where it is imported.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Iterator

from numba_cuda_autolink.shared_files import LARGEST
from numba_cuda_autolink.whole_file import written_whole

from .disk import DiskEntries
from .entry import DamagedEntryError, unpack
from .remote_settings import REMOTE_KEY, RemoteSettings, lock_line
from .seals import UntrustedEntryError, opened, sealed, without_seal
from .shared_work import PORTABLE_KINDS
from .store import CacheStore

_NAME = re.compile(r"[0-9a-f]{64}")
_END = bytes(2 * tarfile.BLOCKSIZE)


class EntryFileError(ValueError):
    """A file is not one of cache entries, or has entries that are not trusted."""


def portable_entries(disk: DiskEntries) -> Iterator[tuple[bytes, bytes]]:
    """Yield the digests and the entries on *disk* that other machines can use, in a fixed order."""
    found = {each.digest for each in disk.entries() if each.kind in PORTABLE_KINDS and each.kind != "headers"}
    for digest in sorted(found):
        if (entry := disk.read_entry(digest)) is not None:
            yield digest, entry


def write_entries(path: str | os.PathLike[str], disk: DiskEntries, key: bytes) -> int:
    """Write the portable entries on *disk* to a file, sealed with *key*, which may be empty. Return how many. Raises
    `OSError` if it cannot be written."""
    settings = RemoteSettings("", True, key)
    count = 0
    with written_whole(path) as whole, tarfile.open(fileobj=whole, mode="w") as file:
        for digest, entry in portable_entries(disk):
            member = tarfile.TarInfo(digest.hex())
            blob = sealed(settings, digest, entry)
            member.size = len(blob)
            file.addfile(member, io.BytesIO(blob))
            count += 1
    return count


def read_entries(path: str | os.PathLike[str], store: CacheStore, key: bytes | None) -> int:
    """Keep all entries of a file in *store*, if each is sealed with *key*, or for ``None`` whoever made it. Return how
    many. Raises `OSError` if it cannot be read, and `EntryFileError` before anything is kept."""
    lost = 0
    for is_checked in False, True:
        count = 0
        try:
            with tarfile.open(path, "r:") as file:
                for member in file:
                    if not (member.isreg() and _NAME.fullmatch(member.name) and member.size <= LARGEST):
                        raise EntryFileError(f"{os.fspath(path)} holds {member.name!r}, which is not a cache entry")
                    content = file.extractfile(member)
                    assert content is not None
                    digest = bytes.fromhex(member.name)
                    entry = _opened(digest, content.read(), key)
                    if is_checked:
                        lost += not store.adopt(digest, entry, memory=False)
                    count += 1
                _check_end(path)
        except tarfile.TarError as error:
            raise EntryFileError(f"{os.fspath(path)} is not a file of cache entries: {error}") from error
        except (UntrustedEntryError, DamagedEntryError) as error:
            raise EntryFileError(
                f"{os.fspath(path)} is not used: {error}\n"
                f"  entry:      {member.name}\n"
                f"  what to do: export the file again, with the key that {REMOTE_KEY} has here"
            ) from error
    if lost:
        raise EntryFileError(
            f"{lost} of {count} entries of {os.fspath(path)} could not be written to the cache\n"
            f"  cache:      {store.settings.directory}\n"
            "  what to do: see the warning; numba-cuda-autolink cache info shows its size and limit"
        )
    return count


def _check_end(path: str | os.PathLike[str]) -> None:
    """Raise `tarfile.TarError` unless the file has the end of a tar file, which tells it from one that was cut off
    between two entries."""
    with open(path, "rb") as file:
        file.seek(max(os.stat(path).st_size - len(_END), 0))
        if file.read() != _END:
            raise tarfile.ReadError("it is cut off")


def _opened(digest: bytes, blob: bytes, key: bytes | None) -> bytes:
    if key is not None:
        return opened(RemoteSettings("", False, key), digest, blob)
    entry = without_seal(blob)
    unpack(entry, digest)
    return entry


def write_lock(path: str | os.PathLike[str], disk: DiskEntries) -> int:
    """Write a lock file of the portable entries on *disk*. Return how many. Raises `OSError`."""
    count = 0
    with written_whole(path) as file:
        file.write(b"# numba-cuda-autolink: the digests of keys, and the SHA-256 of what is trusted under them\n")
        for digest, entry in portable_entries(disk):
            file.write(lock_line(digest, entry).encode())
            count += 1
    return count
