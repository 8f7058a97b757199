# SPDX-License-Identifier: BSD-2-Clause
"""Watch the headers of a manifest for changes, at next to no cost for those of installed packages."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from .changes import HeaderManifest
from .file_state import FileState, all_unchanged, path_state

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

    def __init__(self, manifest: HeaderManifest, packages: Sequence[str] = ()):
        self._packages = tuple(os.path.join(folder, "") for folder in packages)
        self._package_folders = frozenset(packages)
        self._set(manifest)

    def unchanged(self) -> bool:
        """Whether a compile would read the same as when `manifest` was recorded, which then has the current states.

        It takes about 1 ms for CUB's 400 headers, and next to nothing when it is asked again soon.
        """
        manifest = self.manifest
        if (
            manifest.is_settled
            and manifest.links_unchanged()
            and all_unchanged(*self._own)
            and self._packages_unchanged()
        ):
            return True
        refreshed = self.manifest.refreshed()
        if refreshed is None:
            return False
        self._set(refreshed)
        return True

    def _set(self, manifest: HeaderManifest) -> None:
        self.manifest = manifest
        self._own: tuple[list[str], list[FileState]] = [], []
        self._packaged: tuple[list[str], list[FileState]] = [], []
        self._packages_until = 0.0
        folders, prefixes = self._package_folders, self._packages
        for paths, states in (
            ([header.path for header in manifest.headers], [header.state for header in manifest.headers]),
            *((absence.watched, absence.states) for absence in manifest.absences),
        ):
            for path, state in zip(paths, states, strict=True):
                group = self._packaged if path.startswith(prefixes) or path in folders else self._own
                group[0].append(path)
                group[1].append(state)

    def _packages_unchanged(self) -> bool:
        now = time.monotonic()
        if now < self._packages_until:
            return True
        until = later = now + PACKAGES_INTERVAL
        for path, state in zip(*self._packaged, strict=True):
            seen = _seen_packaged.get(path)
            if seen is None or seen[0] <= now:
                seen = _seen_packaged[path] = later, path_state(path)
            if seen[1] != state:
                return False
            if seen[0] < until:
                until = seen[0]
        self._packages_until = until
        return True
