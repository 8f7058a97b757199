# SPDX-License-Identifier: BSD-2-Clause
"""The definitions of functions, macros and variables in sources of CUDA C++, as they are written: compiled code does
not tell which of them was edited, and lacks some of it, such as ``__noinline__`` and ``#pragma unroll``."""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

# Comments, directives, literals, names, and single characters.
_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.)*|R"([^\s()\\]*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    r"""|[\w$]+(?:'\w+)*|\S""",
    re.DOTALL | re.MULTILINE,
)
_IS_KEPT = re.compile(r"\s*#\s*(?:pragma|define)\b")
_MACRO = re.compile(r"\s*#\s*define\s+(\w+)(.*)", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WITH_ARGUMENTS = {"__align__", "__attribute__", "__declspec", "__launch_bounds__", "alignas", "decltype", "noexcept"}
_SHORT = 12  # characters of a digest


def definitions(names: Iterable[str], texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the functions with these *names*, as messages have them, that *texts* of C++ define, and the functions,
    macros and variables that they name, as pairs of `own_name` and a digest of all definitions with that name, without
    comments and white space."""
    left = {own for name in names if (own := own_name(name))}
    known: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts) if left else ():
        for own, definition in _definitions(text):
            known.setdefault(own, []).append(definition)
    found = set[str]()
    while left := (left & known.keys()) - found:
        found |= left
        left = {word for own in left for definition in known[own] for word in definition.split()}
    return tuple((own, hashlib.sha256("\0".join(known[own]).encode()).hexdigest()[:_SHORT]) for own in sorted(found))


def own_name(function: str) -> str:
    """Return the name of a *function* without its namespace and arguments; empty for an operator."""
    head = function.replace("(anonymous namespace)::", "").partition("(")[0].partition("<")[0]
    return head.rpartition("::")[2].rpartition(" ")[2]


@functools.lru_cache(maxsize=512)
def _definitions(text: str) -> tuple[tuple[str, str], ...]:
    """Return the functions that *text* defines and declares, its macros, and its variables with initial values, as
    pairs of a name and the tokens; none where braces are not in pairs."""
    found, head = list[tuple[str, str]](), list[str]()
    tokens = _tokens(text)
    for token in tokens:
        if macro := _MACRO.match(token):
            found.append((macro[1], " ".join(_COMMENT.sub("", macro[2]).split())))
            continue
        if token == "{" and head[-1:] == ["="] and _variable(head):
            if (body := _block(tokens)) is None:
                return ()
            head += ["{", *body, "}"]
            continue
        if token == ";" and (name := _variable(head)):
            found.append((name, " ".join(head)))
        elif token == "{" and (name := _declared(head)):
            if (body := _block(tokens)) is None:  # as the branches of a directive can be
                return ()
            found.append((name, " ".join([*head, *body])))
        elif token == ";" and (name := _declared(head)):
            found.append((name, " ".join(head)))
        elif token not in (";", "{", "}"):
            head.append(token)
            continue
        head = []
    return tuple(found)


def _tokens(text: str) -> Iterator[str]:
    """Yield the tokens of *text* without comments, and without directives but for pragmas and macros."""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token.startswith(("//", "/*")) or ("#" in token[:1] + token.lstrip()[:1] and not _IS_KEPT.match(token)):
            continue
        yield token


def _block(tokens: Iterator[str]) -> list[str] | None:
    """Return the *tokens* to the end of the block that has begun; ``None`` if it does not end."""
    depth, found = 1, list[str]()
    for token in tokens:
        depth += (token == "{") - (token == "}")
        if not depth:
            return found
        found.append(token)
    return None


def _variable(head: Sequence[str]) -> str:
    """Return the name of the variable whose definition with an initial value begins with the tokens *head*; empty if it
    is none."""
    before = [*itertools.takewhile(lambda token: token not in ("=", "[", "("), head)]
    has_value = "=" in head and "(" not in head[: head.index("=")] and "operator" not in before
    return before[-1] if has_value and len(before) > 1 and before[-1].isidentifier() else ""


def _declared(head: Collection[str]) -> str:
    """Return the name of the function whose declaration begins with the tokens *head*; empty if it is none."""
    pairs = zip(head, [*head][1:], strict=False)
    return next((one for one, other in pairs if other == "(" and one.isidentifier() and one not in _WITH_ARGUMENTS), "")
