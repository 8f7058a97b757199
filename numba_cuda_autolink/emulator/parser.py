# SPDX-License-Identifier: BSD-2-Clause
"""PTX as records: types, functions, variables, instructions and their source lines."""

from __future__ import annotations

import functools
import re
import struct
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field

from .errors import PTXSyntaxError


@dataclass(frozen=True)
class PTXType:
    """A type: *kind* is ``b`` (bits), ``u``, ``s``, ``f``, ``bf`` (bfloat16), ``pred`` or a packed pair (``f16x2``)."""

    name: str
    kind: str
    bits: int

    @property
    def nbytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def llvm(self) -> str:
        """The LLVM type of values: half precision and packed pairs are kept as their bits."""
        if self.kind == "f" and self.bits >= 32:
            return "float" if self.bits == 32 else "double"
        return f"i{self.bits}"

    @property
    def integer(self) -> str:
        return f"i{self.bits}"

    @property
    def is_signed(self) -> bool:
        return self.kind == "s"


TYPES = {"pred": PTXType("pred", "pred", 1), "bf16": PTXType("bf16", "bf", 16), "tf32": PTXType("tf32", "b", 32)}
TYPES.update({f"{kind}{bits}": PTXType(f"{kind}{bits}", kind, bits) for kind in "bus" for bits in (8, 16, 32, 64)})
TYPES.update({f"f{bits}": PTXType(f"f{bits}", "f", bits) for bits in (16, 32, 64)})
TYPES.update({name: PTXType(name, name, 32) for name in ("f16x2", "bf16x2")})
TYPES.update({name: PTXType(name, name, 8) for name in ("e4m3", "e5m2")})
TYPES["b128"] = PTXType("b128", "b", 128)


_COMMENT = re.compile(r'"[^"\n]*"|/\*.*?\*/|//[^\n]*', re.S)
_TOKEN = re.compile(r'"[^"]*"|[;{}]|[^;{}"]+')
_OPERAND = re.compile(r"(?:[^,\[{(]|\[[^\]]*\]|\{[^}]*\}|\([^)]*\))+")
_NAME = r"[A-Za-z_$%][\w$]*"
_INTEGER = re.compile(r"-?(?:0[xX][\da-fA-F]+|0[bB][01]+|\d+)U?")
_LABEL = re.compile(rf"\s*({_NAME})\s*:(?!:)")
_INSTRUCTION = re.compile(r"(?:@(!?\s*[\w%$]+)\s+)?([a-z][\w.:]*)\s*(.*)$", re.S)
_LOC = re.compile(r"\.loc((?:\s+\d+){3})(?:.*\binlined_at((?:\s+\d+){3}))?", re.S)
_HEADER = re.compile(r"\.(func|entry)\s*(\([^)]*\))?\s*([\w$%]+)\s*(\([^)]*\))?(.*)$", re.S)
_REGISTER = re.compile(r"(?<![\w%$.])[A-Za-z_%$][\w$]*")
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
    """One instruction. *number* counts those of the text, whose own number is in its upper bits; *predicate* begins
    with ``!`` where it must not hold."""

    number: int
    opcode: str
    operands: tuple[str, ...]
    predicate: str
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
    def called(self) -> tuple[str, ...]:
        """The operands of its calls."""
        return tuple(o for i in self.code if i.opcode.startswith("call") for o in i.operands)

    @property
    def calls_pointers(self) -> bool:
        return any(operand in self.registers for operand in self.called)

    @functools.cached_property
    def parameter_offsets(self) -> tuple[dict[str, int], int]:
        """Where each parameter of a kernel begins in the packed buffer, and the bytes of all."""
        offsets, end = {}, 0
        for parameter in self.parameters:
            end = -(-end // parameter.align) * parameter.align
            offsets[parameter.name] = end
            end += parameter.nbytes
        return offsets, end


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
    count = 0 if name[1].startswith("__dynamic_shmem__") else 1  # which MLIR declares without brackets
    for vector in words:
        count *= {"v2": 2, "v4": 4, "v8": 8}.get(vector, 1)
    values = tuple(split_operands(initial.replace("{", " ").replace("}", " "))) if initial else ()
    for extent in re.findall(r"\[\s*(\w*)\s*\]", name[2]):
        count *= int(extent, 0) if extent else len(values)
    align = re.search(r"\.align\s+(\d+)", declaration)
    spaces = [w for w in words if w in ("global", "const", "shared", "local", "param")]
    nbytes = TYPES[types[-1]].nbytes
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


class Text:
    """What one text of PTX says; *number* is its place among the texts of a module."""

    def __init__(self, ptx: str, number: int):
        self.number, self.count = number, number << 24
        self.files: dict[int, str] = {}
        self.functions: dict[str, Function] = {}
        self.variables: dict[str, Variable] = {}
        self.aliases: dict[str, str] = {}
        self.locations: dict[tuple[int, ...], Location] = {}  # the last of each place
        ptx = ptx.rstrip("\0")
        cut = re.search(r"^\s*\.section\b", ptx, re.M)
        debug_files = ptx[cut.start() :] if cut else ""
        ptx = ptx[: cut.start()] if cut else ptx
        ptx = _COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else " ", ptx)
        for source in (ptx, debug_files):
            for file in re.finditer(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', source, re.M):
                self.files[int(file[1])] = file[2]
        ptx = re.sub(r"^\s*\.(?:file|version|target|address_size)\b.*$", "", ptx, flags=re.M)
        ptx = re.sub(r"^(\s*\.loc\s[^\n;]*)$", r"\1;", ptx, flags=re.M)
        tokens, head = iter(_TOKEN.findall(ptx)), ""
        for token in tokens:
            if token == "{" and "=" not in head:
                self.body(self.header(head), tokens)
                head = ""
            elif token == ";":
                self.statement(head.strip(), None, "", ChainMap({"@": ""}))
                head = ""
            else:
                head += token

    def statement(self, text: str, function: Function | None, label: str, scope: ChainMap[str, str]) -> None:
        """Note what the statement *text* declares, in the *scope* and after the *label* of a *function*."""
        if text.startswith((".pragma", ".loc ", ".callprototype", ".calltargets")):
            return
        if re.search(r"\.(func|entry)\b", text):
            self.header(text)
        elif alias := re.match(r"\.alias\s+([\w$]+)\s*,\s*([\w$]+)", text):
            self.aliases[alias[1]] = alias[2]
        elif function is not None and text.startswith(".branchtargets"):
            function.branch_targets[label] = tuple(split_operands(text[14:]))
        elif function is not None and (found := re.match(r"\.reg\s*\.(\w+)\s+(.*)", text)) and found[1] in TYPES:
            for register in split_operands(found[2]):
                many = re.match(r"([\w%$]+)<(\d+)>", register)
                for name in (f"{many[1]}{k}" for k in range(int(many[2]))) if many else [register]:
                    function.registers[self.declare(name, scope)] = found[1]
        elif re.search(r"\.(global|const|shared|local|param)\b", text):
            if not re.search(r"\.(texref|samplerref|surfref)\b", text):
                variable = parse_variable(text)
                if function is not None and variable.space in ("local", "param"):
                    function.local_variables[self.declare(variable.name, scope)] = variable
                else:
                    self.variables[variable.name] = variable
        elif text:
            raise PTXSyntaxError(f"A statement of PTX was not understood: {text[:100]}")

    def header(self, head: str) -> Function:
        found = _HEADER.search(head)
        if found is None:
            raise PTXSyntaxError(f"The head of a function of PTX was not understood: {head[:100]}")
        parameters, results = (
            tuple(parse_variable(p) for p in split_operands((found[k] or "()").strip()[1:-1])) for k in (4, 2)
        )
        before = head[: found.start()]
        function = self.functions.get(found[3])
        if function is None:
            function = self.functions[found[3]] = Function(found[3], found[1] == "entry", self.number)
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
                    self.statement(statement, function, label, scope)
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
        inlined_at = self.locations.get(at, Location(*at)) if at else None
        self.locations[place] = location = Location(*place, inlined_at=inlined_at)
        return location

    def instruction(self, statement: str, scope: ChainMap[str, str], location: Location | None) -> Instruction:
        found = _INSTRUCTION.match(statement)
        if found is None:
            raise PTXSyntaxError(f"An instruction of PTX was not understood: {statement}")
        predicate, opcode, operands = found.groups("")
        if scope["@"]:
            rename = functools.partial(_REGISTER.sub, lambda found: scope.get(found[0], found[0]))
            predicate, operands = rename(predicate), rename(operands)
        number, self.count = self.count, self.count + 1
        return Instruction(number, opcode.rstrip("."), tuple(split_operands(operands)), predicate, location, statement)
