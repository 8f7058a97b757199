# SPDX-License-Identifier: BSD-2-Clause
"""Packs: what one process wrote to the shared cache, once more in a single file, which brings all of it at once.

    name of the pack (16 bytes) | sealed entry                           a file of one entry
    digest of a key (32 bytes) | size (8) | sealed entry | digest ...    a pack

Who needs several entries that were built together is likely to need the others. So each entry names the pack that it is
in. Nothing in a pack is trusted: its entries are sealed like all others.
"""

from __future__ import annotations

import collections
import os
import struct

NAME_SIZE = 16
LARGEST_PACK = 16 << 20  # bytes from which on another pack is begun
_MOST_HELD = 8  # packs
_ENOUGH = 3  # entries of one pack that are needed, until it is read: about those of one kernel
_HEAD = struct.Struct("<32sQ")


class NewPack:
    """The pack of what this process writes."""

    def __init__(self) -> None:
        self.name = os.urandom(NAME_SIZE)
        self._parts: list[bytes] = []
        self._size = self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether another pack is to be begun."""
        return self._size >= LARGEST_PACK

    def add(self, digest: bytes, blob: bytes) -> bytes:
        """Add a sealed entry; return the content of its own file."""
        self._parts += [_HEAD.pack(digest, len(blob)), blob]
        self._size += len(blob)
        self._count += 1
        return self.name + blob

    def content(self) -> bytes | None:
        """Return the content of the pack's file; ``None`` if it is not worth one."""
        return b"".join(self._parts) if self._count > 1 else None


class HeldPacks:
    """The packs that this process has read, the last ones of many; and which of them to read."""

    def __init__(self) -> None:
        self._packs: collections.deque[dict[bytes, bytes]] = collections.deque(maxlen=_MOST_HELD)
        self._named: collections.Counter[bytes] = collections.Counter()
        self._read: set[bytes] = set()

    def is_needed(self, name: bytes) -> bool:
        """Note that an entry of the pack with this *name* was needed; return whether to read the pack."""
        self._named[name] += 1
        return self._named[name] >= _ENOUGH and name not in self._read

    def begin(self, name: bytes) -> None:
        """Note that the pack with this *name* is being read."""
        self._read.add(name)

    def add(self, content: bytes) -> None:
        """Hold the entries of a pack; of one that is damaged, those before the damage."""
        entries, start = {}, 0
        while start + _HEAD.size <= len(content) <= 2 * LARGEST_PACK:
            digest, size = _HEAD.unpack_from(content, start)
            start += _HEAD.size + size
            if start <= len(content):
                entries[digest] = content[start - size : start]
        self._packs.append(entries)

    def take(self, digest: bytes) -> bytes | None:
        """Return the sealed entry under the key with *digest*, and hold it no longer; ``None`` if there is none."""
        found = (entries.pop(digest, None) for entries in tuple(self._packs))
        return next((blob for blob in found if blob is not None), None)


def file_name(pack: bytes) -> str:
    """Return the name of the file of the *pack* with this name."""
    return f"packs/{pack.hex()}"
