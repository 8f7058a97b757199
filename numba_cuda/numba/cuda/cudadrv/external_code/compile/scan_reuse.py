# SPDX-License-Identifier: BSD-2-Clause
"""Sources that differ in nothing that decides which headers are read: what was found for one holds for the others.

The sources of a library often differ in some types and numbers alone, as do the versions of a file that is edited. A
scan for CUB's headers takes 0.1 s in a new process, and a look at the record of an earlier one 3 ms.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import NamedTuple

from ..cache.entry import CacheKey
from ..cache.store import current_store
from ..headers.macros import has_any
from ..headers.manifest import HeaderManifest, HeaderWatch
from ..headers.preprocessor import Directives
from ..headers.scan import Scan, SourceText
from .translation_unit import RECORD_OF_HEADERS

_MOST_KNOWN = 16


class _Known(NamedTuple):
    """What a scan found, and the words for which a source is not like that of the scan, whatever it includes: macros
    that probe for headers, and what puts a path into the code."""

    watch: HeaderWatch
    words: frozenset[bytes]


# By the sources, with their directives in place of their code.
_known: dict[tuple[SourceText, Directives], _Known] = {}


def manifest_of(source: SourceText) -> HeaderManifest | None:
    """Return the manifest of the headers that *source* reads, if one like it was scanned, in this process or in another
    one with this cache directory, and no file has changed since."""
    likeness = _likeness(source)
    known = _known.get(likeness) or _on_disk(likeness)
    if known is None or _is_special(source, known.words) or not known.watch.unchanged():
        return None
    _keep(likeness, known)
    return known.watch.manifest


def remember(scan: Scan, manifest: HeaderManifest) -> None:
    """Remember *manifest*, which was made of what a *scan* found, for sources like that of the scan."""
    if manifest.has_path or scan.found.computed:
        return
    source, words = scan.source, scan.words_that_matter()
    if _is_special(source, words):
        return
    likeness = _likeness(source)
    _keep(likeness, _Known(HeaderWatch(manifest, source.packages), words))
    listed = json.dumps(sorted(word.decode("latin-1") for word in words))
    packed = manifest.packed + b"\n" + listed.encode()
    current_store().put(_key(likeness), packed, memory=False)


def _on_disk(likeness: tuple[SourceText, Directives]) -> _Known | None:
    data = current_store().get(_key(likeness), memory=False) or b""
    packed, _, listed = data.rpartition(b"\n")
    with contextlib.suppress(ValueError, TypeError):  # there is none, or it is damaged
        words = frozenset(word.encode("latin-1") for word in json.loads(listed))
        return _Known(HeaderWatch(HeaderManifest.unpacked(packed), likeness[0].packages), words)
    return None


def _key(likeness: tuple[SourceText, Directives]) -> CacheKey:
    return CacheKey("includes", "of like sources", (("source", repr(likeness)), RECORD_OF_HEADERS))


def _keep(likeness: tuple[SourceText, Directives], known: _Known) -> None:
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[likeness] = known


def _is_special(source: SourceText, words: frozenset[bytes]) -> bool:
    return any(has_any(words, each.text) for each in source.directives)


def _likeness(source: SourceText) -> tuple[SourceText, Directives]:
    return dataclasses.replace(source, code=b""), source.directives[1]
