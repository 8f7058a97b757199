# SPDX-License-Identifier: BSD-2-Clause
"""The headers that a translation unit reads, as NVRTC's own look-ups show, on record in the cache.

This machine's record has the states of the files, so that none is read while they are unchanged. Where it does not
hold, because a header was edited or the files are elsewhere, the record for all machines may: it has contents alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from ..cache.entry import CacheKey
from ..cache.store import current_store
from ..headers import manifest as manifests
from ..headers.file_state import Header
from ..headers.manifest import HeaderManifest, HeaderWatch
from ..headers.outside_words import find_time, may_have_path
from ..headers.search_roots import Alternative, pack_alternatives, unpack_alternatives
from .translation_unit import TranslationUnit, UnitKeys, fixed_include_paths


class UnitHeaders:
    """The headers of *unit*, whose records are cached under *keys*.

    ``manifest`` has them, once they are known, and ``places`` stands for the paths that the code may contain.
    """

    def __init__(self, unit: TranslationUnit, keys: UnitKeys):
        self._unit, self._keys, self._roots = unit, keys, keys.roots
        self._watch: HeaderWatch | None = None
        # Where and why the latest compile could not be cached, and the headers that it is known to have read.
        self._uncached: tuple[str, tuple[Header, ...]] = ("", ())
        self._alternatives: dict[Alternative, None] = {}  # seen on record, the newest first
        self._asked_elsewhere = False  # since the headers were last known
        self.places = ""

    @property
    def manifest(self) -> HeaderManifest | None:
        """The headers as they were when they were last looked at, or ``None``."""
        return None if self._watch is None else self._watch.manifest

    def on_record(self) -> bool:
        """Whether the headers are on record, and a compile would look up the same as then."""
        if self._watch is None and (data := current_store().get(self._keys.headers, remote=False)) is not None:
            with contextlib.suppress(ValueError, TypeError, LookupError):  # it is damaged
                packed, _, places = data.rpartition(b"\n")
                self._note(HeaderManifest.unpacked(packed), places.decode())
        if self._watch is None:
            return self._on_portable_record()
        before = self._watch.manifest
        if not self._watch.unchanged():
            manifests.remember(before.recorded, before.headers)
            self._watch = None
            return self._on_portable_record()
        if self._watch.manifest is not before:
            # Files were touched, or are older now.
            self._put()
        current_store().send(self._keys.source)  # with which other machines find the program
        self._asked_elsewhere = False
        return True

    def _on_portable_record(self) -> bool:
        """Whether an alternative of the record for all machines holds here. Where the cache is shared, another machine
        may know one that this one does not."""
        store, is_near = current_store(), True
        for data in store.levels(self._keys.source, remote=not self._asked_elsewhere):
            for known in unpack_alternatives(data):
                self._alternatives.setdefault(known)
                seen = time.monotonic()
                manifest = HeaderManifest.of_alternative(known, self._roots)
                if manifest is not None and self._is_of_here(known, manifest):
                    self._note(manifest, known.places, seen)
                    self._put()
                    self._asked_elsewhere = False
                    if not is_near:
                        self._put_portable(known, is_portable=False)
                    return True
            is_near = False
        self._asked_elsewhere = True
        return False

    def _is_of_here(self, known: Alternative, manifest: HeaderManifest) -> bool:
        """Whether a program of *known* is what a compile here would give: where files are elsewhere, only if their
        paths are not in it."""
        if known.places == self._keys.places(manifest):
            return True
        return not (self._keys.has_lines or current_store().settings.verify or self.may_have_path(manifest))

    def may_have_path(self, manifest: HeaderManifest, *, by_macros: bool = True) -> bool:
        """Whether a program with the headers of *manifest* may contain the path of one of the user's files, also *by
        macros* of packages, whose many headers are then read."""
        own = [self._unit.code.encode(), repr(self._unit.option("define_macro")).encode()]
        packaged: list[bytes] = []
        try:
            for header in manifest.headers:
                is_packaged = self._roots.is_packaged(header.path)
                if by_macros or not is_packaged:
                    with open(header.path, "rb") as file:
                        (packaged if is_packaged else own).append(file.read())
        except OSError:
            return True
        return may_have_path(own, packaged)

    def record(self, lookups: Mapping[str, Any], began: int, excluded: str = "") -> bool:
        """Record what a compile that *began* then looked up, as `nvrtc_lookups` reports it; return whether that says
        all that its program depends on. With an *excluded* option it does not."""
        seen = time.monotonic()
        headers, used = self._read(lookups)
        unknown = ("", f"it is compiled with the option {excluded}") if excluded else lookups["unknown"] or used
        if unknown is not None:
            self._watch = None
            self._note_uncached(unknown[0], unknown[1], headers or ())
            return False
        manifest = None if headers is None else HeaderManifest.of(headers, lookups["absent"], self._roots, began)
        if manifest is None:
            self._watch = None
            return False
        self._note(manifest, self._keys.places(manifest), seen)
        self._put()
        self._asked_elsewhere = False
        self._put_portable(manifest.alternative(self._roots, self.places), is_portable=True)
        return True

    def _read(self, lookups: Mapping[str, Any]) -> tuple[list[Header] | None, tuple[str, str] | None]:
        """Return the headers that a compile has read; ``None`` if one was edited meanwhile, which may have been read
        before or after. Return also where one of them uses the time, and how."""
        headers, used = [], None
        for path, values, number in lookups.get("headers", ()):
            state = tuple(values)
            try:
                if self._roots.is_packaged(path):
                    header, text = manifests.read_header(path, state), b""
                else:
                    header, text = manifests.read_text(path)
            except (OSError, ValueError):
                return None, used
            read = header.sha256 if number is None else hashlib.sha256(lookups["texts"][number]).hexdigest()
            if (header.state, header.sha256) != (state, read):
                return None, used
            used = used or find_time(text, path)
            headers.append(header)
        return headers, used

    def _note(self, manifest: HeaderManifest, places: str, seen: float = -manifests.PACKAGES_INTERVAL) -> None:
        """Note that the headers are those of *manifest*, as they were *seen* at a time of `time.monotonic`."""
        self._watch = HeaderWatch(manifest, fixed_include_paths(), seen)
        self.places = places

    def _put(self) -> None:
        assert self._watch is not None
        data = self._watch.manifest.packed + b"\n" + self.places.encode()
        current_store().put(self._keys.headers, data, is_portable=False)

    def _put_portable(self, known: Alternative, *, is_portable: bool) -> None:
        others = (each for each in self._alternatives if each != known)
        self._alternatives = dict.fromkeys((known, *others))
        current_store().put(self._keys.source, pack_alternatives(self._alternatives), is_portable=is_portable)

    def _note_uncached(self, where: str, why: str, headers: Iterable[Header]) -> None:
        short, whole = (f"{place}: {why}" if place else why for place in (os.path.basename(where), where))
        before, self._uncached = self._uncached, (short, tuple(headers))
        if self._uncached != before:
            key = self.uncached_key()
            current_store().note_not_cached(
                "program", key.name, whole, [fact for fact in key.facts() if fact[:2] == ("", "path")]
            )

    def uncached_key(self) -> CacheKey:
        """Return a key that describes the program of the latest compile, which no key stands for."""
        why, headers = self._uncached
        return self._keys.uncached(headers, why or "what it read is not known")
