# SPDX-License-Identifier: BSD-2-Clause
"""Cache directories that are read as they are, such as those of a container image or a wheel.

The user names them, and so trusts them: neither owners nor modes nor times are looked at. Entries are checked for
damage, and pickles are not read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from .entry import DamagedEntryError, open_entry, unpack

_LARGEST = 1 << 30  # bytes of one entry


class ReadOnlyEntries:
    """The entries in *directories*, each of which was the cache directory of some process. The first one counts."""

    def __init__(self, directories: Sequence[str]):
        self._directories = tuple(directories)

    def read(self, digest: bytes) -> bytes | None:
        """Return the data under the key with *digest*, or ``None``. What is damaged or cannot be read is not there."""
        name = hashlib.sha256(digest).hexdigest()  # as in cuda.core's file cache
        for directory in self._directories:
            try:
                with open_entry(os.path.join(directory, "entries", name[:2], name[2:])) as file:
                    return unpack(file.read(_LARGEST), digest)
            except (OSError, DamagedEntryError):
                continue
        return None
