# SPDX-License-Identifier: BSD-2-Clause
"""Sealed entries: what tells the entries of one's own site, in a place to which others can write, from theirs.

    HMAC-SHA256 of the digest of the key and the entry (32 bytes) | entry

An entry is used if it is sealed with the site's key, or if a lock file lists its SHA-256.
"""

from __future__ import annotations

import hashlib
import hmac

from .entry import DamagedEntryError, unpack
from .remote_settings import RemoteSettings

_PURPOSE = b"numba-cuda-autolink shared entry 1\0"
_SEAL_SIZE = hashlib.sha256().digest_size


class UntrustedEntryError(ValueError):
    """An entry is not one of the site's own."""


def sealed(settings: RemoteSettings, digest: bytes, entry: bytes) -> bytes:
    """Return *entry*, which was written under the key with *digest*, with the site's seal."""
    return _seal(settings.key, digest, entry) + entry


def opened(settings: RemoteSettings, digest: bytes, blob: bytes) -> bytes:
    """Return the entry in a sealed *blob*. Raise `UntrustedEntryError` unless it was written by this site, or is
    listed, under the key with *digest*, and is as it was written."""
    seal, entry = blob[:_SEAL_SIZE], blob[_SEAL_SIZE:]
    listed = settings.lock.get(digest)
    is_listed = listed is not None and hmac.compare_digest(hashlib.sha256(entry).digest(), listed)
    is_own = bool(settings.key) and hmac.compare_digest(seal, _seal(settings.key, digest, entry))
    if not (is_listed or is_own):
        raise UntrustedEntryError("its seal is not this site's, and no lock file lists it")
    try:
        unpack(entry, digest)
    except DamagedEntryError as error:  # which its author sealed
        raise UntrustedEntryError(str(error)) from error
    return entry


def without_seal(blob: bytes) -> bytes:
    """Return the entry in a *blob*, whoever sealed it."""
    return blob[_SEAL_SIZE:]


def _seal(key: bytes, digest: bytes, entry: bytes) -> bytes:
    return hmac.digest(key, _PURPOSE + len(digest).to_bytes(8, "little") + digest + entry, "sha256")
