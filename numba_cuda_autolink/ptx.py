# SPDX-License-Identifier: BSD-2-Clause
"""PTX: its header, and the functions and variables that it declares and defines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from numba_cuda_autolink.errors import FormatError
from numba_cuda_autolink.printable_texts import number_of

_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_VERSION = re.compile(rb"\s*\.version\s+\d+\.\d+")
_TARGET = re.compile(rb"\s*\.target\s+sm_(\d+)([af]?)\b")
_BRACE = re.compile(r"[{}]")
_STATEMENT_END = re.compile(r"[;{}]")
_FUNCTION = re.compile(
    r"(?:\.(?P<linkage>visible|extern|weak)\s+)?\.(?P<space>func|entry)\b\s*(?:\((?P<returns>[^)]*)\)\s*)?"
    r"(?P<name>[\w$%]+)\s*(?:\((?P<parameters>[^)]*)\))?"
)
_VARIABLE = re.compile(
    r"(?:\.(?P<linkage>visible|extern|weak|common)\s+)?\.(?P<space>global|const|shared)\b\s*"
    r"(?:\.attribute\s*\([^)]*\)\s*|\.\w+(?:\s+\d+)?\s+)*(?P<name>[\w$%]+)"
)
_NAME = re.compile(r"[\w$%]+")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.[a-z](\d+)\s+[\w$%]+(?:\[(\d*)\])?")


@dataclass(frozen=True)
class Ptx:
    """The architecture that PTX names in its header; ``text`` is all of it without comments and strings' content."""

    sm: int
    suffix: str
    text: bytes

    @property
    def target(self) -> str:
        """Its architecture, for example ``sm_90a``."""
        return f"sm_{self.sm}{self.suffix}"


@dataclass(frozen=True)
class Parameter:
    """A parameter or result. *size* is in bytes, ``None`` if it is not known; *align*, in bytes, is that of a struct,
    and ``None`` for a number."""

    size: int | None
    align: int | None = None

    def __str__(self) -> str:
        size = "unknown size" if self.size is None else number_of(self.size, "byte")
        return size if self.align is None else f"a struct of {size} aligned to {self.align}"


@dataclass(frozen=True)
class Prototype:
    """The parameters and the result of a function, as the C ABI passes them."""

    returns: Parameter | None
    parameters: tuple[Parameter, ...]

    @property
    def is_known(self) -> bool:
        return all(parameter is None or parameter.size is not None for parameter in (self.returns, *self.parameters))

    def __str__(self) -> str:
        takes = ", ".join(map(str, self.parameters)) or "nothing"
        return f"takes {takes} and returns {self.returns or 'nothing'}"


@dataclass(frozen=True)
class PtxSymbol:
    """A function or variable of PTX, and whether it is defined here, not only declared. *linkage* is ``"visible"``,
    ``"extern"``, ``"weak"``, ``"common"``, or ``""`` for what other code cannot see; *space* is ``"func"``, which has a
    prototype, ``"entry"``, or of a variable ``"global"``, ``"const"`` or ``"shared"``."""

    name: str
    linkage: str
    space: str
    is_defined: bool
    prototype: Prototype | None = None


def read_ptx(code: bytes) -> Ptx:
    """Read the header of PTX, and check that braces and parentheses are balanced. Raises `FormatError` if it does not
    begin as PTX does, or is truncated."""
    text = _without_comments(code)
    version = _VERSION.match(text)
    if not version:
        raise FormatError("PTX begins with .version, such as '.version 8.0'")
    target = _TARGET.match(text, version.end())
    if not target:
        raise FormatError("after .version, PTX names its architecture, such as '.target sm_90'")
    for opening, closing in ((b"{", b"}"), (b"(", b")")):
        if difference := text.count(opening) - text.count(closing):
            brace, how = (opening, "truncated or damaged") if difference > 0 else (closing, "damaged")
            raise FormatError(f"{abs(difference)} {brace.decode()!r} too many: it is {how}")
    return Ptx(int(target[1]), target[2].decode(), text)


def ptx_symbols(code: bytes) -> Iterator[PtxSymbol]:
    """Yield the functions and variables of PTX in order; one that is declared and defined comes twice. Raises
    `FormatError` if a comment or a body does not end."""
    yield from (symbol for symbol, _ in _statements(code))


def ptx_references(code: bytes) -> dict[str, frozenset[str]]:
    """Return, by name of each function and variable that PTX defines, the other functions and variables that its body
    or initial value names. Raises `FormatError` as `ptx_symbols` does."""
    declared = {symbol.name for symbol in ptx_symbols(code)}
    bodies = ptx_bodies(code)
    return {name: frozenset(declared.intersection(_NAME.findall(body)) - {name}) for name, body in bodies.items()}


def ptx_bodies(code: bytes) -> dict[str, str]:
    """Return the text of each function and variable that PTX defines, from its first directive to its end, by name.
    Raises `FormatError` as `ptx_symbols` does."""
    return {symbol.name: text for symbol, text in _statements(code) if symbol.is_defined}


def _statements(code: bytes) -> Iterator[tuple[PtxSymbol, str]]:
    """Yield what each statement declares or defines, and the statement, with the body of a function."""
    text = _without_comments(code).decode("utf-8", "replace")
    start = 0
    while end := _STATEMENT_END.search(text, start):
        symbol = _declared(text, start, end.start())
        after = _end_of_body(text, end.end()) if end[0] == "{" else end.end()
        if symbol is not None:
            yield symbol, text[start:after]
        start = after


def _without_comments(code: bytes) -> bytes:
    code = code.rstrip(b"\0")
    if b"\0" in code:
        raise FormatError(f"it is not text: byte {code.index(0)} is 0")
    text = _STRING.sub(b'""', _COMMENT.sub(b" ", code)) if b"/" in code or b'"' in code else code
    if b"/*" in text:
        raise FormatError("a comment does not end: it is truncated")
    return text


def _end_of_body(text: str, start: int) -> int:
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    raise FormatError("a body does not end: it is truncated")


def _declared(text: str, start: int, end: int) -> PtxSymbol | None:
    """Return what the statement from *start* to *end* declares or defines, if anything."""
    if found := _FUNCTION.search(text, start, end):
        prototype = _prototype(found) if found["space"] == "func" else None
        return PtxSymbol(found["name"], found["linkage"] or "", found["space"], text[end] == "{", prototype)
    if found := _VARIABLE.search(text, start, end):
        linkage = found["linkage"] or ""
        return PtxSymbol(found["name"], linkage, found["space"], linkage != "extern")
    return None


def _prototype(function: re.Match[str]) -> Prototype | None:
    returns, parameters = (
        tuple(_parameter(part) for part in (function[group] or "").split(",") if part.strip())
        for group in ("returns", "parameters")
    )
    return Prototype(returns[0] if returns else None, parameters) if len(returns) < 2 else None


def _parameter(text: str) -> Parameter:
    found = _PARAMETER.search(text)
    if found is None:
        return Parameter(None)
    align, bits, count = found.groups()
    size = int(bits) // 8
    if count is None:
        return Parameter(max(size, 4))  # numbers of 1 and 2 bytes are passed in 4
    return Parameter(size * int(count) if count else None, int(align or 1))
