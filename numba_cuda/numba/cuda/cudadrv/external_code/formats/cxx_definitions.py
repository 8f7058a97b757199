# SPDX-License-Identifier: BSD-2-Clause
"""What a text of C++ defines: a digest of each function, class, variable and macro, as far as it is seen without a
compiler. It names what changed in a file for users; nothing that is built depends on it."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator

_LITERAL = r'R"(?P<end>\w*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\''
_COMMENT_OR_LITERAL = re.compile(rf"//[^\n]*|/\*.*?\*/|{_LITERAL}", re.DOTALL)
_IN_LITERAL = re.compile(_LITERAL, re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?:define[ \t]+(\w+))?(?:[^\\\n]|\\.)*", re.MULTILINE | re.DOTALL)
_ENDS = re.compile(r"[{};]")
_NAMESPACE = re.compile(r"\bnamespace\b((?:\s|::|\w)*)\Z|\bextern\s+_+\s*\Z")
_CLASS = re.compile(
    r"\b(?:struct|class|union|enum)\s+(?:\w+(?:\([^()]*\))?\s+)*?(\w+)\s*(?:<.*>\s*)?(?:final\s*)?(?::|\Z)", re.DOTALL
)
_FUNCTION = re.compile(r"((?:\w+::)*(?:~?\w+|operator\s*(?:\(\)|[^\s\w(]+|\w+)))\s*(?:<[^()<>]*>\s*)?\(")
_AFTER_PARAMETERS = re.compile(r"(?<!:):(?!:)|->")
_NOT_A_FUNCTION = re.compile(r"_\w*|alignas|decltype|noexcept|requires|sizeof|static_assert|explicit")
_VARIABLE = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|\Z)")


@functools.lru_cache(256)  # kernels share the files of one library
def definitions(text: str) -> tuple[tuple[str, str], ...]:
    """Return the names that *text* defines, sorted, each with a digest of all that has the name; comments
    and spaces do not count. The rest has the name ``""``."""
    found: dict[str, list[str]] = {}
    for name, code in _named_parts(text):
        found.setdefault(name, []).append(" ".join(code.split()))
    return tuple((name, hashlib.sha256("\n".join(found[name]).encode()).hexdigest()[:8]) for name in sorted(found))


def _named_parts(text: str) -> Iterator[tuple[str, str]]:
    text = _COMMENT_OR_LITERAL.sub(lambda each: " " if each[0].startswith("/") else each[0], text)
    for directive in _DIRECTIVE.finditer(text):
        yield directive[1] or "", directive[0]
    code = _DIRECTIVE.sub("", text)
    plain = _IN_LITERAL.sub(lambda each: "_" * len(each[0]), code)  # braces in literals open nothing
    namespaces: list[str] = []
    depth = start = 0
    last = ""
    head = ""
    for end in _ENDS.finditer(plain):
        if end[0] == "{":
            depth += 1
            if depth > 1:
                continue
            head = plain[start : end.start()]
            if (opened := _NAMESPACE.search(head)) is not None:
                namespaces.append("::".join(re.findall(r"\w+", opened[1] or "")))
                depth, start = 0, end.end()
            continue
        if depth == 0 and end[0] == "}":  # of a namespace
            namespaces[-1:] = []
            start = end.end()
            continue
        depth -= end[0] == "}"
        if depth > 0:
            continue
        if end[0] == ";":
            head = plain[start : end.start()]
        part = code[start : end.end()]
        start = end.end()
        if part.strip() in ("", ";"):
            continue
        if not head.strip() or head.lstrip().startswith(","):  # what follows a constructor's `: member{value}`
            yield last, part
            continue
        last = "::".join(filter(None, (*namespaces, _name(head))))
        yield last, part


def _name(head: str) -> str:
    """Return the name that a declaration introduces, of which *head* is all before its body or its end."""
    if (found := _CLASS.search(head)) is not None:
        return found[1]
    before, *_ = _AFTER_PARAMETERS.split(head, maxsplit=1) if "(" in head else (head,)
    names = [each[1] for each in _FUNCTION.finditer(before) if _is_outside(before, each.start())]
    if functions := [name for name in names if not _NOT_A_FUNCTION.fullmatch(name)]:
        return functions[-1]
    found = _VARIABLE.search(head)
    return found[1] if found is not None else ""


def _is_outside(text: str, at: int) -> bool:
    """Whether no parenthesis is open in *text* before *at*."""
    return text.count("(", 0, at) == text.count(")", 0, at)
