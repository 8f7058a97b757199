# SPDX-License-Identifier: BSD-2-Clause
"""PTX as records: functions, variables, instructions and their source lines."""

from __future__ import annotations

import functools
import re
import struct
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field

from .errors import PTXSyntaxError
from .ptx_types import TYPES, PTXType, ptx_type

_COMMENT = re.compile(r'"[^"\n]*"|/\*.*?\*/|//[^\n]*', re.S)
_TOKEN = re.compile(r'"[^"]*"|[;{}]|[^;{}"]+')
_OPERAND = re.compile(r"(?:[^,\[{(]|\[[^\]]*\]|\{[^}]*\}|\([^)]*\))+")
_NAME = r"[A-Za-z_$%][\w$]*"
_INTEGER = re.compile(r"-?(?:0[xX][\da-fA-F]+|0[bB][01]+|\d+)U?")
_LABEL = re.compile(rf"\s*({_NAME})\s*:(?!:)")
_INSTRUCTION = re.compile(r"(?:@(!?)\s*([\w%$]+)\s+)?([a-z][\w.:]*)\s*(.*)$", re.S)
_LOC = re.compile(r"\.loc((?:\s+\d+){3})(?:.*\binlined_at((?:\s+\d+){3}))?", re.S)
_HEADER = re.compile(r"\.(func|entry)\s*(\([^)]*\))?\s*([\w$%]+)\s*(\([^)]*\))?(.*)$", re.S)
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_FLOATS = {16: "<e", 32: "<f", 64: "<d"}


def parse_constant(text: str, type: PTXType) -> int | None:
    """Return the bits of the constant *text* as one of *type*, or None for what is not a constant."""
    if found := re.fullmatch(r"0([fFdD])([\da-fA-F]+)", text):
        code, bits = _FLOATS[32 if found[1] in "fF" else 64], int(found[2], 16)
        if type.kind != "f" or code == _FLOATS[type.bits]:
            return bits
        (number,) = struct.unpack(code, bits.to_bytes(struct.calcsize(code), "little"))
    elif type.kind == "f" and re.fullmatch(r"-?\d*\.?\d+(?:[eE][-+]?\d+)?", text):
        number = float(text)
    else:
        integer = parse_integer(text)
        return None if integer is None else integer & (1 << type.bits) - 1
    return int.from_bytes(struct.pack(_FLOATS[type.bits], number), "little")


def parse_integer(text: str) -> int | None:
    """Return the integer constant *text*, or None."""
    if not _INTEGER.fullmatch(text):
        return 32 if text == "WARP_SZ" else None
    text = text.rstrip("U")
    if re.fullmatch(r"-?0\d+", text):
        return int(text, 8)
    return int(text, 0)


@dataclass(frozen=True)
class Variable:
    """A declared variable or parameter. *initial* are the words of its initialiser; without one, it is zero."""

    name: str
    space: str
    type: str
    align: int
    nbytes: int
    initial: tuple[str, ...] = ()
    is_extern: bool = False
    is_visible: bool = False


@dataclass(frozen=True)
class Location:
    """A ``.loc``: file number, line and column, and the last before it of the place that it is inlined at."""

    file: int
    line: int
    column: int
    inlined_at: Location | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Instruction:
    """One instruction. *number* counts those of the text, whose own number is in its upper bits; *negated* belongs to
    *predicate*."""

    number: int
    opcode: str
    operands: tuple[str, ...]
    predicate: str
    negated: bool
    location: Location | None
    text: str


@dataclass
class Function:
    """A function or a kernel; *code* is empty where it is only declared."""

    name: str
    is_entry: bool
    text: int
    parameters: tuple[Variable, ...] = ()
    results: tuple[Variable, ...] = ()
    is_visible: bool = False
    is_weak: bool = False
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    local_variables: dict[str, Variable] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names in the operands of its code that are not registers."""
        operands = (operand for instruction in self.code for operand in instruction.operands if operand[0] != "%")
        return tuple(dict.fromkeys(name for operand in operands for name in _WORD.findall(operand)))

    @functools.cached_property
    def parameter_offsets(self) -> tuple[dict[str, int], int]:
        """Where each parameter of a kernel begins in the packed buffer, and the bytes of all."""
        offsets, end = {}, 0
        for parameter in self.parameters:
            end = -(-end // parameter.align) * parameter.align
            offsets[parameter.name] = end
            end += parameter.nbytes
        return offsets, end


@dataclass
class Text:
    """What one text of PTX says."""

    number: int
    files: dict[int, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    locations: dict[tuple[int, ...], Location] = field(default_factory=dict)  # the last of each place


def split_operands(text: str) -> list[str]:
    """Split *text* at the commas that no bracket encloses."""
    return [part for part in map(str.strip, _OPERAND.findall(text)) if part]


def parse_variable(text: str) -> Variable:
    """Return the variable that the declaration *text* (without its semicolon) declares."""
    declaration, _, initial = text.partition("=")
    name = re.search(rf"({_NAME})\s*((?:\[[^\]]*\]\s*)*)$", declaration.strip())
    words = re.findall(r"\.([\w:]+)", declaration)
    types = [word for word in words if word in TYPES]
    if name is None or not types:
        raise PTXSyntaxError(f"A declaration of PTX was not understood: {text.strip()}")
    count = 1
    for vector in words:
        count *= {"v2": 2, "v4": 4, "v8": 8}.get(vector, 1)
    values = tuple(split_operands(initial.replace("{", " ").replace("}", " "))) if initial else ()
    for extent in re.findall(r"\[\s*(\w*)\s*\]", name[2]):
        count *= int(extent, 0) if extent else len(values)
    align = re.search(r"\.align\s+(\d+)", declaration)
    spaces = [w for w in words if w in ("global", "const", "shared", "local", "param")]
    nbytes = ptx_type(types[-1]).nbytes
    return Variable(
        name[1],
        spaces[0] if spaces else "param",
        types[-1],
        int(align[1]) if align else nbytes * (count if any(w in ("v2", "v4") for w in words) else 1),
        nbytes * count,
        values,
        "extern" in words,
        bool({"visible", "weak", "common", "extern"} & set(words)),
    )


class _Parser:
    def __init__(self, number: int):
        self.text = Text(number)
        self.count = number << 24

    def parse(self, ptx: str) -> Text:
        cut = re.search(r"^\s*\.section\b", ptx, re.M)
        debug_files = ptx[cut.start() :] if cut else ""
        ptx = ptx[: cut.start()] if cut else ptx
        ptx = _COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else " ", ptx)
        for source in (ptx, debug_files):
            for file in re.finditer(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', source, re.M):
                self.text.files[int(file[1])] = file[2]
        ptx = re.sub(r"^\s*\.(?:file|version|target|address_size)\b.*$", "", ptx, flags=re.M)
        ptx = re.sub(r"^(\s*\.loc\s[^\n;]*)$", r"\1;", ptx, flags=re.M)
        tokens, head = iter(_TOKEN.findall(ptx)), ""
        for token in tokens:
            if token == "{" and "=" not in head:
                self.body(self.header(head), tokens)
                head = ""
            elif token == ";":
                self.statement(head.strip())
                head = ""
            else:
                head += token
        return self.text

    def statement(self, text: str) -> None:
        if re.search(r"\.(func|entry)\b", text):
            self.header(text)
        elif alias := re.match(r"\.alias\s+([\w$]+)\s*,\s*([\w$]+)", text):
            self.text.aliases[alias[1]] = alias[2]
        elif text and not text.startswith((".pragma", ".loc ")):
            if not re.search(r"\.(global|const|shared|local)\b", text):
                raise PTXSyntaxError(f"A statement of PTX was not understood: {text[:100]}")
            if not re.search(r"\.(texref|samplerref|surfref)\b", text):
                variable = parse_variable(text)
                self.text.variables[variable.name] = variable

    def header(self, head: str) -> Function:
        found = _HEADER.search(head)
        if found is None:
            raise PTXSyntaxError(f"The head of a function of PTX was not understood: {head[:100]}")
        parameters, results = (
            tuple(parse_variable(p) for p in split_operands((found[k] or "()").strip()[1:-1])) for k in (4, 2)
        )
        before = head[: found.start()]
        function = self.text.functions.get(found[3])
        if function is None:
            function = self.text.functions[found[3]] = Function(found[3], found[1] == "entry", self.text.number)
        function.parameters, function.results = parameters, results
        function.is_visible |= any(w in before for w in (".visible", ".weak", ".extern"))
        function.is_weak |= ".weak" in before
        for directive in re.finditer(r"\.(maxntid|reqntid|reqnctapercluster)\s+(\d+(?:\s*,\s*\d+)*)", found[5]):
            sizes = tuple(int(n) for n in directive[2].split(","))
            function.directives[directive[1]] = (*sizes, 1, 1)[:3]
        return function

    def body(self, function: Function, tokens: Iterator[str]) -> None:
        """Parse the statements of *function*, up to its closing brace. What is declared in inner braces gets a name of
        its own."""
        scope: ChainMap[str, str] = ChainMap({"@": ""})
        statements: list[tuple[str, ChainMap[str, str], Location | None]] = []
        buffer, depth, label, blocks = "", 0, "", 0
        location: Location | None = None
        for token in tokens:
            if token not in ";{}" and not depth:
                buffer += token
                while found := _LABEL.match(buffer):
                    label = self.declare(found[1], scope)
                    function.labels[label] = len(statements)
                    buffer = buffer[found.end() :]
            elif token == "{" and not buffer.strip():
                blocks += 1
                scope, buffer = scope.new_child({"@": f"@{blocks}"}), ""
            elif token == "}" and not depth:
                if not scope["@"]:
                    break
                scope, buffer = scope.parents, ""
            elif token != ";":
                depth += {"{": 1, "}": -1}.get(token, 0)
                buffer += token
            else:
                statement, buffer = " ".join(buffer.split()), ""
                if statement.startswith(".loc "):
                    location = self.location(statement)
                elif statement.startswith("."):
                    self.declaration(function, statement, label, scope)
                elif statement:
                    statements.append((statement, scope, location))
        else:
            raise PTXSyntaxError("A function of PTX does not end: a closing brace is missing")
        function.code = [self.instruction(*each) for each in statements]

    @staticmethod
    def declare(name: str, scope: ChainMap[str, str]) -> str:
        """Return what *name* is called outside of its *scope*, whose own suffix is at the key ``@``."""
        if scope["@"]:
            scope[name] = name + scope["@"]
        return name + scope["@"]

    def location(self, statement: str) -> Location | None:
        found = _LOC.match(statement)
        if found is None:
            raise PTXSyntaxError(f"A source line of PTX was not understood: {statement}")
        place, at = (tuple(map(int, numbers.split())) for numbers in found.groups(""))
        inlined_at = self.text.locations.get(at, Location(*at)) if at else None
        self.text.locations[place] = location = Location(*place, inlined_at=inlined_at)
        return location

    def declaration(self, function: Function, statement: str, label: str, scope: ChainMap[str, str]) -> None:
        if statement.startswith(".reg"):
            found = re.match(r"\.reg\s*\.(\w+)\s+(.*)", statement)
            if found is None or found[1] not in TYPES:
                raise PTXSyntaxError(f"A declaration of PTX was not understood: {statement}")
            for register in split_operands(found[2]):
                if many := re.match(r"([\w%$]+)<(\d+)>", register):
                    for k in range(int(many[2])):
                        function.registers[self.declare(f"{many[1]}{k}", scope)] = found[1]
                else:
                    function.registers[self.declare(register, scope)] = found[1]
        elif statement.startswith((".local", ".param")):
            variable = parse_variable(statement)
            function.local_variables[self.declare(variable.name, scope)] = variable
        elif statement.startswith(".shared"):
            variable = parse_variable(statement)
            self.text.variables[variable.name] = variable
        elif statement.startswith(".branchtargets"):
            function.branch_targets[label] = tuple(split_operands(statement[14:]))
        elif not statement.startswith((".pragma", ".callprototype", ".calltargets")):
            raise PTXSyntaxError(f"A statement of PTX was not understood: {statement}")

    def instruction(self, statement: str, scope: ChainMap[str, str], location: Location | None) -> Instruction:
        found = _INSTRUCTION.match(statement)
        if found is None:
            raise PTXSyntaxError(f"An instruction of PTX was not understood: {statement}")
        operands, predicate = found[4], found[2] or ""
        if scope["@"]:
            operands = re.sub(r"(?<![\w%$.])[A-Za-z_%$][\w$]*", lambda m: scope.get(m[0], m[0]), operands)
            predicate = scope.get(predicate, predicate)
        self.count += 1
        opcode = found[3].rstrip(".")
        return Instruction(
            self.count - 1, opcode, tuple(split_operands(operands)), predicate, bool(found[1]), location, statement
        )


def parse(ptx: str, number: int = 0) -> Text:
    """Return what the text *ptx* says; *number* is its place among the texts of a module."""
    return _Parser(number).parse(ptx.rstrip("\0"))
