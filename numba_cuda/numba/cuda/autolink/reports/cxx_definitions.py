# SPDX-License-Identifier: BSD-2-Clause
"""The definitions of functions, types, macros and variables in sources of CUDA C++, as they are written: compiled code
does not tell which of them was edited, and lacks some of it, such as ``__noinline__`` and ``#pragma unroll``. What is
not understood is left out: a report then names the file alone."""

from __future__ import annotations

import functools
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

# Comments, directives, literals, names, and single characters.
_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.)*|R"([^\s()\\]*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    r"""|[\w$]+(?:'\w+)*|::|->|\S""",
    re.DOTALL | re.MULTILINE,
)
_MACRO = re.compile(r"#\s*define\s+(\w+)(.*)", re.DOTALL)
_NO_TEXT = re.compile(r"#\s*(?:include|line)\b")  # directives that are no part of a definition
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OPERATOR = re.compile(r"\boperator\s*(\(\)|\[\]|[^\s\w(]+|\b.*?(?=\())")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_WITH_ARGUMENTS = {
    *("__align__", "__attribute__", "__declspec", "__launch_bounds__", "alignas", "decltype", "explicit", "noexcept"),
    *("requires", "static_assert", "sizeof", "alignof", "if", "for", "while", "switch", "catch", "return"),
}
_AFTER_ARGUMENTS = {"const", "volatile", "noexcept", "override", "final", "->", ":", "&", "=", "requires", "try"}
_TYPES = {"struct", "class", "union", "enum"}
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_OWN = re.compile(r"nca(?:_|::)")  # begins a name of the code that calls by name share
_CALL = re.compile(r"cxx_\w+?_[0-9a-f]{16}")  # and one that they write for a call
_SHORT = 12  # characters of a digest


class _NotUnderstoodError(Exception):
    """A text whose brackets are not in pairs, as the branches of a directive can be."""


@dataclass
class _Definition:
    """A definition: its *name* with its namespaces and classes, its tokens, and the words that stand for it."""

    name: str
    tokens: Sequence[str]
    words: tuple[str, ...] = ()
    is_type: bool = False


def definitions(names: Iterable[str], texts: Iterable[tuple[str, str]]) -> tuple[tuple[str, str, str], ...]:
    """Return what *texts* of C++, which come with the names of their files, define of the functions with these *names*,
    as messages have them, and of the functions, types, macros and variables that these name: the name, the file, and a
    digest of all definitions with that name in the file, without comments and white space."""
    names = list(names)
    known = defaultdict[str, list[tuple[str, _Definition]]](list)
    for file, text in dict.fromkeys(texts) if any(map(own_name, names)) else ():
        for each in _definitions(text):
            if not _OWN.match(each.name):
                known[each.name].append((file, each))
    listed = defaultdict[tuple[str, str], list[str]](list)
    for name in _reached(names, {name: [each for _, each in some] for name, some in known.items()}):
        for file, each in known[name] if not _CALL.match(name) else ():
            listed[name, file].append(" ".join(each.tokens))
    return tuple((*key, _digest("\0".join(some))) for key, some in sorted(listed.items()))


def _reached(functions: Iterable[str], known: Mapping[str, Sequence[_Definition]]) -> set[str]:
    """Return the names of the *known* definitions of *functions* and of what these name. A member counts where its
    class does."""
    classes = {name for name, some in known.items() if any(each.is_type for each in some)}
    stands = {name: {name.rpartition("::")[2]}.union(*(each.words for each in some)) for name, some in known.items()}
    words, members = {word for name in functions for word in _WORD.findall(name)}, set[str]()
    found, new = set[str](), {own_name(name) for name in functions} & known.keys()
    while new:
        new |= {name.rpartition("::")[0] for name in new} & classes
        found |= new
        for tokens in (each.tokens for name in new for each in known[name]):
            for before, word in zip(("", *tokens), tokens, strict=False):
                (members if before in (".", "->") else words).add(word)
        both = words | members
        new = set[str]()
        for name in known.keys() - found:
            outer = name.rpartition("::")[0]
            if not stands[name].isdisjoint(both if outer in found else words) and outer not in classes - found:
                new.add(name)
    return found


def digest_of_text(text: str) -> str:
    """Return the digest of a *text* of C++ without comments and white space."""
    return _digest("\0".join(_tokens(text)))


def own_name(function: str) -> str:
    """Return the name of a *function* with its namespaces and classes, without arguments and those of templates."""
    text = function.replace("(anonymous namespace)::", "")
    if found := _OPERATOR.search(text):
        before, operator = text[: found.start()], "operator" + "".join(found[1].split())
        return _without_arguments(before).rpartition(" ")[2] + operator
    return _without_arguments(text).rpartition(" ")[2]


def _without_arguments(text: str) -> str:
    """Return *text* without the arguments of templates, and up to those of the function."""
    depth, found = 0, ""
    for character in text:
        if character == "(" and not depth:
            break
        depth += (character == "<") - (character == ">")
        found += character if not depth and character != ">" else ""
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_SHORT]


@functools.lru_cache(maxsize=512)
def _definitions(text: str) -> tuple[_Definition, ...]:
    """Return what *text* defines and declares; nothing where brackets are not in pairs."""
    tokens = _tokens(text)
    reader = _Reader(tokens)
    try:
        reader.read(0, len(tokens), "")
    except _NotUnderstoodError:
        return ()
    return tuple(reader.found)


def _tokens(text: str) -> list[str]:
    """Return the tokens of *text* without comments, and without directives that are no part of a definition."""
    found = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token.startswith(("//", "/*")):
            continue
        if token.lstrip()[:1] == "#":
            token = " ".join(_COMMENT.sub(" ", token).split())
            if _NO_TEXT.match(token):
                continue
        found.append(token)
    return found


@dataclass
class _Reader:
    """Reads the definitions in *tokens*."""

    tokens: Sequence[str]
    found: list[_Definition] = field(default_factory=list)

    def read(self, start: int, end: int, scope: str, *, in_class: bool = False) -> list[str]:
        """Read what is defined from *start* to *end* in the namespace or class *scope*; return the tokens that belong
        to the class itself: those of its fields, constants and aliases."""
        own, head = list[str](), list[str]()
        at = start
        while at < end:
            token = self.tokens[at]
            if self._is_macro(token):
                pass
            elif token.startswith("#"):
                head += [token] if head else []
            elif token == ";":
                own += self._statement(head, scope, in_class)
                head = []
            elif token == "{":
                close = self._close(at, end)
                head, at = self._block(head, at, close, scope, own, in_class)
            elif token in _PAIRS:
                close = self._close(at, end)
                head += [each for each in self.tokens[at : close + 1] if not self._is_macro(each)]
                at = close
            elif token in _PAIRS.values():
                raise _NotUnderstoodError
            elif token == ":" and len(head) == 1 and head[0] in ("public", "private", "protected"):
                head = []
            else:
                head.append(token)
            at += 1
        return own

    def _is_macro(self, token: str) -> bool:
        """Read the *token* if it is a macro; return whether it is one."""
        macro = _MACRO.match(token)
        if macro is not None:
            self.found.append(_Definition(macro[1], _tokens(macro[2])))
        return macro is not None

    def _close(self, at: int, end: int) -> int:
        """Return where the bracket closes that opens *at*."""
        left = [_PAIRS[self.tokens[at]]]
        while left:
            at += 1
            if at >= end:
                raise _NotUnderstoodError
            token = self.tokens[at]
            if token == left[-1]:
                left.pop()
            elif token in _PAIRS:
                left.append(_PAIRS[token])
            elif token in _PAIRS.values():
                raise _NotUnderstoodError
        return at

    def _block(
        self, head: list[str], at: int, close: int, scope: str, own: list[str], in_class: bool
    ) -> tuple[list[str], int]:
        """Read the block from *at* to *close* that follows *head*; return the head that goes on, and where."""

        def block() -> list[str]:
            return [each for each in self.tokens[at : close + 1] if not self._is_macro(each)]

        after = self.tokens[close + 1] if close + 1 < len(self.tokens) else ""
        plain = _without_template(head)
        if "namespace" in plain[:2]:
            names = [each for each in plain[plain.index("namespace") + 1 :] if each not in ("inline", "::")]
            self.read(at + 1, close, _joined(scope, *names))
        elif plain[:1] == ["extern"] and len(plain) == 2 and plain[1].startswith('"'):
            self.read(at + 1, close, scope)
        elif name := _function(plain):
            if after in (",", "{"):  # of the initial value of a member in a constructor
                return [*head, *block()], close
            self._define_function(name, [*head, *block()], scope, own)
        elif (kind := _type(plain)) is not None and "=" not in plain:
            return [], self._type(head, kind, at, close, scope, own, in_class)
        elif after in (";", ","):  # the value of a variable
            return [*head, *block()], close
        else:
            block()
        return [], close

    def _define_function(self, name: str, tokens: list[str], scope: str, own: list[str]) -> None:
        if "virtual" in tokens:
            own += tokens
        scope = scope.rpartition("::")[0] if tokens[:1] == ["friend"] else scope
        words = (scope.rpartition("::")[2],) if "operator" in name else ()  # it is used without its name
        self.found.append(_Definition(_joined(scope, name), tokens, words))

    def _type(self, head: list[str], name: str, at: int, close: int, scope: str, own: list[str], in_class: bool) -> int:
        """Read the type with this *name*, which may be empty, and what is declared with it; return where that ends."""
        block = self.tokens[at + 1 : close]
        end = close + 1
        while end < len(self.tokens) and self.tokens[end] != ";":
            end = self._close(end, len(self.tokens)) + 1 if self.tokens[end] in _PAIRS else end + 1
        rest = self.tokens[close + 1 : end]
        if "enum" in head:
            text = [*head, *block, *rest]
            values = _enumerators(block)
            if name:
                is_scoped = not {"class", "struct"}.isdisjoint(head)
                words = () if is_scoped else tuple(values)
                self.found.append(_Definition(_joined(scope, name), text, words, is_type=True))
            else:
                self.found += [_Definition(_joined(scope, each), value) for each, value in values.items()]
        else:
            inner = self.read(at + 1, close, _joined(scope, name) if name else scope, in_class=True)
            text = [*head, *inner, *rest]
            if name:
                self.found.append(_Definition(_joined(scope, name), text, is_type=True))
        declared = [each for each in rest if _WORD.fullmatch(each)]
        if declared:
            self.found.append(_Definition(_joined(scope, declared[0]), text, is_type="typedef" in head))
        if in_class and (declared or not name):  # a field of the class around it
            own += text
        return end

    def _statement(self, head: list[str], scope: str, in_class: bool) -> list[str]:
        """Read the declaration *head*; return the tokens that belong to the class around it."""
        plain = _without_template(head)
        own = list[str]()
        if not plain or (len(plain) == 2 and plain[0] in _TYPES):  # a type without its definition
            return own
        if name := _function(plain):
            self._define_function(name, head, scope, own)
            return own
        if (name := _alias(plain) or _variable(plain)) and not in_class:
            self.found.append(_Definition(_joined(scope, name), head, is_type=plain[0] in ("using", "typedef")))
        return head if in_class else own


def _joined(*names: str) -> str:
    return "::".join(filter(None, names))


def _without_template(head: Sequence[str]) -> list[str]:
    """Return *head* without the parameters of templates that it begins with."""
    rest = [*head]
    while rest[:2] == ["template", "<"]:
        end = _closed_angle(rest, 1)
        if end is None:
            return []
        rest = rest[end + 1 :]
    return rest


def _closed_angle(tokens: Sequence[str], at: int) -> int | None:
    """Return where the angle bracket closes that opens *at*."""
    depth = inner = 0
    for number in range(at, len(tokens)):
        token = tokens[number]
        inner += (token in _PAIRS) - (token in _PAIRS.values())
        if not inner:
            depth += (token == "<") - (token == ">")
            if not depth:
                return number
    return None


def _function(head: Sequence[str]) -> str:
    """Return the name of the function whose definition or declaration begins with the tokens *head*; empty if it is
    none."""
    if "operator" in head:
        at = head.index("operator")
        first = at + (3 if head[at + 1 : at + 3] == ["(", ")"] else 1)
        if "(" not in head[first:]:
            return ""
        symbol = "".join(head[at + 1 : head.index("(", first)])
        return _joined(*_qualifiers(head, at), f"operator{symbol}")
    depth = 0
    for number, token in enumerate(head):
        if token == "=" and not depth:
            return ""
        if token == "(" and not depth and number and _is_name(head[number - 1]):
            close = _closed(head, number)
            after = head[close + 1] if close + 1 < len(head) else ""
            if not after or after in _AFTER_ARGUMENTS or after.startswith(("#", "__attribute__")):
                return _joined(*_qualifiers(head, number - 1), head[number - 1])
        depth += (token in _PAIRS) - (token in _PAIRS.values())
    return ""


def _is_name(token: str) -> bool:
    return token.isidentifier() and token not in _WITH_ARGUMENTS


def _closed(head: Sequence[str], at: int) -> int:
    depth = 0
    for number in range(at, len(head)):
        depth += (head[number] in _PAIRS) - (head[number] in _PAIRS.values())
        if not depth:
            return number
    return len(head)


def _qualifiers(head: Sequence[str], at: int) -> list[str]:
    """Return the namespaces and classes that are written before the name *at* this place, without the arguments of
    templates."""
    found = list[str]()
    while at >= 2 and head[at - 1] == "::":
        at -= 2
        depth = 0
        while at > 0 and (head[at] == ">" or depth):
            depth += (head[at] == ">") - (head[at] == "<")
            at -= 1
        if not head[at].isidentifier():
            break
        found.insert(0, head[at])
    return found


def _type(head: Sequence[str]) -> str | None:
    """Return the name of the type whose definition begins with the tokens *head*, which may be empty; ``None`` if it is
    none."""
    at = next((number for number, token in enumerate(head) if token in _TYPES), None)
    if at is None:
        return None
    rest = [*head[at + 1 :]]
    if rest[:1] in (["class"], ["struct"]):
        rest = rest[1:]
    name, depth = "", 0
    for token in rest:
        if not depth and token in (":", "<", "final"):
            break
        depth += (token in _PAIRS) - (token in _PAIRS.values())
        if not depth and _is_name(token):
            name = _joined(name, token) if name.endswith("::") else token
    return name


def _enumerators(block: Sequence[str]) -> dict[str, list[str]]:
    """Return the tokens of each enumerator in the *block* of an enumeration, by name."""
    found, one, depth = dict[str, list[str]](), list[str](), 0
    for token in [*(each for each in block if not each.startswith("#")), ","]:
        depth += (token in _PAIRS) - (token in _PAIRS.values())
        if token == "," and not depth:
            found |= {one[0]: one} if one else {}
            one = []
        else:
            one.append(token)
    return found


def _alias(head: Sequence[str]) -> str:
    """Return the name of the type that the declaration *head* gives another type; empty if it is none."""
    if head[0] == "using":
        return head[1] if "=" in head[2:] else ""
    if head[0] != "typedef":
        return ""
    before = [*head[: head.index("[")]] if "[" in head else [*head]
    return before[-1] if before[-1].isidentifier() else ""


def _variable(head: Sequence[str]) -> str:
    """Return the name of the variable whose definition is *head*; empty if it is none."""
    if head[0] in ("using", "typedef", "return", "friend", "namespace"):
        return ""
    end = next((number for number, token in enumerate(head) if token in ("=", "[", "{", "(", ",")), len(head))
    return head[end - 1] if end > 1 and _is_name(head[end - 1]) and "operator" not in head else ""
