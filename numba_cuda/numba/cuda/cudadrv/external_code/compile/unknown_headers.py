# SPDX-License-Identifier: BSD-2-Clause
"""Compile a source while its headers are found. NVRTC needs a second for a large library, and a scan of its headers, in
another thread, a tenth of that.

The user's own headers are read before NVRTC starts, because it would wait for a pipe or a device. Those of packages are
read while it runs. That they are what NVRTC read shows in their states: none has changed since before it started.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

from ..headers.manifest import HeaderManifest
from ..headers.scan import Scan, SourceText
from .nvrtc import Compiled
from .nvrtc_processes import is_ending


def compiled_with_headers(
    text: SourceText, compile_: Callable[[], Compiled]
) -> tuple[Compiled, HeaderManifest | None] | None:
    """Return what *compile_* makes of the source *text*, and the manifest of the headers that it read, as they are
    after it; ``None`` in place of the manifest if the headers cannot be known, or one may have changed meanwhile.
    Return ``None`` without compiling if the headers of packages may include files of the user's.

    Raises `OSError` if one of the user's headers cannot be read, and what *compile_* raises.
    """
    began = time.time_ns()
    scan = Scan(text)
    if not scan.read_own():
        return None
    compiled, scanned = _at_once(compile_, functools.partial(_manifest, scan, text, began))
    try:
        manifest = scanned()
    except OSError:  # a header of a package was removed meanwhile, for example
        return compiled, None
    if manifest is None or not manifest.is_settled_below(text.packages):
        return compiled, None
    return compiled, manifest.refreshed()


def _at_once(
    compile_: Callable[[], Compiled], manifest: Callable[[], HeaderManifest | None]
) -> tuple[Compiled, Callable[[], HeaderManifest | None]]:
    """Return what *compile_* returns, and a function that returns what *manifest* does, which runs meanwhile."""
    if is_ending():
        return compile_(), manifest
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, "headers") as pool:
        scanned = pool.submit(manifest)
        return compile_(), scanned.result


def _manifest(scan: Scan, text: SourceText, began: int) -> HeaderManifest | None:
    found = scan.run()
    return None if found.unclear or found.computed else HeaderManifest.of(found, text, began)
