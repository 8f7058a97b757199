# SPDX-License-Identifier: BSD-2-Clause
"""The files of cached kernels with external code: one for each kernel, next to numba-cuda's own.

What is in a file is numba-cuda's format, a pickle, and as trusted as numba-cuda's files are.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shutil
import sys
import time
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from numba.cuda import serialize
from numba.cuda.cudadrv.external_code.cache import store as cache_store
from numba.cuda.cudadrv.external_code.cache.key import CacheKey, PartsTable, differences
from numba.cuda.cudadrv.external_code.cache.settings import CacheWarning

# To be increased when the files' format or what is recorded changes.
SCHEMA = 2
_MAGIC = b"numba-cuda-autolink kernel %d\n" % SCHEMA
_SUFFIX = f".autolink{SCHEMA}"
_UNFINISHED = ".tmp"


@dataclass(frozen=True)
class KernelKey:
    """What a cached kernel stands for, beside the content of its external code: for which signature (a tuple of Numba
    types), and the table of everything else."""

    signature: Any
    parts: CacheKey


class _Saved(NamedTuple):
    """What a file holds: what changes with the function's source, the key, and the kernel."""

    stamp: Any
    signature: Any
    digest: bytes
    table: PartsTable
    data: bytes


class KernelFiles:
    """The files of one function's kernels: one for each key, which needs no index that processes could fight over.

    Parameters
    ----------
    folder:
        Where they are.
    base:
        What their names begin with.
    stamp:
        What changes with the function's source: the files of an earlier source are removed.
    """

    def __init__(self, folder: str, base: str, stamp: Any):
        self._folder = folder
        self._base = base
        self._stamp = stamp

    def load(self, key: KernelKey) -> bytes | None:
        """What was saved for *key*; None if nothing was."""
        content = self._read(self._path(key))
        if content is None:
            if cache_store.store().settings.log:
                self._explain(key)
            return None
        same = (content.stamp, content.signature, content.digest) == (self._stamp, key.signature, key.parts.digest)
        return content.data if same else None

    def save(self, key: KernelKey, data: bytes) -> None:
        """Save *data* for *key*, whole or not at all.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        self._clean_up()
        saved = _Saved(self._stamp, key.signature, key.parts.digest, key.parts.table, data)
        body = serialize.dumps(tuple(saved))
        path = self._path(key)
        unfinished = f"{path}.{uuid.uuid4().hex[:16]}{_UNFINISHED}"
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        try:
            with open(unfinished, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(body).digest() + body)
            os.replace(unfinished, path)
        except BaseException:
            _remove(unfinished)
            raise

    def flush(self) -> None:
        """Remove all files."""
        for path in self._paths():
            _remove(path)

    def _path(self, key: KernelKey) -> str:
        return os.path.join(self._folder, f"{self._base}.{key.parts.digest.hex()[:24]}{_SUFFIX}")

    def _paths(self, suffix: str = _SUFFIX) -> Iterator[str]:
        try:
            names = os.listdir(self._folder)
        except OSError:
            return
        for name in names:
            if name.startswith(f"{self._base}.") and name.endswith(suffix):
                yield os.path.join(self._folder, name)

    def _clean_up(self) -> None:
        """Remove the kernels of an earlier source, and what a killed process left unfinished."""
        for path in self._paths():
            content = self._read(path)
            if content is not None and content.stamp != self._stamp:
                _remove(path)
        for path in self._paths(_UNFINISHED):
            with contextlib.suppress(OSError):
                if os.stat(path).st_mtime < time.time() - 3600:
                    _remove(path)

    def _read(self, path: str) -> _Saved | None:
        """What is in a file. One that is damaged is not trusted: a flipped bit may crash the GPU."""
        try:
            with open(path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            warn_once(path, f"{path} cannot be read, so its kernel is compiled anew: {error}")
            return None
        start = len(_MAGIC) + hashlib.sha256().digest_size
        body = content[start:]
        if content[:start] != _MAGIC + hashlib.sha256(body).digest():
            warn_once(path, f"{path} is damaged, so its kernel is compiled anew")
            return None
        try:
            return _Saved(*pickle.loads(body))
        except Exception:  # types that are no longer there
            return None

    def _explain(self, key: KernelKey) -> None:
        """Log which parts of *key* are not those of the nearest kernel that there is."""
        others = [content.table for content in map(self._read, self._paths()) if content is not None]
        if others:
            nearest = min((differences(table, key.parts) for table in others), key=len)
            log(f"{key.parts} is not cached yet; from the nearest that is differ: {', '.join(map(str, nearest))}")


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def log(message: str) -> None:
    """Print *message* where the cache's log is wanted."""
    if cache_store.store().settings.log:
        print(f"numba-cuda-autolink cache: {message}", file=sys.stderr)


_warned: set[str] = set()


def warn_once(about: str, message: str) -> None:
    """Warn with *message*, once for the file or folder that it is *about*."""
    if about not in _warned:
        _warned.add(about)
        warnings.warn(f"numba-cuda-autolink: {message}", CacheWarning, stacklevel=2)
