# SPDX-License-Identifier: BSD-2-Clause
"""The settings of the cache: where it is and how it behaves, from the environment."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from .remote_settings import RemoteSettings, RemoteSettingsError

FOLDER_NAME = "numba-cuda-autolink"
DEFAULT_MAX_BYTES = 1 << 30

DIRECTORY = "NUMBA_CUDA_AUTOLINK_CACHE_DIR"
MODE = "NUMBA_CUDA_AUTOLINK_CACHE"
MAX_BYTES = "NUMBA_CUDA_AUTOLINK_CACHE_SIZE"
READ_ONLY = "NUMBA_CUDA_AUTOLINK_CACHE_READONLY"
LOG = "NUMBA_CUDA_AUTOLINK_LOG"


class CacheWarning(RuntimeWarning):
    """The cache cannot be used. Results are right nevertheless, and take longer."""


@dataclass(frozen=True)
class CacheSettings:
    """How to cache. Memory is always used."""

    directory: str  # the cache's own, an absolute path; empty if the user has none
    on_disk: bool = True  # whether to use the directory
    verify: bool = False  # whether to rebuild what is found, and compare the two
    max_bytes: int = DEFAULT_MAX_BYTES  # how large the entries on disk may grow
    log: bool = False  # whether to print each hit and miss to stderr
    read_only: tuple[str, ...] = ()  # other cache directories, which are only read
    remote: RemoteSettings | None = None  # the cache that machines share

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> CacheSettings:
        """Return the settings that the variables ``NUMBA_CUDA_AUTOLINK_*`` of *environ* describe. An invalid value
        counts as unset, with a `CacheWarning`."""
        mode = environ.get(MODE, "").strip().lower()
        if mode not in ("", "0", "1", "verify"):
            _warn_invalid(MODE, mode, "0 (nothing on disk), 1 or verify")
        size = environ.get(MAX_BYTES, "").strip()
        max_bytes = parse_size(size)
        if size and not max_bytes:
            _warn_invalid(MAX_BYTES, size, "a number of bytes above 0, such as 500M or 2G")
        directory = _directory(environ)
        return cls(
            directory,
            on_disk=mode != "0" and directory != "",
            verify=mode == "verify",
            max_bytes=max_bytes or DEFAULT_MAX_BYTES,
            log="cache" in re.split(r"[,\s]+", environ.get(LOG, "")),
            read_only=_folders(environ.get(READ_ONLY, "")),
            remote=None if mode == "0" else _remote(environ),
        )


def _folders(text: str) -> tuple[str, ...]:
    return tuple(os.path.abspath(os.path.expanduser(path)) for path in text.split(os.pathsep) if path)


def _remote(environ: Mapping[str, str]) -> RemoteSettings | None:
    try:
        return RemoteSettings.from_environment(environ)
    except (RemoteSettingsError, OSError) as error:
        warnings.warn(f"numba-cuda-autolink uses no shared cache: {error}.", CacheWarning, stacklevel=2)
        return None


def _directory(environ: Mapping[str, str]) -> str:
    if named := environ.get(DIRECTORY):
        return os.path.abspath(os.path.expanduser(named))
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):  # the XDG specification says to ignore relative paths
            base = os.path.join(home, ".cache")
    if not os.path.isabs(base):
        warnings.warn(
            f"numba-cuda-autolink caches nothing on disk: this user has no home directory. Set {DIRECTORY}.",
            CacheWarning,
            stacklevel=2,
        )
        return ""
    return os.path.join(base, FOLDER_NAME)


def parse_size(text: str) -> int | None:
    """Return the number of bytes of a size such as ``"500M"``, ``"2 GiB"`` or ``"1000"``; ``None`` if *text* is not a
    size."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ")) if match else None


def _warn_invalid(variable: str, value: str, expected: str) -> None:
    warnings.warn(f"{variable}={value!r} has no effect: expected {expected}.", CacheWarning, stacklevel=2)
