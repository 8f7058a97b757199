# SPDX-License-Identifier: BSD-2-Clause
"""The environment variables of this project, and what each may be: what the doctor compares the environment with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .printable_texts import did_you_mean

_PREFIX = "NUMBA_CUDA_AUTOLINK"
_SWITCH = ("[01]", "0 or 1")
_SIZE = (r"(?i)\d+(\.\d+)?\s*[kmgt]?(i?b)?", "a number of bytes above 0, such as 500M or 2G")
_NUMBER = (r"\d*\.?\d+", "a number above 0")
_ANY = ("(?s).*", "")
#: By the end of the name: a pattern of the values, and what they are.
_VALUES = {
    "": _SWITCH,
    "_CACHE": ("(?i)[01]|verify", "0 (nothing on disk), 1 or verify"),
    "_CACHE_DIR": _ANY,
    "_CACHE_SIZE": _SIZE,
    "_CACHE_READONLY": _ANY,
    "_CACHE_REMOTE": ("(?s).*://.*|[~/].*", "an address, such as s3://bucket/folder"),
    "_CACHE_REMOTE_KEY": _ANY,
    "_CACHE_REMOTE_MODE": ("(?i)ro|rw", "ro or rw"),
    "_CACHE_REMOTE_WAIT": _NUMBER,
    "_CAPTURE": _ANY,
    "_COMPILE_MEMORY": _SIZE,
    "_COMPILE_TIME": _NUMBER,
    "_EMULATE": ("[01]|checks", "1 or checks, or 0 for the GPU"),
    "_JOBS": ("[1-9][0-9]*", "a number of processes"),
    "_LOG": ("cache", "cache"),
    "_PCH": _SWITCH,
    "_PROGRESS": _SWITCH,
    "_TRACEBACK": ("full", "full"),
}
VARIABLES = tuple(_PREFIX + end for end in _VALUES)


def wrong_settings(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with each variable of this project in *environ*, and what to do."""
    for name in sorted(each for each in environ if each.startswith(_PREFIX)):
        if name not in VARIABLES:
            yield f"{name} is not a setting{did_you_mean(name, VARIABLES)}", "correct the name, or unset it"
            continue
        pattern, expected = _VALUES[name.removeprefix(_PREFIX)]
        if (value := environ[name].strip()) and not re.fullmatch(pattern, value):
            yield f"{name} is {value!r}, expected {expected}", "correct the value, or unset it"
