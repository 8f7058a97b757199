# SPDX-License-Identifier: BSD-2-Clause
"""The files of generated sources, for debuggers and profilers.

Code with line information names files, and a source that a hook made has none. It is written to ``sources/DIGEST/NAME``
in the cache's directory, and its lines are counted there. Of many files, those that were used last are kept; a build
that needs one of the others writes it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re

from ..cache.disk import SOURCES, write_file
from ..cache.store import current_store
from ..inputs.link_input import line_marker, split_at_markers

_SUFFIX = re.compile(r"\.(?:cu|cuh|c|cc|cpp|cxx|h|hh|hpp|hxx|inl)$")
_UNSAFE = re.compile(r"[^\w.+-]+")
_names: dict[str, str] = {}  # of sources, by the paths of their files
_MOST_BYTES = 64 << 20  # of all files, each of which counts as one block of the disk at least
_BLOCK = 4096


def with_files(text: str, name: str) -> str:
    """Return the source *text* of a unit called *name* with directives that name a file for each generated source in
    it. It stays as it is where the cache writes nothing to disk, or in a directory whose name is not UTF-8, as source
    text must be."""
    settings = current_store().settings
    if not settings.on_disk or settings.directory != settings.directory.encode(errors="replace").decode():
        return text
    folder = os.path.join(settings.directory, SOURCES)
    placed = []
    for path, piece in split_at_markers(text, name):
        if _SUFFIX.search(path) and not os.path.isfile(path):
            digest = hashlib.sha256(piece.encode()).hexdigest()[:16]
            file = os.path.join(folder, digest, _UNSAFE.sub("_", os.path.basename(path)))
            path, _names[file] = file, path
        placed.append(f"{line_marker(path)}{piece}")
    return "".join(placed)


def without_folder(code: str) -> str:
    """Return the *code* of a unit with the same names of files wherever the cache's directory is."""
    folder = os.path.join(current_store().settings.directory, SOURCES, "")
    before, after = (line_marker(each).rstrip('"\n') for each in (folder, os.path.join(SOURCES, "")))
    return code.replace(before, after)


def without_files(log: str) -> str:
    """Return NVRTC's *log* with the names of generated sources in place of their files."""
    folder = re.escape(os.path.join(current_store().settings.directory, SOURCES) + os.sep)
    file = rf"{folder}[0-9a-f]{{16}}{re.escape(os.sep)}[\w.+-]+"
    return re.sub(file, lambda found: _names.get(found[0], os.path.basename(found[0])), log)


def write_files(text: str) -> None:
    """Write the files that the directives of a unit's *text* name in the cache's directory, if they are not there."""
    store = current_store()
    folder = os.path.join(store.settings.directory, SOURCES)
    for path, piece in split_at_markers(text, ""):
        if not path.startswith(folder + os.sep):
            continue
        with contextlib.suppress(OSError):  # a tool then shows no source, and the program runs all the same
            if os.path.isfile(path):
                os.utime(path)
            elif store.disk.private_folder(SOURCES) is not None:
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                write_file(path, piece.encode(), os.path.dirname(path))
                _remove_oldest(folder, path)


def _remove_oldest(folder: str, written: str) -> None:
    """Remove the files in *folder* that were not used for longest, but for the one just *written*, while all take more
    than `_MOST_BYTES`."""
    found = []
    for place in os.scandir(folder):
        with contextlib.suppress(OSError):
            found += [(file.stat(follow_symlinks=False), file.path) for file in os.scandir(place.path)]
    total = sum(max(_BLOCK, status.st_size) for status, _ in found)
    for status, path in sorted(found, key=lambda each: each[0].st_mtime):
        if total <= _MOST_BYTES:
            return
        total -= max(_BLOCK, status.st_size)
        if path != written:
            with contextlib.suppress(OSError):  # another process has removed it, or uses its folder
                os.unlink(path)
                os.rmdir(os.path.dirname(path))
