# SPDX-License-Identifier: BSD-2-Clause
"""The headers that a translation unit reads: on record in a cache, found for another unit, or found in the texts.

NVRTC needs a second for a large library, and a scan of its headers, in another thread, a tenth of that. The user's own
headers are read before NVRTC starts, because it would wait for a pipe or a device. Those of packages are read while it
runs; their states show that none has changed since before it started.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..cache.entry import CacheKey
from ..cache.store import current_store
from ..headers.manifest import HeaderManifest, HeaderWatch
from ..platform.cuda_libraries import nvrtc_version
from .nvrtc import Compiled
from .translation_unit import TranslationUnit, fixed_include_paths

# What reads texts and compiles is imported where it is needed: headers on record are checked without it.
if TYPE_CHECKING:
    from ..headers.scan import Scan, SourceText


class UnitHeaders:
    """The headers of *unit*, whose record is cached under *key*.

    ``manifest`` has them, once they are known; ``are_unclear`` says that the texts do not show which are read, and
    NVRTC does not report them.
    """

    def __init__(self, unit: TranslationUnit, key: CacheKey):
        self._unit, self._key = unit, key
        self._watch: HeaderWatch | None = None
        self._why_not_cached = ""
        self.are_unclear = False

    @property
    def manifest(self) -> HeaderManifest | None:
        """The headers as they were when they were last looked at, or ``None``."""
        return None if self._watch is None else self._watch.manifest

    def note(self, manifest: HeaderManifest, seen: float = 0.0) -> None:
        """Note that the headers are those of *manifest*, as they were *seen* at a time of `time.monotonic`."""
        self._watch = HeaderWatch(manifest, fixed_include_paths(), seen)

    def on_record(self, *, remote: bool = False) -> bool:
        """Whether the headers are on record and unchanged, as those of all but new and edited sources are."""
        if self._watch is None and (data := current_store().get(self._key, remote=remote)) is not None:
            with contextlib.suppress(ValueError, TypeError):  # it is damaged
                self.note(HeaderManifest.unpacked(data))
        if self._watch is None:
            return False
        before = self._watch.manifest
        if not self._watch.unchanged():
            self._watch = None
            return False
        if self._watch.manifest is not before:
            # Files were touched, or are older now.
            current_store().put(self._key, self._watch.manifest.packed, is_portable=False)
        return True

    def find(self, traced: Sequence[str] = ()) -> bool:
        """Find the headers in the texts and record them; return whether the texts say which headers are read."""
        from . import scan_reuse

        manifest, seen = (None if traced else scan_reuse.manifest_of(self.text)), 0.0
        if manifest is None:
            seen = time.monotonic()
            manifest = self._scanned(traced)
        if manifest is None:
            return False
        self.note(manifest, seen)
        # What takes a compile to find is worth telling other machines.
        current_store().put(self._key, manifest.packed, is_portable=bool(traced))
        return True

    def _scanned(self, traced: Sequence[str]) -> HeaderManifest | None:
        from ..headers.scan import Scan
        from . import scan_reuse

        began, scan = time.time_ns(), Scan(self.text)
        found = scan.run(traced)
        if found.unclear or (found.computed and not traced):
            self.are_unclear = found.unclear is not None
            computed = "it includes a header that a macro names"
            where, why = found.unclear or (found.computed[0] or "the source", computed)
            if why != self._why_not_cached and (found.unclear or not nvrtc_reports_headers()):
                current_store().note_not_cached("program", self._unit.name, where, why)
                self._why_not_cached = why
            return None
        manifest = HeaderManifest.of(found, self.text, began)
        if manifest is not None and not traced:
            scan_reuse.remember(scan, manifest)
        return manifest

    @functools.cached_property
    def text(self) -> SourceText:
        """The text of the unit, and where its includes are looked up."""
        from ..headers.scan import SourceText

        unit = self._unit
        search = tuple(unit.option("include_path") or ())
        before = unit.option("pre_include") or ()
        folder = None if unit.option("no_source_include") else os.path.dirname(unit.name)
        preincluded = (before,) if isinstance(before, str) else tuple(before)
        defined = tuple(unit.option("define_macro") or ())
        undefined = unit.option("undefine_macro") or ()
        undefined = (undefined,) if isinstance(undefined, str) else tuple(undefined)
        code, packages = unit.code.encode(), fixed_include_paths()
        return SourceText(code, folder, search, preincluded, defined, undefined, packages)


def nvrtc_reports_headers() -> bool:
    """Whether NVRTC can report which headers a compile read."""
    return (nvrtc_version() or (0, 0)) >= (13, 0)


def compiled_with_headers(text: SourceText, compile_: Callable[[], Compiled]) -> tuple[Compiled, HeaderManifest] | None:
    """Return what *compile_* makes of the source *text*, and the manifest of the headers that it read, as they are
    after it; ``None`` if the headers cannot be known, or one may have changed meanwhile. Return ``None`` without
    compiling if they are on record for a source like it.

    Raises `OSError` if one of the user's headers cannot be read, and what *compile_* raises.
    """
    from ..headers.scan import Scan
    from .scan_reuse import manifest_of

    began = time.time_ns()
    scan = Scan(text)
    if manifest_of(text) is not None or not scan.read_own():
        return None
    compiled, scanned = _at_once(compile_, functools.partial(_manifest, scan, text, began))
    try:
        manifest = scanned()
    except OSError:  # a header of a package was removed meanwhile, for example
        return None
    if manifest is None or not manifest.is_settled_below(text.packages) or (now := manifest.refreshed()) is None:
        return None
    return compiled, now


def _at_once(
    compile_: Callable[[], Compiled], manifest: Callable[[], HeaderManifest | None]
) -> tuple[Compiled, Callable[[], HeaderManifest | None]]:
    """Return what *compile_* returns, and a function that returns what *manifest* does, which runs meanwhile."""
    from .nvrtc_processes import is_ending

    if is_ending():
        return compile_(), manifest
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, "headers") as pool:
        scanned = pool.submit(manifest)
        return compile_(), scanned.result


def _manifest(scan: Scan, text: SourceText, began: int) -> HeaderManifest | None:
    found = scan.run()
    manifest = None if found.unclear or found.computed else HeaderManifest.of(found, text, began)
    if manifest is not None:
        from .scan_reuse import remember

        remember(scan, manifest)
    return manifest
