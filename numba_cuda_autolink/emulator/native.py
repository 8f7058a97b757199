# SPDX-License-Identifier: BSD-2-Clause
"""A small typed subset of Python that becomes LLVM IR: the language of the scheduler and of instructions.

A function marked `native` has annotated parameters, and variables with one type each, which their first assignment
decides. It may contain assignments, ``if``, ``while``, ``for … in range``, ``for … in bits``, ``return``,
integer, floating and boolean expressions (integers wrap around; ``and`` and ``or`` stop early), casts (``u64(x)``), the
operations of `_OPERATIONS`, ``load_u32(address, offset)``, ``store_u32(address, offset, value)`` and calls of other
native functions. `native_for` makes one function for each of several types, which ``T`` stands for. Addresses are of
type ``u64``. Constants are module globals. A function without ``return`` type returns nothing.
"""

from __future__ import annotations

import ast
import inspect
import re
import struct
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

u8 = int
u16 = int
u32 = int
u64 = int
i8 = int
i16 = int
i32 = int
i64 = int
f32 = float
f64 = float

LLVM = {"bool": "i1", "f32": "float", "f64": "double", "None": "void", "u128": "i128", "i128": "i128"}
LLVM.update({f"{sign}{bits}": f"i{bits}" for sign in "ui" for bits in (8, 16, 32, 64)})
_INTEGER = {"Add": "add", "Sub": "sub", "Mult": "mul", "BitAnd": "and", "BitOr": "or", "BitXor": "xor", "LShift": "shl"}
_FLOAT = {"Add": "fadd", "Sub": "fsub", "Mult": "fmul", "Div": "fdiv"}
_COMPARE = {"Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge"}
# Intrinsics of LLVM, whose operands and result are of one type
_OPERATIONS = ("sqrt", "floor", "fabs", "exp2", "copysign", "fma", "ctpop", "bitreverse", "ctlz", "cttz")
_EXTERNAL = {"tanh": ("f64", ("f64",)), "switch": ("None", ("u64", "u64")), "start_address": ("u64", ())}

_FEW_LINES = 50  # of a function that is inlined at each call

_functions: dict[str, _Function] = {}
# In functions for several types: the type, the unsigned integer of its width, and the integer of twice its width
T = int
U = int
W = int


@dataclass(frozen=True)
class _Function:
    name: str
    python: Any
    inline: bool
    type: str = ""

    @property
    def symbol(self) -> str:
        return f"native.{self.name}"

    def tree(self) -> ast.FunctionDef:
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.python))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        return _Specialisation(self.type).visit(tree) if self.type else tree


class _Specialisation(ast.NodeTransformer):
    """Replaces the names ``T``, ``U`` and ``W``, and the ends ``_T``… of names, by those of one type of PTX."""

    def __init__(self, type: str):
        bits = int(re.sub(r"\D", "", type))
        self.names = {"T": type, "U": f"u{bits}", "W": f"{type[0]}{2 * bits}"}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self.names:
            return ast.Name(native_type(self.names[node.id]), node.ctx)
        return ast.Name(re.sub(r"_([TUW])$", lambda found: f"_{self.names[found[1]]}", node.id), node.ctx)


def native_type(name: str) -> str:
    """Return the type of the values of the PTX type *name*."""
    bits = int(re.sub(r"\D", "", name))
    return name if name[0] == "f" and bits > 16 else f"{'i' if name[0] == 's' else 'u'}{bits}"


@dataclass(frozen=True)
class _Compiled:
    text: str
    returns: str
    parameters: tuple[str, ...]
    calls: tuple[str, ...]
    declarations: tuple[str, ...]


_compiled: dict[str, _Compiled] = {}


def native(function: Any = None, *, inline: bool = True) -> Any:
    """Mark a function whose source becomes LLVM IR; without *inline*, it stays a call."""

    def register(python: Any) -> Any:
        _functions[python.__name__] = _Function(python.__name__, python, inline)
        return python

    return register if function is None else register(function)


def native_for(*types: str) -> Any:
    """Mark a function of which there is one for each of the PTX *types*, with the type at the end of its name."""

    def register(python: Any) -> Any:
        for type in types:
            name = f"{python.__name__}_{type}"
            _functions[name] = _Function(name, python, True, type)
        return python

    return register


def compile_native(name: str) -> _Compiled:
    """Return the LLVM IR of the native function *name*."""
    if name not in _compiled:
        _compiled[name] = _Translator(_functions[name]).translate()
    return _compiled[name]


def list_texts(names: Iterable[str], *, runtime: bool) -> tuple[list[str], set[str]]:
    """Return the texts of the native functions *names* and of all that they call, and the declarations they need.

    Functions that are not inlined are defined in the *runtime* alone, declared elsewhere.
    """
    texts, declarations, pending, seen = [], set(), list(names), set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        compiled = compile_native(name)
        if not runtime and not _functions[name].inline:
            types = ", ".join(LLVM[t] for t in compiled.parameters)
            declarations.add(f'declare {LLVM[compiled.returns]} @"{_functions[name].symbol}"({types})')
            continue
        texts.append(compiled.text)
        declarations.update(compiled.declarations)
        pending += compiled.calls
    return texts, declarations


def list_runtime_functions() -> list[str]:
    """Return the names of the functions that are not inlined."""
    return [name for name, function in _functions.items() if not function.inline]


class _Value(NamedTuple):
    text: str
    type: str


class _Literal(NamedTuple):
    """A constant of Python whose type the other operand decides."""

    number: int | float


class _Translator:
    def __init__(self, function: _Function):
        self.function = function
        self.tree = function.tree()
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.variables: dict[str, str] = {}
        self.calls: set[str] = set()
        self.declarations: set[str] = set()
        self.count = 0

    def translate(self) -> _Compiled:
        arguments = self.tree.args.args
        types = [ast.unparse(a.annotation) for a in arguments if a.annotation is not None]
        assert len(types) == len(arguments), self.function.name
        returns = ast.unparse(self.tree.returns) if self.tree.returns else "None"
        self.returns = returns
        for argument, type in zip(arguments, types, strict=True):
            self._declare(argument.arg, type)
            self.emit(f"store {LLVM[type]} %a.{argument.arg}, ptr %v.{argument.arg}")
        self._statements(self.tree.body)
        self.emit("ret void" if returns == "None" else "unreachable")
        parameters = ", ".join(f"{LLVM[t]} %a.{a.arg}" for a, t in zip(arguments, types, strict=True))
        linkage, inline = ("internal ", "inlinehint") if self.function.inline else ("", "noinline")
        if self.function.inline and len(self.lines) < _FEW_LINES:
            inline = "alwaysinline"
        text = f'define {linkage}{LLVM[returns]} @"{self.function.symbol}"({parameters}) {inline} nounwind {{\nentry:\n'
        text += "\n".join([*self.entry, *self.lines]) + "\n}\n"
        return _Compiled(text, returns, tuple(types), tuple(sorted(self.calls)), tuple(sorted(self.declarations)))

    def emit(self, line: str) -> None:
        self.lines.append(" " + line)

    def temporary(self, line: str) -> str:
        self.count += 1
        self.emit(f"%t{self.count} = {line}")
        return f"%t{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"L{self.count}"

    def _declare(self, name: str, type: str) -> None:
        self.variables[name] = type
        self.entry.append(f" %v.{name} = alloca {LLVM[type]}")

    def fail(self, node: ast.AST, why: str) -> Exception:
        return TypeError(f"native function {self.function.name}: {why}: {ast.unparse(node)}")

    # Statements

    def _statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            method = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if method is None:
                raise self.fail(statement, "unsupported statement")
            method(statement)

    def _expr(self, statement: ast.Expr) -> None:
        if not isinstance(statement.value, ast.Constant):
            self.expression(statement.value)

    def _assign(self, statement: ast.Assign) -> None:
        (target,) = statement.targets
        assert isinstance(target, ast.Name)
        self._store(target.id, self.expression(statement.value), statement)

    def _augassign(self, statement: ast.AugAssign) -> None:
        assert isinstance(statement.target, ast.Name)
        name = ast.Name(statement.target.id, ast.Load())
        self._store(name.id, self.expression(ast.BinOp(name, statement.op, statement.value)), statement)

    def _store(self, name: str, value: _Value | _Literal, node: ast.AST) -> None:
        if name not in self.variables:
            if isinstance(value, _Literal):
                value = self.typed(value, "bool" if isinstance(value.number, bool) else "i64", node)
            self._declare(name, value.type)
        value = self.typed(value, self.variables[name], node)
        self.emit(f"store {LLVM[value.type]} {value.text}, ptr %v.{name}")

    def _if(self, statement: ast.If) -> None:
        yes, no, end = self.label(), self.label(), self.label()
        self.emit(f"br i1 {self.condition(statement.test)}, label %{yes}, label %{no}")
        self._block(yes, statement.body, end)
        self._block(no, statement.orelse, end)
        self.lines.append(f"{end}:")

    def _block(self, label: str, body: list[ast.stmt], after: str) -> None:
        self.lines.append(f"{label}:")
        self._statements(body)
        self.emit(f"br label %{after}")

    def _while(self, statement: ast.While) -> None:
        test, body, end = self.label(), self.label(), self.label()
        self.emit(f"br label %{test}")
        self.lines.append(f"{test}:")
        self.emit(f"br i1 {self.condition(statement.test)}, label %{body}, label %{end}")
        self._block(body, statement.body, test)
        self.lines.append(f"{end}:")

    def _for(self, statement: ast.For) -> None:
        """``for i in range([start,] stop)``, where *i* has the type of *stop*; or ``for i in bits(mask)``: the numbers
        of the bits that are 1."""
        assert isinstance(statement.iter, ast.Call)
        self.count += 1
        i, bound, function = ast.unparse(statement.target), f"bound{self.count}", ast.unparse(statement.iter.func)
        *start, last = map(ast.unparse, statement.iter.args)
        self._statements(ast.parse(f"{bound} = {last}").body)
        if function == "bits":
            loop = f"while {bound} != 0:\n {i} = cttz({bound})\n {bound} &= {bound} - 1"
        else:
            first = f"{self.variables[bound]}({start[0] if start else 0})"
            loop = f"{i} = {first}\nwhile {i} < {bound}:\n {i} += 1"
        body = ast.parse(loop).body
        steps = body[-1].body  # type: ignore[attr-defined]
        steps[:] = [*steps, *statement.body] if function == "bits" else [*statement.body, *steps]
        self._statements(body)

    def _return(self, statement: ast.Return) -> None:
        if statement.value is None:
            self.emit("ret void")
        else:
            value = self.typed(self.expression(statement.value), self.returns, statement)
            self.emit(f"ret {LLVM[value.type]} {value.text}")
        self.lines.append(f"{self.label()}:")

    # Expressions

    def typed(self, value: _Value | _Literal, type: str, node: ast.AST) -> _Value:
        if isinstance(value, _Literal):
            return _Value(constant(value.number, type), type)
        if value.type != type:
            raise self.fail(node, f"{value.type} where {type} is expected")
        return value

    def condition(self, node: ast.expr) -> str:
        return self.typed(self.expression(node), "bool", node).text

    def expression(self, node: ast.expr) -> Any:
        method: Callable[[Any], _Value | _Literal] | None = getattr(self, f"_{type(node).__name__.lower()}_value", None)
        if method is None:
            raise self.fail(node, "unsupported expression")
        return method(node)

    def _constant_value(self, node: ast.Constant) -> _Value | _Literal:
        return _Value(str(node.value).lower(), "bool") if isinstance(node.value, bool) else _Literal(node.value)  # type: ignore[arg-type]

    def _name_value(self, node: ast.Name) -> _Value | _Literal:
        if node.id in self.variables:
            type = self.variables[node.id]
            return _Value(self.temporary(f"load {LLVM[type]}, ptr %v.{node.id}"), type)
        number = self.function.python.__globals__.get(node.id)
        if not isinstance(number, (int, float)):
            raise self.fail(node, "not a variable or a number")
        return _Literal(number)

    def _attribute_value(self, node: ast.Attribute) -> _Literal:
        number = eval(ast.unparse(node), self.function.python.__globals__)
        return _Literal(int(number))

    def _unaryop_value(self, node: ast.UnaryOp) -> _Value | _Literal:
        value = self.expression(node.operand)
        kind = type(node.op).__name__
        if isinstance(value, _Literal):
            return _Literal(-value.number if kind == "USub" else ~int(value.number))
        name = LLVM[value.type]
        if kind == "Not":
            return _Value(self.temporary(f"xor i1 {value.text}, true"), "bool")
        if kind == "Invert":
            return _Value(self.temporary(f"xor {name} {value.text}, -1"), value.type)
        if value.type[0] == "f":
            return _Value(self.temporary(f"fneg {name} {value.text}"), value.type)
        return _Value(self.temporary(f"sub {name} 0, {value.text}"), value.type)

    def _pair(self, left: ast.expr, right: ast.expr, node: ast.AST) -> tuple[Any, Any]:
        a, b = self.expression(left), self.expression(right)
        if isinstance(a, _Literal) and isinstance(b, _Literal):
            return a, b
        type = b.type if isinstance(a, _Literal) else a.type
        return self.typed(a, type, node), self.typed(b, type, node)

    def _binop_value(self, node: ast.BinOp) -> _Value | _Literal:
        a, b = self._pair(node.left, node.right, node)
        kind = type(node.op).__name__
        if isinstance(a, _Literal):
            left, right = ast.Constant(a.number), ast.Constant(b.number)
            return _Literal(eval(ast.unparse(ast.BinOp(left, node.op, right))))
        signed = a.type[0] == "i"
        if a.type[0] == "f":
            operation = _FLOAT[kind]
        elif kind in _INTEGER:
            operation = _INTEGER[kind]
        else:
            names = {"RShift": ("lshr", "ashr"), "FloorDiv": ("udiv", "sdiv"), "Mod": ("urem", "srem")}
            operation = names[kind][signed]
        return _Value(self.temporary(f"{operation} {LLVM[a.type]} {a.text}, {b.text}"), a.type)

    def _compare_value(self, node: ast.Compare) -> _Value:
        (comparator,), (operator,) = node.comparators, node.ops
        a, b = self._pair(node.left, comparator, node)
        kind = _COMPARE[type(operator).__name__]
        if a.type[0] == "f":
            test = f"fcmp {'une' if kind == 'ne' else 'o' + kind}"
        else:
            test = "icmp " + (kind if kind in ("eq", "ne") else ("s" if a.type[0] == "i" else "u") + kind)
        return _Value(self.temporary(f"{test} {LLVM[a.type]} {a.text}, {b.text}"), "bool")

    def _boolop_value(self, node: ast.BoolOp) -> _Value:
        stops = isinstance(node.op, ast.Or)
        self.count += 1
        name = f"b{self.count}"
        self._declare(name, "bool")
        end = self.label()
        for value in node.values:
            text, more = self.condition(value), self.label()
            self.emit(f"store i1 {text}, ptr %v.{name}")
            self.emit(f"br i1 {text}, label %{end if stops else more}, label %{more if stops else end}")
            self.lines.append(f"{more}:")
        self.emit(f"br label %{end}")
        self.lines.append(f"{end}:")
        return _Value(self.temporary(f"load i1, ptr %v.{name}"), "bool")

    def _ifexp_value(self, node: ast.IfExp) -> _Value:
        condition = self.condition(node.test)
        a, b = self._pair(node.body, node.orelse, node)
        if isinstance(a, _Literal):
            raise self.fail(node, "cast one of the constants")
        name = LLVM[a.type]
        return _Value(self.temporary(f"select i1 {condition}, {name} {a.text}, {name} {b.text}"), a.type)

    # Calls

    def _call_value(self, node: ast.Call) -> _Value:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        values = [self.expression(a) for a in node.args]
        if name in LLVM:
            return self._cast(values[0], name, node)
        if name.startswith(("load_", "store_")):
            return self._access(name, values, node)
        if name.startswith("bits_"):
            to = name[5:]
            return _Value(self.temporary(f"bitcast {LLVM[values[0].type]} {values[0].text} to {LLVM[to]}"), to)
        if name in _OPERATIONS:
            return self._intrinsic(name, values, node)
        if name == "atomic_add_u32":
            address, amount = self._address(values[0], _Literal(0), node), self.typed(values[1], "u32", node)
            return _Value(self.temporary(f"atomicrmw add ptr {address}, i32 {amount.text} seq_cst"), "u32")
        if name.startswith("address_of_"):
            self.calls.add(name[11:])
            symbol = _functions[name[11:]].symbol
            return _Value(self.temporary(f'ptrtoint ptr @"{symbol}" to i64'), "u64")
        if name == "call_address":
            return self._call_address(values, node)
        if name in _EXTERNAL:
            returns, types = _EXTERNAL[name]
            if name == "tanh":
                self.declarations.add("declare double @tanh(double)")
            return self._call(f"@{name}", returns, types, values, node)
        if name not in _functions:
            raise self.fail(node, "not a native function")
        self.calls.add(name)
        if name == self.function.name:
            raise self.fail(node, "recursion")
        compiled = compile_native(name)
        return self._call(f'@"{_functions[name].symbol}"', compiled.returns, compiled.parameters, values, node)

    def _call(self, symbol: str, returns: str, types: tuple[str, ...], values: list[Any], node: ast.AST) -> _Value:
        if len(types) != len(values):
            raise self.fail(node, f"{len(values)} arguments where {len(types)} are expected")
        arguments = [self.typed(v, t, node) for v, t in zip(values, types, strict=True)]
        text = f"call {LLVM[returns]} {symbol}({', '.join(f'{LLVM[a.type]} {a.text}' for a in arguments)})"
        if returns == "None":
            self.emit(text)
            return _Value("", "None")
        return _Value(self.temporary(text), returns)

    def _call_address(self, values: list[Any], node: ast.AST) -> _Value:
        """``call_address(function, arguments…)``: a function of C that takes and returns ``u64``."""
        values = [self.typed(v, "u64", node) for v in values]
        function = self.temporary(f"inttoptr i64 {values[0].text} to ptr")
        arguments = ", ".join(f"i64 {v.text}" for v in values[1:])
        return _Value(self.temporary(f"call i64 {function}({arguments})"), "u64")

    def _intrinsic(self, intrinsic: str, values: list[Any], node: ast.AST) -> _Value:
        type = next(v.type for v in values if isinstance(v, _Value))
        name = LLVM[type]
        suffix = {"float": "f32", "double": "f64"}.get(name, name)
        parameters = [name] * len(values)
        arguments = [f"{name} {self.typed(v, type, node).text}" for v in values]
        if intrinsic in ("ctlz", "cttz"):  # whether 0 is undefined
            parameters.append("i1")
            arguments.append("i1 false")
        self.declarations.add(f"declare {name} @llvm.{intrinsic}.{suffix}({', '.join(parameters)})")
        return _Value(self.temporary(f"call {name} @llvm.{intrinsic}.{suffix}({', '.join(arguments)})"), type)

    def _cast(self, value: Any, to: str, node: ast.AST) -> _Value:
        if isinstance(value, _Literal):
            return self.typed(value, to, node)
        source, llvm, target = value.type, LLVM[value.type], LLVM[to]
        if llvm == target:
            return _Value(value.text, to)
        if source[0] == "f" and to[0] == "f":
            operation = "fpext" if to == "f64" else "fptrunc"
        elif to[0] == "f":
            operation = "sitofp" if source[0] == "i" else "uitofp"
        elif source[0] == "f":
            operation = "fptosi" if to[0] == "i" else "fptoui"
        elif source == "bool":
            operation = "zext"
        elif int(llvm[1:]) > int(target[1:]):
            operation = "trunc"
        else:
            operation = "sext" if source[0] == "i" else "zext"
        return _Value(self.temporary(f"{operation} {llvm} {value.text} to {target}"), to)

    def _address(self, base: Any, offset: Any, node: ast.AST) -> str:
        pointer = self.temporary(f"inttoptr i64 {self.typed(base, 'u64', node).text} to ptr")
        offset = self.typed(offset, "i64" if isinstance(offset, _Literal) else offset.type, node)
        return self.temporary(f"getelementptr i8, ptr {pointer}, {LLVM[offset.type]} {offset.text}")

    def _access(self, name: str, values: list[Any], node: ast.AST) -> _Value:
        """``load_T(address, offset)`` and ``store_T(address, offset, value)``."""
        operation, type = name.split("_")
        pointer = self._address(values[0], values[1], node)
        if operation == "load":
            return _Value(self.temporary(f"load {LLVM[type]}, ptr {pointer}, align 1"), type)
        self.emit(f"store {LLVM[type]} {self.typed(values[2], type, node).text}, ptr {pointer}, align 1")
        return _Value("", "None")


def constant(number: int | float, type: str) -> str:
    """Return *number* as a constant of LLVM."""
    if type == "bool":
        return "true" if number else "false"
    if type == "f32":
        return f"0x{struct.unpack('<Q', struct.pack('<d', struct.unpack('<f', struct.pack('<f', number))[0]))[0]:016X}"
    if type == "f64":
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    return str(int(number))
