# SPDX-License-Identifier: BSD-2-Clause
from dataclasses import dataclass
from os import PathLike
from typing import Any

__all__ = [
    "CacheInfo",
    "CacheMismatchError",
    "CacheWarning",
    "History",
    "KindInfo",
    "KindUsage",
    "StoredEntry",
    "clear",
    "export_file",
    "flush",
    "import_file",
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
class KindUsage:
    kind: str
    found: tuple[tuple[str, int], ...]
    built: int
    seconds_saved: float
    @property
    def hits(self) -> int: ...
    @property
    def hit_rate(self) -> float: ...

@dataclass(frozen=True)
class CacheInfo:
    directory: str
    enabled: bool
    verify: bool
    max_bytes: int
    entries: int
    bytes: int
    @property
    def by_kind(self) -> tuple[KindInfo, ...]: ...
    levels: tuple[tuple[str, str], ...] = ()
    @property
    def usage(self) -> tuple[KindUsage, ...]: ...
    writable: bool = True
    emulator_bytes: int = 0

class StoredEntry:
    path: str
    size: int
    written: float
    used: float
    kind: str
    name: str
    digest: bytes
    parts: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str, str], ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    base: bytes
    uses: tuple[bytes, ...]
    run: str
    read_before: tuple[tuple[str, tuple[str, ...]], ...]
    facts_before: tuple[tuple[str, str, str], ...]
    def as_known(
        self, facts: tuple[tuple[str, str, str], ...], lines: tuple[tuple[str, tuple[str, ...]], ...]
    ) -> StoredEntry: ...

@dataclass(frozen=True)
class History:
    name: str
    @property
    def entries(self) -> tuple[StoredEntry, ...]: ...
    kind: str | None = None
    near: str = ...
    @property
    def details(self) -> str: ...
    @property
    def builds(self) -> list[dict[str, Any]]: ...

def info() -> CacheInfo: ...
def clear() -> int: ...
def prune(max_bytes: int | None = None) -> int: ...
def export_file(path: str | PathLike[str]) -> int: ...
def import_file(path: str | PathLike[str], *, trust: bool = False) -> int: ...
def flush(timeout: float = 600.0) -> int: ...
def why(name: str, kind: str | None = None) -> History: ...
