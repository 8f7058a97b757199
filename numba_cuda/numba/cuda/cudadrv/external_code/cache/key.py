# SPDX-License-Identifier: BSD-2-Clause
"""Cache keys: a table of named parts, their digest, and how two keys differ."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

# Goes up when what a digest means changes, so that no entry of an earlier version is found.
KEY_SCHEMA = 1

_LONGEST_SHOWN = 80

# A key as it is stored with its entry and shown: labels, and values that a reader can take in.
PartsTable = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CacheKey:
    """What stands for everything that a cached artefact depends on.

    Two keys are the same if they have the same kind and the same parts in the same order. A part's text and bytes
    never count as the same, and no part can run into the next.

    Attributes
    ----------
    kind:
        What is cached: ``"program"``, ``"headers"``, ``"link"``, ...
    name:
        What messages call it. It has no influence on sameness.
    parts:
        Labels, each once, and values: text or bytes.

    Raises
    ------
    TypeError, ValueError
        For an empty kind, a label that is not text or comes twice, and a value that is neither text nor bytes.
    """

    kind: str
    name: str = field(compare=False)
    parts: tuple[tuple[str, str | bytes], ...]

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or not self.kind:
            raise ValueError(f"a cache key's kind is text that is not empty, got {self.kind!r}")
        if not isinstance(self.name, str):
            raise TypeError(f"a cache key's name is text, got {type(self.name).__name__}")
        labels = set()
        for label, value in self.parts:
            if not isinstance(label, str) or not isinstance(value, (str, bytes)):
                raise TypeError(
                    f"a part of a cache key is a label and text or bytes, got {label!r}: {type(value).__name__}"
                )
            if label in labels:
                raise ValueError(f"a cache key has two parts labelled {label!r}")
            labels.add(label)

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    @functools.cached_property
    def digest(self) -> bytes:
        """SHA-256 over the schema, the kind and the parts, each framed by its length."""
        digest = hashlib.sha256(b"numba-cuda-autolink cache key\0")
        for text in (str(KEY_SCHEMA), self.kind):
            digest.update(_framed(_encoded(text)))
        for label, value in self.parts:
            digest.update(_framed(_encoded(label)))
            digest.update(b"t" + _framed(_encoded(value)) if isinstance(value, str) else b"b" + _framed(value))
        return digest.digest()

    @functools.cached_property
    def table(self) -> PartsTable:
        """The parts, as they are stored with the entry: short text as it is, all else as its size and digest."""
        return (("key schema", str(KEY_SCHEMA)), *((label, _shown(value)) for label, value in self.parts))


@dataclass(frozen=True)
class Difference:
    """A part in which two keys differ; ``None`` stands for a part that one of them does not have."""

    label: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before == self.after:
            return f"{self.label} (in another place)"
        if self.before is None:
            return f"{self.label} (now {self.after})"
        if self.after is None:
            return f"{self.label} (no longer {self.before})"
        return f"{self.label} ({self.before} -> {self.after})"


def differences(before: CacheKey | PartsTable, after: CacheKey | PartsTable) -> tuple[Difference, ...]:
    """The parts in which *after* differs from *before*, in its order; at last those that it no longer has."""
    old = dict(_table(before))
    new = dict(_table(after))
    found = [Difference(label, old.get(label), value) for label, value in new.items() if old.get(label) != value]
    found += [Difference(label, value, None) for label, value in old.items() if label not in new]
    if not found:
        found = [Difference(a, new[a], new[a]) for a, b in zip(new, old, strict=True) if a != b]
    return tuple(found)


def _table(key: CacheKey | PartsTable) -> Iterable[tuple[str, str]]:
    return key.table if isinstance(key, CacheKey) else key


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # paths may hold lone surrogates


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data


def _shown(value: str | bytes) -> str:
    if isinstance(value, bytes):
        return f"<{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()[:16]}>"
    if len(value) <= _LONGEST_SHOWN and value.isprintable():
        return value
    return f"<{len(value)} characters, sha256 {hashlib.sha256(_encoded(value)).hexdigest()[:16]}>"
