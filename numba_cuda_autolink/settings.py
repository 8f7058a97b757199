# SPDX-License-Identifier: BSD-2-Clause
"""The environment variables of this project, and what each may be."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping

from .printable_texts import did_you_mean

_PREFIX = "NUMBA_CUDA_AUTOLINK"


def parse_size(text: str) -> int | None:
    """Return the number of bytes of a size such as ``"500M"``, ``"2 GiB"`` or ``"1000"``; ``None`` if *text* is not a
    size."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ")) if match else None


def parse_positive(text: str) -> float | None:
    """Return the finite number above 0 that *text* is; ``None`` if it is something else."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < math.inf else None


def _like(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL).fullmatch


_SWITCH = (_like("[01]"), "0 or 1")
_SIZE = (parse_size, "a number of bytes above 0, such as 500M or 2G")
_NUMBER = (parse_positive, "a number above 0")
_ANY = (_like(".*"), "")


def _are_folders(text: str) -> bool:
    return all(os.path.isdir(os.path.expanduser(each)) for each in text.split(os.pathsep) if each)


#: By the end of the name: whether a value is right, and what is.
_VALUES: dict[str, tuple[Callable[[str], object], str]] = {
    "": _SWITCH,
    "_CACHE": (_like("[01]|verify"), "0 (nothing on disk), 1 or verify"),
    "_CACHE_DIR": _ANY,
    "_CACHE_SIZE": _SIZE,
    "_CACHE_READONLY": (_are_folders, "folders that exist"),
    "_CACHE_REMOTE": (_like(".*://.*|[~/].*"), "an address, such as s3://bucket/folder"),
    "_CACHE_REMOTE_KEY": _ANY,
    "_CACHE_REMOTE_MODE": (_like("ro|rw"), "ro or rw"),
    "_CACHE_REMOTE_WAIT": _NUMBER,
    "_CAPTURE": (os.path.isdir, "a folder that exists"),
    "_COMPILE_MEMORY": _SIZE,
    "_COMPILE_TIME": _NUMBER,
    "_EMULATE": ({"0", "1", "checks"}.__contains__, "1 or checks, or 0 for the GPU"),
    "_JOBS": (_like("[1-9][0-9]*"), "a number of processes"),
    "_LOG": (_like(r"cache([,\s]+cache)*"), "cache"),
    "_PCH": _SWITCH,
    "_PROGRESS": _SWITCH,
    "_TRACEBACK": ({"full"}.__contains__, "full"),
}
VARIABLES = tuple(_PREFIX + end for end in _VALUES)


def expected_instead(variable: str, value: str) -> str:
    """Return what is expected in place of the *value* of a *variable*; empty if that is right, or none is given."""
    is_right, expected = _VALUES[variable.removeprefix(_PREFIX)]
    return expected if value and not is_right(value) else ""


def wrong_settings(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with each variable of this project in *environ*, and what to do."""
    for name in sorted(each for each in environ if each.startswith(_PREFIX)):
        value = environ[name].strip()
        if name not in VARIABLES:
            yield f"{name} is not a setting{did_you_mean(name, VARIABLES[1:])}", f"correct the name, or: unset {name}"
        elif expected := expected_instead(name, value):
            yield f"{name} is {value!r}, expected {expected}", f"correct the value, or: unset {name}"
