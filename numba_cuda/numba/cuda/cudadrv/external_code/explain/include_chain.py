# SPDX-License-Identifier: BSD-2-Clause
"""By way of which headers a source includes one that was not found."""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Sequence

from ..compile.translation_unit import toolkit_include_paths
from ..headers.preprocessor import Directives

_MOST_HEADERS = 2000
_MISSING = re.compile(r'^(?P<place>.+)\(\d+\): .*cannot open source file "(?P<name>[^"]+)"', re.MULTILINE)


def describe_chain(log: str, code: str, name: str, include_paths: Sequence[str]) -> list[str]:
    """Return the line that shows how the source *name*, with this *code*, includes the header that NVRTC's *log* says
    is missing; nothing where it does so itself, or that is not found."""
    found = _MISSING.search(log)
    if found is None or not os.path.isfile(found["place"]) or found["place"].endswith(name):
        return []
    chain = _find(code.encode(), found["place"], (*include_paths, *toolkit_include_paths()))
    return [f"included: {' → '.join((name, *chain, found['name']))}"] if chain else []


def _find(code: bytes, header: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the names on the shortest way from *code* to *header*, under whatever conditions."""
    waiting: collections.deque[tuple[tuple[str, ...], bytes, str]] = collections.deque([((), code, "")])
    seen: set[str] = set()
    while waiting and len(seen) < _MOST_HEADERS:
        chain, text, folder = waiting.popleft()
        for _, included in Directives.of(text).names:
            paths = (os.path.join(base, included) for base in (folder, *folders))
            path = next(filter(os.path.isfile, paths), None)
            if path is None or path in seen:
                continue
            if os.path.samefile(path, header):
                return (*chain, included)
            seen.add(path)
            with open(path, "rb") as file:
                waiting.append(((*chain, included), file.read(), os.path.dirname(path)))
    return ()
