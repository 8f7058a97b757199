# SPDX-License-Identifier: BSD-2-Clause
"""Compiled kernels on disk, by what they are made of. A damaged entry, like any failure of the disk, is a miss.

An entry is the SHA-256 of its content, and the content. Entries are replaced atomically, and are read only from a
folder that belongs to this user and that nobody else can write.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
from pathlib import Path

_SCHEMA = 1


@functools.cache
def _engine_digest() -> str:
    """Return the digest of the emulator's own source: what it makes of PTX depends on all of it."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _folder() -> Path | None:
    """Return the folder of the entries, or None where there is none to trust."""
    root = os.environ.get("NUMBA_CUDA_AUTOLINK_CACHE_DIR")
    base = (
        Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba-cuda-autolink"
    )
    folder = base / "emulator"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.stat()
    if sys.platform != "win32" and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        return None
    return folder


def _path(kind: str, parts: tuple[str, ...]) -> Path | None:
    digest = hashlib.sha256()
    for part in (kind, str(_SCHEMA), _engine_digest(), *parts):
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    folder = _folder()
    return None if folder is None else folder / f"{digest.hexdigest()}.{kind}"


def fetch_object(kind: str, *parts: str) -> bytes | None:
    """Return what was stored for *parts*, or None."""
    with contextlib.suppress(OSError, RuntimeError):
        path = _path(kind, parts)
        if path is not None:
            data = path.read_bytes()
            if len(data) > 32 and hashlib.sha256(data[32:]).digest() == data[:32]:
                return data[32:]
    return None


def store_object(kind: str, content: bytes, *parts: str) -> None:
    """Keep *content* for *parts*; a disk that refuses costs nothing but the next compilation."""
    with contextlib.suppress(OSError, RuntimeError):
        path = _path(kind, parts)
        if path is None:
            return
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
