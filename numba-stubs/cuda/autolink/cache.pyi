# SPDX-License-Identifier: BSD-2-Clause
from dataclasses import dataclass

__all__ = [
    "CacheInfo",
    "CacheMismatchError",
    "CacheWarning",
    "History",
    "KindInfo",
    "StoredEntry",
    "clear",
    "info",
    "prune",
    "why",
]

class CacheWarning(RuntimeWarning): ...

class CacheMismatchError(RuntimeError):
    cached: str
    rebuilt: str

@dataclass(frozen=True)
class KindInfo:
    kind: str
    entries: int
    bytes: int

@dataclass(frozen=True)
class CacheInfo:
    directory: str
    enabled: bool
    verify: bool
    max_bytes: int
    entries: int
    bytes: int
    by_kind: tuple[KindInfo, ...]

class StoredEntry:
    path: str
    size: int
    written: float
    used: float
    kind: str
    name: str
    digest: bytes
    parts: tuple[tuple[str, str], ...]

@dataclass(frozen=True)
class History:
    name: str
    entries: tuple[StoredEntry, ...]

def info() -> CacheInfo: ...
def clear() -> int: ...
def prune(max_bytes: int | None = None) -> int: ...
def why(name: str, kind: str | None = None) -> History: ...
