# SPDX-License-Identifier: BSD-2-Clause
"""Cache keys: a table of named parts, its digest, and the differences of two tables."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field

# Increased when the meaning of a digest changes, so that no entry of an earlier version is found.
KEY_SCHEMA = 2

_LONGEST_SHOWN = 80

# A key as it is stored with its entry and shown to users: labels, and values short enough to read.
PartsTable = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CacheKey:
    """Everything that a cached artefact depends on. Raises `ValueError` if two parts have one label.

    Two keys are equal if they have the same kind and the same parts in the same order. Text never equals bytes, and no
    part can run into the next.
    """

    kind: str  # what is cached: ``"program"``, ``"headers"``, ``"link"``, ``"kernel"``, ...; not empty
    name: str = field(compare=False)  # What messages call it. It does not affect equality.
    # Pairs of a label and a value, which is text or bytes. Labels are unique.
    parts: tuple[tuple[str, str | bytes], ...]

    def __post_init__(self) -> None:
        labels = [label for label, _ in self.parts]
        if len(set(labels)) < len(labels):
            raise ValueError(f"a cache key has two parts of one label: {', '.join(labels)}")

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    @functools.cached_property
    def digest(self) -> bytes:
        """The SHA-256 of the schema, the kind and the parts, each framed by its length."""
        digest = hashlib.sha256(b"numba-cuda-autolink cache key\0")
        digest.update(_frame(str(KEY_SCHEMA)) + _frame(self.kind))
        for label, value in self.parts:
            digest.update(_frame(label) + (b"t" if isinstance(value, str) else b"b") + _frame(value))
        return digest.digest()

    @functools.cached_property
    def table(self) -> PartsTable:
        """The parts as they are stored with the entry: short text as it is, other values as size and digest."""
        return (("key schema", str(KEY_SCHEMA)), *((label, _show(value)) for label, value in self.parts))


def differences(before: PartsTable, after: PartsTable) -> list[str]:
    """Describe the parts in which *after* differs from *before*: first those of *after*, then those that it lacks."""
    old, new = dict(before), dict(after)
    found = [
        f"{label} ({old[label]} -> {value})" if label in old else f"{label} (now {value})"
        for label, value in new.items()
        if old.get(label) != value
    ]
    found += [f"{label} (no longer {value})" for label, value in old.items() if label not in new]
    return found or [f"{one} (in another place)" for one, other in zip(new, old, strict=True) if one != other]


def _encode(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value  # paths may hold lone surrogates


def _frame(value: str | bytes) -> bytes:
    data = _encode(value)
    return len(data).to_bytes(8, "little") + data


def _show(value: str | bytes) -> str:
    if isinstance(value, str) and len(value) <= _LONGEST_SHOWN and value.isprintable():
        return value
    unit = "characters" if isinstance(value, str) else "bytes"
    return f"<{len(value)} {unit}, sha256 {hashlib.sha256(_encode(value)).hexdigest()[:16]}>"
