# SPDX-License-Identifier: BSD-2-Clause
"""Watch the headers of a manifest for changes, at next to no cost for those of installed packages."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from .changes import HeaderManifest
from .file_state import FileState, all_unchanged, state_of

# How long, in seconds, the headers of installed packages count as unchanged after a look at them.
PACKAGES_INTERVAL = 1.0

# The states of installed packages' files, and until when they count; manifests share most of these files.
_seen_packaged: dict[str, tuple[float, FileState]] = {}


class HeaderWatch:
    """A manifest, and when its headers were last looked at in this process.

    Headers below *packages*, the include directories of the CUDA toolkit and of other installed packages, rarely change
    while a process runs: they are looked at again after `PACKAGES_INTERVAL` seconds. All other headers are looked at
    each time.
    """

    def __init__(self, manifest: HeaderManifest, packages: Sequence[str]):
        self._packages = tuple(os.path.join(folder, "") for folder in packages)
        self._set(manifest)

    def unchanged(self) -> bool:
        """Whether a compile would read the same as when `manifest` was recorded, which then has the current states.

        It takes about 1 ms for CUB's 400 headers, and next to nothing when it is asked again soon.
        """
        manifest = self.manifest
        if not (
            manifest.is_settled
            and manifest.links_unchanged()
            and all_unchanged(self._own)
            and self._packages_unchanged()
        ):
            refreshed = manifest.refreshed()
            if refreshed is None:
                return False
            self._set(refreshed)
        return True

    def _set(self, manifest: HeaderManifest) -> None:
        self.manifest = manifest
        self._own: list[tuple[str, FileState]] = []
        self._packaged: list[tuple[str, FileState]] = []
        self._packages_until = 0.0
        known = [(header.path, header.state) for header in manifest.headers]
        for absence in manifest.absences:
            known += zip(absence.watched, absence.states, strict=True)
        for each in known:
            (self._packaged if (each[0] + os.sep).startswith(self._packages) else self._own).append(each)

    def _packages_unchanged(self) -> bool:
        now = time.monotonic()
        if now < self._packages_until:
            return True
        until = later = now + PACKAGES_INTERVAL
        for path, state in self._packaged:
            seen = _seen_packaged.get(path)
            if seen is None or seen[0] <= now:
                seen = _seen_packaged[path] = later, state_of(path)
            if seen[1] != state:
                return False
            until = min(until, seen[0])
        self._packages_until = until
        return True
