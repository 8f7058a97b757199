# SPDX-License-Identifier: BSD-2-Clause
"""Whether a text may use the time of its compile: words that stand for it, or pieces that macros may paste to one."""

from __future__ import annotations

import re

_SPLICE = re.compile(rb"(?:\\|\?\?/)[ \t]*\r?\n")
# Patterns, each by a part that a text must have to be searched for it.
_WORDS = {
    b"__DAT": rb"__DAT(?:E_{0,2})?(?![\w$])",
    b"__TIM": rb"__TIM(?:E_{0,2}|EST\w*)?(?![\w$])",
    b"E__": rb"(?<![\w$])(?:_?DAT|AT|T|_?TIM|IM|M)?E__(?![\w$])",
    b"P__": rb"(?<![\w$])(?:\w*STAM|TAM|AM|M)?P__(?![\w$])",
}


USES_TIME = "it uses the time of the compile"


def uses_time(text: bytes) -> bool:
    if b"__" not in text:
        return False
    text = _SPLICE.sub(b"", text) if b"\\" in text or b"??/" in text else text
    return any(part in text and re.search(word, text) is not None for part, word in _WORDS.items())
