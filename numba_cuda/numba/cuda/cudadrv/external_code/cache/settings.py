# SPDX-License-Identifier: BSD-2-Clause
"""The settings of the cache: where it is and how it behaves, from the environment. And its log: hits and misses at the
level ``DEBUG``, kernels that cannot be cached at ``INFO``."""

from __future__ import annotations

import logging
import os
import re
import stat
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from numba_cuda_autolink.cache_folder import DIRECTORY, cache_folder
from numba_cuda_autolink.settings import expected_instead, parse_positive, parse_size

DEFAULT_MAX_BYTES = 1 << 30

MODE = "NUMBA_CUDA_AUTOLINK_CACHE"
MAX_BYTES = "NUMBA_CUDA_AUTOLINK_CACHE_SIZE"
READ_ONLY = "NUMBA_CUDA_AUTOLINK_CACHE_READONLY"
REMOTE = "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE"
REMOTE_MODE = "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_MODE"
REMOTE_KEY = "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY"
REMOTE_WAIT = "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_WAIT"
LOG = "NUMBA_CUDA_AUTOLINK_LOG"


_SHORTEST_KEY = 16  # characters
_MOST_KEYS = 2
_LARGEST_KEY_FILE = 1 << 16
_PATH = re.compile(r"[/~.\\]|[A-Za-z]:[/\\]|file:")

logger = logging.getLogger("numba_cuda_autolink.cache")


class CacheWarning(RuntimeWarning):
    """The cache cannot be used. Results are right nevertheless, and take longer."""

    __module__ = "numba.cuda.autolink"  # as tracebacks show it


class RemoteSettingsError(ValueError):
    """The settings of the shared cache contradict each other, or leave open which entries to trust."""


@dataclass(frozen=True)
class RemoteSettings:
    """A cache that machines share."""

    # A folder for fsspec: ``"s3://bucket/folder"``, ``"file:///net/cache"``, ``"https://host/folder"``, ...
    address: str = field(repr=False)
    # The secrets that entries are signed with: the first one signs, and each is accepted.
    keys: tuple[bytes, ...] = field(repr=False)
    writes: bool = False  # whether what is built here is written there
    wait: float = 2.0  # How many seconds one answer may take. After one that takes longer the process stops asking.

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> RemoteSettings | None:
        """Return the settings that *environ* describes; ``None`` if it names no address. Raises `RemoteSettingsError`,
        or `OSError` if the file of a key cannot be read."""
        if not (address := environ.get(REMOTE, "").strip()):
            return None
        if "://" not in address and not os.path.isabs(address):  # a folder below whatever the working directory is
            raise RemoteSettingsError(f"{REMOTE}={redact(address)!r}: expected an address, such as s3://bucket/folder")
        mode = environ.get(REMOTE_MODE, "").strip().lower() or "ro"
        if mode not in ("ro", "rw"):
            raise RemoteSettingsError(f"{REMOTE_MODE}={mode!r}: expected ro or rw")
        if not (keys := read_keys(environ)):
            raise RemoteSettingsError(f"set {REMOTE_KEY}, which tells your own entries from others'")
        return cls(address, keys, mode == "rw", _read_wait(environ))

    def __str__(self) -> str:
        return f"{redact(self.address)} ({'rw' if self.writes else 'ro'})"


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
        size = environ.get(MAX_BYTES, "").strip()
        logged = re.split(r"[,\s]+", environ.get(LOG, ""))
        for variable, value in ((MODE, mode), (MAX_BYTES, size), *((LOG, each) for each in logged)):
            if expected := expected_instead(variable, value):
                warnings.warn(f"{variable}={value!r} has no effect: expected {expected}.", CacheWarning, stacklevel=1)
        directory = _directory(environ)
        return cls(
            directory,
            on_disk=mode != "0" and directory != "",
            verify=mode == "verify",
            max_bytes=parse_size(size) or DEFAULT_MAX_BYTES,
            log="cache" in logged,
            read_only=_folders(environ.get(READ_ONLY, "")),
            remote=None if mode == "0" else _remote(environ),
        )


def redact(text: str) -> str:
    """Return *text* without the names and passwords of users in the addresses that it contains."""
    return re.sub(r"://.*@", "://***@", text)


def read_keys(environ: Mapping[str, str]) -> tuple[bytes, ...]:
    """Return the keys of the site, none if there is none: the lines of the variable's text, or of the file at a path
    after ``@``. Raises `RemoteSettingsError` if they are not safe to use, or `OSError`."""
    text = environ.get(REMOTE_KEY, "").strip()
    if text.startswith("@"):
        text = _read_key_file(os.path.expanduser(text[1:]))
    elif _PATH.match(text) or os.path.lexists(text):
        raise RemoteSettingsError(f"the key in {REMOTE_KEY} looks like a path: put @ before the path of a file")
    keys = tuple(line.strip().encode() for line in text.splitlines() if line.strip())
    if any(len(key) < _SHORTEST_KEY for key in keys):
        raise RemoteSettingsError(f"the key in {REMOTE_KEY} is shorter than {_SHORTEST_KEY} bytes")
    if len(keys) > _MOST_KEYS:
        raise RemoteSettingsError(
            f"{REMOTE_KEY} has {len(keys)} keys, one in each line: expected one, or the new and the old one"
        )
    return keys


def lacks_writable_store(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether *environ* asks for a shared cache to write to, and its settings turn it off or cannot be used."""
    if not environ.get(REMOTE, "").strip() or environ.get(REMOTE_MODE, "").strip().lower() in ("", "ro"):
        return False
    if environ.get(MODE, "").strip() == "0":
        return True
    try:
        RemoteSettings.from_environment(environ)
    except (RemoteSettingsError, OSError):
        return True
    return False


def _read_key_file(path: str) -> str:
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise RemoteSettingsError(f"other users may read or write the key file {path}: chmod 600 it")
        content = file.read(_LARGEST_KEY_FILE)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise RemoteSettingsError(f"the key file {path} is not text: make one by openssl rand -hex 32") from error


def _read_wait(environ: Mapping[str, str]) -> float:
    if not (text := environ.get(REMOTE_WAIT, "").strip()):
        return RemoteSettings.wait
    if (milliseconds := parse_positive(text)) is None:
        raise RemoteSettingsError(f"{REMOTE_WAIT}={text!r}: expected a number of milliseconds above 0")
    return milliseconds / 1e3


def _folders(text: str) -> tuple[str, ...]:
    return tuple(os.path.abspath(os.path.expanduser(path)) for path in text.split(os.pathsep) if path)


def _remote(environ: Mapping[str, str]) -> RemoteSettings | None:
    try:
        return RemoteSettings.from_environment(environ)
    except (RemoteSettingsError, OSError) as error:
        warnings.warn(f"numba-cuda-autolink uses no shared cache: {error}.", CacheWarning, stacklevel=2)
        return None


def _directory(environ: Mapping[str, str]) -> str:
    folder = cache_folder(environ)
    if not folder:
        warnings.warn(
            f"numba-cuda-autolink caches nothing on disk: this user has no home directory. Set {DIRECTORY}.",
            CacheWarning,
            stacklevel=2,
        )
    return folder


class _StderrHandler(logging.Handler):
    """Prints to what ``sys.stderr`` is at that moment. The handlers of loggers above get what the level that the user
    set lets through, as without it."""

    replaced_level = logging.NOTSET

    def emit(self, record: logging.LogRecord) -> None:
        if sys.stderr is not None:
            print(f"numba-cuda-autolink cache: {self.format(record)}", file=sys.stderr)
        if logger.parent is not None and record.levelno >= (self.replaced_level or logger.parent.getEffectiveLevel()):
            logger.parent.callHandlers(record)


_handler = _StderrHandler()


def print_log(on: bool) -> None:
    """Print the whole log to stderr, or stop printing it. The user's own handlers stay as they are."""
    if on == (_handler in logger.handlers):
        return
    if on:
        _handler.replaced_level = logger.level
        logger.addHandler(_handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
    else:
        logger.removeHandler(_handler)
        logger.setLevel(_handler.replaced_level)
        logger.propagate = True
