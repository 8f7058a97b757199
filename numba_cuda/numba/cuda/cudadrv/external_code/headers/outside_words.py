# SPDX-License-Identifier: BSD-2-Clause
"""Whether what a text is compiled to may depend on more than texts: on the time of the compile, or on the path of its
file, as with ``assert``.

That is looked for in words that stand for it, and in pieces that macros may paste together to one. Paths may also be
used by macros of packages, which have such a word in them, or such a macro.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SPLICE = re.compile(rb"(?:\\|\?\?/)[ \t]*\r?\n")
# Patterns, each by a part that a text must have to be searched for it.
_TIMES: Mapping[bytes, bytes] = {
    b"__DAT": rb"__DAT(?:E_{0,2})?(?![\w$])",
    b"__TIM": rb"__TIM(?:E_{0,2}|EST\w*)?(?![\w$])",
    b"E__": rb"(?<![\w$])(?:_?DAT|AT|T|_?TIM|IM|M)?E__(?![\w$])",
    b"P__": rb"(?<![\w$])(?:\w*STAM|TAM|AM|M)?P__(?![\w$])",
}
_PATHS: Mapping[bytes, bytes] = {
    b"_FIL": rb"_FIL(?:E(?:_NAME)?_{0,2})?(?![\w$])",
    b"LE__": rb"LE__(?![\w$])",
    b"__builtin_": rb"__builtin_(?:F|so)",
    b"source_lo": rb"source_lo",
    b"_location": rb"_location(?![\w$])",
    b"assert": rb"assert(?<![\w$]assert)(?![\w$])",
}


def find_time(text: bytes, name: str) -> tuple[str, str] | None:
    """Return where the *text* of a file with this *name* may use the time of its compile, and by which word; ``None``
    if it does not."""
    if b"__" not in text:
        return None
    spliced = _spliced(text)
    found = [each for part, word in _TIMES.items() if part in spliced and (each := re.search(word, spliced))]
    if not found:
        return None
    first = min(found, key=re.Match.start)
    at = first.start()
    for splice in _SPLICE.finditer(text):
        at += len(splice[0]) if splice.start() <= at else 0
    line = text.count(b"\n", 0, at) + 1
    return f"{name}:{line}", f"it uses the time of the compile: {first[0].decode(errors='replace')}"


def may_have_path(own: Iterable[bytes], packaged: Iterable[bytes]) -> bool:
    """Whether one of the texts *own* may use the path of its file, itself or by macros of the texts *packaged*."""
    own = list(map(_spliced, own))
    if any(_has_word(text, _PATHS) for text in own):
        return True
    macros = _macros_with_path(b"\n".join(map(_definitions, packaged)))
    return any(name in text for name in macros for text in own)


def _spliced(text: bytes) -> bytes:
    return _SPLICE.sub(b"", text) if b"\\" in text or b"??/" in text else text


def _has_word(text: bytes, words: Mapping[bytes, bytes]) -> bool:
    return any(part in text and re.search(word, text) is not None for part, word in words.items())


def _definitions(text: bytes) -> bytes:
    """Return the macros that *text* defines: of each the name and what follows it, on one line."""
    whole = text.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").replace(b"define\t", b"define ")
    return b"\n".join([after.partition(b"\n")[0].lstrip() for after in whole.split(b"define ")[1:]])


def _macros_with_path(definitions: bytes) -> set[bytes]:
    """Return the names of the macros among *definitions* that have a word for a path in them, or such a macro."""
    macros: set[bytes] = set()
    pending = [word for part, word in _PATHS.items() if part in definitions]
    while pending:
        for found in re.finditer(pending.pop(), definitions):
            start = definitions.rfind(b"\n", 0, found.start()) + 1
            name = re.split(rb"\W", definitions[start : found.end()], maxsplit=1)[0]
            if name not in macros:
                macros.add(name)
                pending.append(rb"\b%s\b" % name)
    return macros - {b""}
