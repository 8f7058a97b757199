# SPDX-License-Identifier: BSD-2-Clause
"""Sources that differ in nothing that decides which headers are read: what was found for one holds for the others.

The sources of a library often differ in some types and numbers alone, and a scan for CUB's headers takes 15 ms.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from .macros import UnknownTextError
from .manifest import HeaderManifest, HeaderWatch
from .preprocessor import Directives
from .scan import Scan, SourceText

_MOST_KNOWN = 16  # the macros of CUB's headers take a megabyte


class _Known(NamedTuple):
    """What a scan found, and the names that the text of its source probes for through macros."""

    scan: Scan
    watch: HeaderWatch
    probed: frozenset[str]


# By the sources, with their directives in place of their code.
_known: dict[tuple[SourceText, Directives], _Known] = {}


def manifest_of(source: SourceText) -> HeaderManifest | None:
    """Return the manifest of the headers that *source* reads, if one like it was scanned in this process and no file
    has changed since."""
    if (known := _known.get(_likeness(source))) is None or not known.watch.unchanged():
        return None
    try:
        is_alike = known.scan.probed_by(source) == known.probed and not known.scan.may_contain_path(source)
    except UnknownTextError:
        return None
    return known.watch.manifest if is_alike else None


def remember(scan: Scan, manifest: HeaderManifest) -> None:
    """Remember *manifest*, which was made of what a *scan* found, for sources like that of the scan."""
    if manifest.has_path or scan.found.computed:
        return
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    source = scan.source
    watch = HeaderWatch(manifest, source.packages)
    _known[_likeness(source)] = _Known(scan, watch, scan.probed_by(source))


def _likeness(source: SourceText) -> tuple[SourceText, Directives]:
    return dataclasses.replace(source, code=b""), source.directives[1]
