# SPDX-License-Identifier: BSD-2-Clause
"""Mangled names of functions, C++'s and Numba's, as the source spells them: ``_Z5scaleif`` is ``scale(int, float)``.

The C++ runtime library demangles. Where it is missing, names are read without their parameters.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable

_OPENING = re.compile(r"_Z(?:(N)[KL]*|L?)")
_LENGTH = re.compile(r"\d+")

# In which NVIDIA's compilers put what other files do not see.
_OF_FILE = re.compile(r"\b_INTERNAL_[0-9a-f]{8}_\d+_\w+?::")

# Numba's names: escaped characters, and tags with the version and the options of the compilation.
_TAG = re.compile(r"\[abi:\w+\]")
# Numba writes each byte of what is not a letter or digit of ASCII as _xx, but keeps underscores: vec_add has no escape.
_BEYOND_ASCII = r"_[c-f][0-9a-f](?:_[89ab][0-9a-f]){1,3}"  # in UTF-8
_ESCAPED_IN_NAME = re.compile(rf"_3c([a-z]+)_3e|{_BEYOND_ASCII}")  # as in <locals>: what a name can contain
# In types also punctuation: "=" and "-" before a value alone, since vec_3d and conv_2d are names.
_ESCAPED_IN_TYPE = re.compile(rf"_(?:2[0-9a-cef]|3[abcef]|[23]d(?=[0-9A-Za-z])|40|5[b-e]|60|7[b-e])|{_BEYOND_ASCII}")


@functools.lru_cache(maxsize=4096)
def readable(symbol: str) -> str:
    """Return a mangled *symbol* as its source spells it; others unchanged.

    Without the C++ runtime library, it is ``name(...)``.
    """
    if not symbol.startswith("_Z"):
        return symbol
    demangle = _demangler()
    if demangle is not None and (text := demangle(symbol)) is not None:
        without_tags = _TAG.sub("", text)
        if without_tags == text:  # C++'s
            return _OF_FILE.sub("", text)
        name, opening, types = without_tags.partition("(")
        return _unescaped_name(name) + opening + _ESCAPED_IN_TYPE.sub(_in_type, types)
    if (parsed := _parse(symbol)) is None:
        return symbol
    names, rest = parsed
    return "::".join(names) + ("(...)" if rest else "")


def without_result(name: str) -> str:
    """Return the readable *name* of a function without the type of its result, which those of templates begin with:
    ``f<4, float>(float)`` for ``float f<4, float>(float)``."""
    depth = start = 0
    for at, character in enumerate("" if "operator" in name else name):
        if character == "(" and not depth and at > start and not name.startswith("(anonymous namespace)", at):
            return name[start:]
        depth += (character in "(<[{") - (character in ")>]}")
        if character == " " and not depth:
            start = at + 1
    return name


def mangled_lines(symbol: str) -> list[str]:
    """Return lines for a message that shows what `readable` makes of *symbol*: the symbol itself if it is mangled."""
    return [f"symbol: {symbol}"] if readable(symbol) != symbol else []


def _unescaped_name(name: str) -> str:
    return _ESCAPED_IN_NAME.sub(lambda found: f"<{found[1]}>" if found[1] else _letters(found[0]), name)


def _in_type(found: re.Match[str]) -> str:
    return chr(int(found[0][1:], 16)) if len(found[0]) == 3 else _letters(found[0])


def _letters(escaped: str) -> str:
    """Return the letters beyond ASCII that *escaped* is in UTF-8; *escaped* itself if it is not such letters."""
    try:
        text = bytes.fromhex(escaped.replace("_", "")).decode()
    except UnicodeDecodeError:
        return escaped
    return text if f"a{text}".isidentifier() else escaped


@functools.cache
def _demangler() -> Callable[[str], str | None] | None:
    """Return what demangles a name, ``None`` for what is not one; or ``None`` without the C++ runtime library."""
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError, TypeError):
        return None
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    free.restype, free.argtypes = None, [ctypes.c_void_p]

    def demangle_name(symbol: str) -> str | None:
        found = demangle(symbol.encode(), None, None, None)
        if not found:
            return None
        text = ctypes.string_at(found).decode("utf-8", "replace")
        free(found)
        return text

    return demangle_name


def short_name(symbol: str) -> str:
    """Return the name of a function or variable without types: ``m.f`` for ``_ZN1m1f…``, ``t of f`` for the variable
    ``_ZZ1fiE1t``; or *symbol* itself."""
    if local := re.fullmatch(r"_Z(Z.+)E\d+([A-Za-z_]\w*)", symbol):
        return f"{local[2]} of {short_name('_' + local[1])}"
    if re.fullmatch(r"_ZZ.+ENKUl.+E_cl\w+", symbol):
        return "a lambda"
    parsed = _parse(symbol)
    return symbol if parsed is None else _unescaped_name(".".join(parsed[0]))


def base_name(symbol: str) -> str:
    """Return the function's name without namespaces and parameters: *symbol* itself if it is not mangled."""
    parsed = _parse(symbol)
    return symbol if parsed is None else parsed[0][-1]


def _parse(symbol: str) -> tuple[list[str], str] | None:
    opening = _OPENING.match(symbol)
    if opening is None:
        return None
    rest, names = symbol[opening.end() :], list[str]()
    while (opening[1] or not names) and (length := _LENGTH.match(rest)):
        start, end = length.end(), length.end() + int(length[0])
        if end > len(rest):
            return None
        names.append(rest[start:end])
        rest = rest[end:]
    return (names, rest.removeprefix("E") if opening[1] else rest) if names else None
