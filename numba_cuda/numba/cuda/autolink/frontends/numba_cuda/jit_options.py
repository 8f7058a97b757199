# SPDX-License-Identifier: BSD-2-Clause
"""The types of the options of ``cuda.jit``. numba-cuda takes any value, and ``fastmath="no"`` turns it on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import Any


def wrong_option(options: Mapping[str, Any]) -> str | None:
    """Return the message about the first of *options* whose value is of a wrong type, ``None`` if there is none."""
    for name, value in options.items():
        if name in _TAKEN and value is not None and not (taken := _TAKEN[name])[0](value):
            return f"{name}= of cuda.jit takes {taken[1]}\n  got: {type(value).__name__} {value!r:.60}"
    return None


def _is_flag(value: object) -> bool:
    return isinstance(value, int) or type(value).__name__ in ("bool", "bool_")


def _is_flag_or_set(value: object) -> bool:
    return _is_flag(value) or isinstance(value, (set, dict))  # as in Numba


def _is_bounds(value: object) -> bool:
    return isinstance(value, Integral) or (
        isinstance(value, (tuple, list)) and all(isinstance(each, Integral) for each in value)
    )


def _is_inline(value: object) -> bool:
    return callable(value) or _is_flag(value) or value in ("always", "never")


def _is_link(value: object) -> bool:
    return not value or (isinstance(value, Iterable) and not isinstance(value, (str, bytes)))


_FLAG = _is_flag, "True or False"
_TAKEN: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("cache", "debug", "device", "forceinline", "lineinfo", "lto", "opt"), _FLAG),
    "fastmath": (_is_flag_or_set, "True or False"),
    "inline": (_is_inline, "'always', 'never' or a function"),
    "launch_bounds": (_is_bounds, "an integer, or a tuple of one to three"),
    "link": (_is_link, "a list, such as ['code.cu']"),
    "max_registers": (lambda value: isinstance(value, int), "an int"),
}
