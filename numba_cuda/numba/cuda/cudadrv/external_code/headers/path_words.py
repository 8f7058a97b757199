# SPDX-License-Identifier: BSD-2-Clause
"""Whether the path of a file may get into the code that it is compiled to, as with ``assert``.

That is looked for in the texts of the user's own files: words that stand for a path, pieces that macros may paste
together to one, and the names of macros of packages that have such a word in them, or such a macro.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SPLICE = re.compile(rb"(?:\\|\?\?/)[ \t]*\r?\n")
# Patterns, each by a part that a text must have to be searched for it.
_WORDS: Mapping[bytes, bytes] = {
    b"_FIL": rb"_FIL(?:E(?:_NAME)?_{0,2})?(?![\w$])",
    b"LE__": rb"LE__(?![\w$])",
    b"__builtin_": rb"__builtin_(?:F|so)",
    b"source_lo": rb"source_lo",
    b"_location": rb"_location(?![\w$])",
    b"assert": rb"assert(?<![\w$]assert)(?![\w$])",
}


def may_have_path(own: Iterable[bytes], packaged: Iterable[bytes]) -> bool:
    """Whether one of the texts *own* may use the path of its file, itself or by macros of the texts *packaged*."""
    own = [_SPLICE.sub(b"", text) for text in own]
    if any(part in text and re.search(word, text) for text in own for part, word in _WORDS.items()):
        return True
    macros = _macros_with_path(b"\n".join(map(_definitions, packaged)))
    return any(name in text for name in macros for text in own)


def _definitions(text: bytes) -> bytes:
    """Return the macros that *text* defines: of each the name and what follows it, on one line."""
    whole = text.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").replace(b"define\t", b"define ")
    return b"\n".join([after.partition(b"\n")[0].lstrip() for after in whole.split(b"define ")[1:]])


def _macros_with_path(definitions: bytes) -> set[bytes]:
    """Return the names of the macros among *definitions* that have a word for a path in them, or such a macro."""
    macros: set[bytes] = set()
    pending = [word for part, word in _WORDS.items() if part in definitions]
    while pending:
        for found in re.finditer(pending.pop(), definitions):
            start = definitions.rfind(b"\n", 0, found.start()) + 1
            name = re.split(rb"\W", definitions[start : found.end()], maxsplit=1)[0]
            if name not in macros:
                macros.add(name)
                pending.append(rb"\b%s\b" % name)
    return macros - {b""}
