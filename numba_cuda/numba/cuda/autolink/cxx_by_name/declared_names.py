# SPDX-License-Identifier: BSD-2-Clause
"""What texts of C++ declare, with comments and namespaces, as far as it is seen without a compiler.

Headers are read one by one, without `#if` and with those macros alone that open and close namespaces.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

_HIDDEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\\\n]|\\.)*", re.MULTILINE | re.DOTALL)
_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w*NAMESPACE\w*)(?:\((\w*)\))?((?:[^\\\n]|\\.)*)", re.MULTILINE | re.DOTALL
)
_USE = re.compile(r"\b(\w*NAMESPACE\w*)(?:\(([^()]*)\))?")
_MOST_NESTED = 4  # macros that expand to macros
_ENDS = re.compile(r"[{};]")
# A namespace, or a block of declarations for C.
_NAMESPACE = re.compile(r"(\binline\s+)?\bnamespace\b((?:\s|::|\w)*)(?:\([^()]*\)\s*)?\Z|\bextern\s*\Z")
# A class, an alias, and a function after its type.
_DECLARATION = re.compile(
    r"\b(?:struct|class|union|enum)\s+(?:\w+\s+)*?([A-Za-z]\w*)\s*(?:final\s*)?(?::|\Z)"
    r"|\busing\s+([A-Za-z]\w*)\s*=|\busing\s+(?:\w*::)+([A-Za-z]\w*)\s*\Z|\btypedef\b.*\b([A-Za-z]\w*)\s*\Z"
    r"|[\w>&*]\s+[&*]*(?!operator\b|requires\b)([A-Za-z]\w*)\s*\(",
    re.DOTALL,
)
# A constant, up to its value.
_CONSTANT = re.compile(
    r"\A(?:\s*template\s*<.*>)?(?!\s*(?:typedef|using)\b)[^()=<]*\b(?:const|constexpr|__constant__)\b[^()=]*?[\w>&*]"
    r"\s+[&*]*([A-Za-z]\w*)\s*(?:\[[^\]]*\]\s*)*(?:=|\Z)",
    re.DOTALL,
)
_ENUMERATION = re.compile(
    r"\benum\s+(?P<scoped>class\s+|struct\s+)?(?P<name>[A-Za-z_]\w*)\s*(?::[\w\s:]+)?{(?P<enumerators>[^{}]*)}"
)
_NOT_A_NAME = re.compile(
    r"[A-Z][A-Z0-9_]{2,}|new|delete|sizeof|static_assert|alignas|decltype|noexcept|struct|union|enum|char"
)

_MARK = re.compile("\x01([0-9]+)\x01")  # in the place of a comment or text, by its number
_BEFORE = re.compile(rf"(?:\s*{_MARK.pattern})*\s*")
_SPECIFIER = re.compile(
    r"\bextern\s*\"C\"|\[\[.*?\]\]"
    r"|\b(?:__(?:device|host|global|forceinline|inline|noinline)__|inline|static|extern)\b"
    r"|\b_(?:CCCL|LIBCUDACXX)_\w+\b(?!\()"
)
_COMMENT_SIGNS = re.compile(r"\A[ \t]*(?://[/!]?<?|/\*[*!]?|\*(?!/))[ \t]?|\s*\*+/\s*\Z|[@\\]brief[ \t]+")
_DETAIL = re.compile("_|detail|nca")  # namespaces that are not for users begin so

UNQUALIFIED = re.compile(r"(\w+)(?:<.*>)?\Z")
_CONST_REFERENCE = re.compile(r"\bconst\b[^,;&]*&(?!&)|[\w:<>]+\s+const\s*&(?!&)")


class _Macro(NamedTuple):
    parameter: str
    text: str

    def expand(self, argument: str) -> str:
        return re.sub(rf"\b{self.parameter}\b", argument.strip(), self.text) if self.parameter else self.text


def find_names(texts: Iterable[str], namespace: str) -> set[str]:
    """Return the names that *texts* seem to declare in *namespace*: of functions, classes, enumerations and aliases;
    no reserved ones, and no macros."""
    found = _declarations_in(texts, namespace)
    return {name for inner, chunk in found if not inner for name in _declared_in(chunk)}


class Declared(NamedTuple):
    """A declaration: of a function, a class, an alias or a constant."""

    name: str  # as seen from the namespace that was searched: "f" or "inner::f"
    text: str  # on one line, without a body and what says where code is compiled
    comment: str  # what stands right before it; empty without
    is_constant: bool


def find_declared(texts: Iterable[str], namespace: str) -> list[Declared]:
    """Return what *texts* seem to declare in *namespace* and in the namespaces in it, without those of details."""
    hidden: list[str] = []

    def hide(found: re.Match[str]) -> str:
        hidden.append(found[0])
        return f"\x01{len(hidden) - 1}\x01"

    declared: dict[tuple[str, str], Declared] = {}
    for inner, chunk in _declarations_in(texts, namespace, hide):
        if any(map(_DETAIL.match, inner)):
            continue
        code = _MARK.sub(" ", chunk)
        constant = _CONSTANT.search(code)
        for name in [constant[1]] if constant else _declared_in(code):
            full = "::".join([*inner, name])
            text, comment = _read_declaration(chunk, hidden)
            before = declared.get((full, text))
            declared[full, text] = Declared(
                full, text, (before.comment if before else "") or comment, constant is not None
            )
    return [*declared.values()]


def _read_declaration(chunk: str, hidden: list[str]) -> tuple[str, str]:
    """Return the text of a declaration and its comment: that on the lines right before it."""
    before = _BEFORE.match(chunk)
    start = before.end() if before else 0
    text = _MARK.sub(lambda mark: " " if hidden[int(mark[1])].startswith("/") else hidden[int(mark[1])], chunk[start:])
    text = " ".join(_SPECIFIER.sub(" ", text).split())
    block = re.split(r"\n[ \t]*\n", chunk[:start].partition("\n")[2])[-1]
    lines = [line for mark in _MARK.findall(block) for line in hidden[int(mark)].split("\n")]
    return text, "\n".join(_COMMENT_SIGNS.sub("", line).rstrip() for line in lines).strip()


def find_namespaces(texts: Iterable[str], name: str) -> list[str]:
    """Return the namespaces in which *texts* seem to declare *name*, without the global one and those of details."""
    texts = list(texts)
    found = _declarations([text for text in texts if name in text], _macros(texts))
    paths = (path for path, chunk in found if name in chunk and name in _declared_in(chunk))
    public = ("::".join(path) for path in paths if not any(re.match("_|detail", part) for part in path))
    return [namespace for namespace in dict.fromkeys(public) if namespace]


def find_members(texts: Iterable[str], name: str) -> set[str]:
    """Return the names of functions and types that *texts* seem to declare in the class *name*, not in its bases."""
    found = {each for chunk in _member_declarations(texts, name) for each in _declared_in(chunk)}
    return found - {name}


class Enumeration(NamedTuple):
    """An enumeration, and the names of its enumerators, which are in its scope alone if it *is_scoped*."""

    name: str
    enumerators: tuple[str, ...]
    is_scoped: bool


def find_enumerations(texts: Iterable[str]) -> list[Enumeration]:
    """Return the enumerations with a name that *texts* seem to define."""
    found = []
    for text in texts:
        code = _DIRECTIVE.sub("", _HIDDEN.sub(" ", text)) if "enum" in text else ""
        for each in _ENUMERATION.finditer(code):
            listed = re.findall(r"(?:^|,)\s*([A-Za-z_]\w*)", each["enumerators"])
            found.append(Enumeration(each["name"], tuple(listed), each["scoped"] is not None))
    return [*dict.fromkeys(found)]


def is_functor(texts: Iterable[str], name: str) -> bool:
    """Return whether *texts* seem to declare a call operator in the class *name*."""
    of_class = name.partition("<")[0].rpartition("::")[2]
    return any(re.search(r"\boperator\s*\(\s*\)\s*\(", chunk) for chunk in _member_declarations(texts, of_class))


def _member_declarations(texts: Iterable[str], name: str) -> Iterator[str]:
    """Yield the declarations in the class *name*, each up to its body."""
    defined = re.compile(rf"\b(?:struct|class|union)\s+(?:\w+\s+)*?{re.escape(name)}\b[^;{{}}()]*{{")
    for text in texts if name else ():
        code = _DIRECTIVE.sub("", _HIDDEN.sub(" ", text)) if name in text else ""
        for opening in defined.finditer(code):
            depth, start = 1, opening.end()
            for end in _ENDS.finditer(code, start):
                if depth == 1:
                    yield code[start : end.start()]
                depth += {"{": 1, "}": -1, ";": 0}[end[0]]
                start = end.end()
                if not depth:
                    break


def find_template(texts: Iterable[str], name: str) -> str:
    """Return the parameters of the template *name* as *texts* seem to declare them, ``<int N, class T>``; empty if they
    declare none."""
    declared = re.compile(rf"\btemplate\s*(<[^{{}};]*?>)\s*[^<>{{}};()]*\b{re.escape(name)}\b")
    found = (declared.search(_HIDDEN.sub(" ", text)) for text in texts if name in text)
    return next((" ".join(each[1].split()) for each in found if each), "")


def may_refer(texts: Iterable[str], name: str) -> bool:
    """Return whether a function *name* that *texts* seem to declare may take a ``T&`` that is not const. If none has
    that name, because a macro makes it or *name* is an expression, whether *texts* have such a reference anywhere."""
    found = UNQUALIFIED.search(name)
    places = [(text, place) for text in texts for place in (places_of_names(text).get(found[1], ()) if found else ())]
    if places:
        return any(_has_reference(_parameters(*each)) for each in places)
    return any(map(_has_reference, texts))


def _has_reference(text: str) -> bool:
    return "&" in _CONST_REFERENCE.sub("", text)


def _parameters(text: str, start: int) -> str:
    """Return the text in the first parentheses from *start* on."""
    depth = 0
    for found in re.compile(r"[()]").finditer(text, start):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return text[start : found.end()]
    return text[start:]


@functools.lru_cache(16)
def places_of_names(text: str) -> dict[str, list[int]]:
    """Return where each name of *text* begins that a parenthesis follows."""
    places: dict[str, list[int]] = {}
    for found in re.finditer(r"(\w+)\s*\(", text):
        places.setdefault(found[1], []).append(found.start())
    return places


def _macros(texts: Iterable[str]) -> dict[str, _Macro]:
    found = (macro for text in texts for macro in _MACRO.findall(text))
    return {name: _Macro(parameter, text.replace("\\\n", " ")) for name, parameter, text in found}


def _as_space(found: re.Match[str]) -> str:
    return " "


def _declarations_in(
    texts: Iterable[str], namespace: str, hide: Callable[[re.Match[str]], str] = _as_space
) -> Iterator[tuple[list[str], str]]:
    """Yield each declaration in *namespace* and in the namespaces in it, after the names of these."""
    texts = list(texts)
    last, goal = namespace.rpartition("::")[2], namespace.split("::") if namespace else []
    for path, chunk in _declarations(
        [text for text in texts if last in text or "NAMESPACE" in text], _macros(texts), hide
    ):
        if path[: len(goal)] == goal:
            yield path[len(goal) :], chunk


def _declarations(
    texts: Iterable[str], macros: Mapping[str, _Macro], hide: Callable[[re.Match[str]], str] = _as_space
) -> Iterator[tuple[list[str], str]]:
    """Yield each declaration outside of braces, up to these, after the names of its namespaces. *hide* tells what
    stands for a comment, a text or a character: a space, or what `_MARK` matches."""
    for text in texts:
        code = "\n" + _DIRECTIVE.sub("", _HIDDEN.sub(hide, text))
        for _ in range(_MOST_NESTED if "NAMESPACE" in code else 0):
            code = _USE.sub(lambda use: macros[use[1]].expand(use[2] or "") if use[1] in macros else " ", code)
        scopes: list[list[str] | None] = []  # the names of namespaces, and None for other braces
        others = start = 0
        for end in _ENDS.finditer(code):
            if end[0] == "}":
                others -= bool(scopes) and scopes.pop() is None
            elif others:
                opened = end[0] == "{"
                scopes += [None] * opened
                others += opened
            else:
                chunk = code[start : end.start()]
                found = _NAMESPACE.search(_MARK.sub(" ", chunk)) if end[0] == "{" else None
                if found is None:
                    yield [name for scope in scopes for name in scope or ()], chunk
                if end[0] == "{":
                    scopes.append(None if found is None else [] if found[1] else _path(found[2] or ""))
                    others += found is None
            start = end.end()


def _path(names: str) -> list[str]:
    return [name for name in re.findall(r"\w+", names) if name != "inline"]


def _declared_in(chunk: str) -> Iterator[str]:
    if (found := _DECLARATION.search(chunk)) is not None and found.lastindex is not None:
        name = found[found.lastindex]
        if not _NOT_A_NAME.fullmatch(name):
            yield name
