# SPDX-License-Identifier: BSD-2-Clause
"""A small typed subset of Python that becomes LLVM IR: the language of the scheduler and of instructions.

A function marked `native` has annotated parameters, and variables with one type each, which their first assignment
decides. It may contain assignments, ``if``, ``while``, ``for … in range``, ``for … in bits``, ``return``,
integer, floating and boolean expressions (integers wrap around; ``and`` and ``or`` stop early), casts (``u64(x)``), the
operations of `_OPERATIONS`, ``load_u32(address, offset)``, ``store_u32(address, offset, value)`` and calls of other
native functions. There may be one function for each of several types, which ``T`` stands for. Addresses are of
type ``u64``, or of the type of a `record` that is there, whose fields are attributes; ``address[k]`` is the k-th record
from there on. Constants are module globals. A function without ``return`` type returns nothing.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import inspect
import re
import struct
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

from .ir_text import IRText

u8 = int
u16 = int
u32 = int
u64 = int
i8 = int
i32 = int
i64 = int
f32 = float
f64 = float
u32x3 = int

LLVM = {"bool": "i1", "f32": "float", "f64": "double", "None": "void", "u128": "i128", "i128": "i128"}
LLVM.update({f"{sign}{bits}": f"i{bits}" for sign in "ui" for bits in (8, 16, 32, 64)})
_INTEGER = {"Add": "add", "Sub": "sub", "Mult": "mul", "BitAnd": "and", "BitOr": "or", "BitXor": "xor", "LShift": "shl"}
_UNSIGNED = _INTEGER | {"RShift": "lshr", "FloorDiv": "udiv", "Mod": "urem"}
_SIGNED = _INTEGER | {"RShift": "ashr", "FloorDiv": "sdiv", "Mod": "srem"}
_FLOAT = {"Add": "fadd", "Sub": "fsub", "Mult": "fmul", "Div": "fdiv"}
_COMPARE = {"Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge"}
# Intrinsics of LLVM, whose operands and result are of one type
_OPERATIONS = ("sqrt", "floor", "fabs", "exp2", "copysign", "fma", "ctpop", "bitreverse", "ctlz", "cttz", "umin")
_EXTERNAL = {"switch": ("None", ("u64", "u64")), "start_address": ("u64", ())}
_CASTS = {"fi": "fptosi", "fu": "fptoui", "if": "sitofp", "uf": "uitofp", "bf": "uitofp"}
_RESIZES = {"f": ("fpext", "fptrunc"), "i": ("sext", "trunc"), "u": ("zext", "trunc"), "b": ("zext", "trunc")}

_FEW_LINES = 50  # of a function that is inlined at each call

_FIELDS: dict[str, Any] = {"u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u32x3": ctypes.c_uint32 * 3}
_records: dict[str, type[Record]] = {}
_functions: dict[str, tuple[Any, bool, str]] = {}  # the function of Python, whether it is inlined, and its T
# In functions for several types: the type, the unsigned integer of its width, and the integer of twice its width
T = int
U = int
W = int


class _Specialisation(ast.NodeTransformer):
    """Replaces the names ``T``, ``U`` and ``W``, and the ends ``_T``… of names, by those of one type of PTX."""

    def __init__(self, type: str):
        bits = int(re.sub(r"\D", "", type))
        self.names = {"T": type, "U": f"u{bits}", "W": f"{type[0]}{2 * bits}"}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self.names:
            return ast.Name(native_type(self.names[node.id]), node.ctx)
        return ast.Name(re.sub(r"_([TUW])$", lambda found: f"_{self.names[found[1]]}", node.id), node.ctx)


class Record(ctypes.Structure):
    """A structure with annotated fields: integers, or the addresses of other records. *SIZE* is in bytes."""

    SIZE: ClassVar[int]


def record(structure: type[Record]) -> Any:
    """Lay out the fields of a *structure*."""
    fields = structure.__annotations__
    structure._fields_ = [(name, _FIELDS.get(type, ctypes.c_uint64)) for name, type in fields.items()]
    structure.SIZE = ctypes.sizeof(structure)
    _records[structure.__name__], LLVM[structure.__name__] = structure, "i64"
    return structure


def native_type(name: str) -> str:
    """Return the type of the values of the PTX type *name*."""
    bits = int(re.sub(r"\D", "", name))
    return name if name[0] == "f" and bits > 16 else f"{'i' if name[0] == 's' else 'u'}{bits}"


def native(*types: str, inline: bool = True) -> Callable[[Any], Any]:
    """Mark a function whose source becomes LLVM IR; without *inline*, it stays a call. There is one for each of the PTX
    *types*, with the type at the end of its name, if any are given."""

    def register(python: Any) -> Any:
        names = {f"{python.__name__}_{type}": type for type in types} or {python.__name__: ""}
        _functions.update({name: (python, inline, type) for name, type in names.items()})
        return python

    return register


def list_texts(names: Iterable[str] | None = None) -> tuple[list[str], set[str]]:
    """Return the texts of the native functions *names* and of all that they call, and the declarations they need.

    Functions that are not inlined are defined in the runtime alone, of which these are the *names*; declared elsewhere.
    """
    texts: dict[str, str] = {}
    is_runtime = names is None
    pending = [n for n, (_, inline, _) in sorted(_functions.items()) if not inline] if names is None else list(names)
    declarations: set[str] = set()
    while pending:
        name = pending.pop()
        if name in texts:
            continue
        compiled = compile_native(name)
        if compiled.inline or is_runtime:
            texts[name] = compiled.text
            declarations |= compiled.declarations
            pending += sorted(compiled.calls)
        else:
            types = ", ".join(LLVM[t] for t in compiled.parameters)
            declarations.add(f'declare {LLVM[compiled.returns]} @"native.{name}"({types})')
    return list(texts.values()), declarations


class _Value(NamedTuple):
    """The name of a value of a *type*; or a number of Python, without one, whose type the other operand decides."""

    text: Any
    type: str


class NativeFunction(IRText):
    """The native function *name* as LLVM IR: its *text*, types, and the native functions that it calls."""

    def __init__(self, name: str):
        super().__init__()
        python, self.inline, type = _functions[name]
        self.name, self.globals = name, python.__globals__
        self.variables: dict[str, str] = {}
        self.calls: set[str] = set()
        tree: Any = ast.parse(textwrap.dedent(inspect.getsource(python))).body[0]
        if type:
            tree = _Specialisation(type).visit(tree)
        parameters = {argument.arg: ast.unparse(argument.annotation) for argument in tree.args.args}
        self.parameters = tuple(parameters.values())
        self.returns = ast.unparse(tree.returns) if tree.returns else "None"
        for parameter, each in parameters.items():
            self._store(parameter, _Value(f"%a.{parameter}", each), tree)
        self._statements(tree.body)
        self.emit("ret void" if self.returns == "None" else "unreachable")
        listed = ", ".join(f"{LLVM[each]} %a.{parameter}" for parameter, each in parameters.items())
        linkage, inline = ("internal ", "inlinehint") if self.inline else ("", "noinline")
        if self.inline and len(self.lines) < _FEW_LINES:
            inline = "alwaysinline"
        head = f'define {linkage}{LLVM[self.returns]} @"native.{name}"({listed}) {inline} nounwind {{\nentry:'
        self.text = "\n".join([head, *self.slots.values(), *self.lines, "}\n"])

    def fail(self, node: ast.AST, why: str) -> Exception:
        return TypeError(f"native function {self.name}: {why}: {ast.unparse(node)}")

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
        value = self.expression(statement.value)
        if isinstance(target, ast.Attribute):
            pointer, type = self._field(target)
            self.emit(f"store {LLVM[type]} {self.typed(value, type, statement).text}, ptr {pointer}, align 1")
        else:
            self._store(ast.unparse(target), value, statement)

    def _augassign(self, statement: ast.AugAssign) -> None:
        value = ast.BinOp(statement.target, statement.op, statement.value)
        self._assign(ast.Assign([statement.target], value))

    def _store(self, name: str, value: _Value, node: ast.AST) -> None:
        if name not in self.variables:
            self.variables[name] = value.type or ("bool" if isinstance(value.text, bool) else "i64")
        value = self.typed(value, self.variables[name], node)
        self.emit(f"store {LLVM[value.type]} {value.text}, ptr {self.slot(f'v.{name}', LLVM[value.type])}")

    def _if(self, statement: ast.If) -> None:
        yes, no, end = self.label(), self.label(), self.label()
        self.emit(f"br i1 {self.condition(statement.test)}, label %{yes}, label %{no}")
        self._block(yes, statement.body, end)
        self._block(no, statement.orelse, end)
        self.start_block(end)

    def _block(self, label: str, body: list[ast.stmt], after: str) -> None:
        self.start_block(label)
        self._statements(body)
        self.emit(f"br label %{after}")

    def _while(self, statement: ast.While) -> None:
        test, body, end = self.label(), self.label(), self.label()
        self.go_to(test)
        self.emit(f"br i1 {self.condition(statement.test)}, label %{body}, label %{end}")
        self._block(body, statement.body, test)
        self.start_block(end)

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
        value = _Value("", "None")
        if statement.value is not None:
            value = self.typed(self.expression(statement.value), self.returns, statement)
        self.leave(f"ret {LLVM[value.type]} {value.text}")

    # Expressions

    def typed(self, value: _Value, type: str, node: ast.AST) -> _Value:
        if not value.type:
            return _Value(constant(value.text, type), type)
        if value.type != type:
            raise self.fail(node, f"{value.type} where {type} is expected")
        return value

    def condition(self, node: ast.expr) -> str:
        return self.typed(self.expression(node), "bool", node).text

    def expression(self, node: ast.expr) -> Any:
        """Return the value of *node*; what has neither variables nor calls is a literal."""
        parts = list(ast.walk(node))
        if not any(isinstance(p, ast.Call) or (isinstance(p, ast.Name) and p.id in self.variables) for p in parts):
            return _Value(eval(ast.unparse(node), self.globals), "")
        return getattr(self, f"_{type(node).__name__.lower()}_value")(node)

    def _name_value(self, node: ast.Name) -> _Value:
        type = self.variables[node.id]
        return self._value(f'load {LLVM[type]}, ptr %"v.{node.id}"', type)

    def _field(self, node: ast.Attribute) -> tuple[str, str]:
        """Return a pointer to the field of a record, and its type."""
        address = self.expression(node.value)
        record = _records[address.type]
        offset = getattr(record, node.attr).offset
        return self._address(address, _Value(offset, ""), node), record.__annotations__[node.attr]

    def _pointer(self, node: ast.expr) -> str:
        """Return a pointer to a field or a native function."""
        if isinstance(node, ast.Attribute):
            return self._field(node)[0]
        name = ast.unparse(node)
        self.calls.add(name)
        return f'@"native.{name}"'

    def _attribute_value(self, node: ast.Attribute) -> _Value:
        pointer, type = self._field(node)
        return self._value(f"load {LLVM[type]}, ptr {pointer}, align 1", type)

    def _subscript_value(self, node: ast.Subscript) -> _Value:
        address, index = self.expression(node.value), self._cast(self.expression(node.slice), "u64", node)
        offset = self.temporary(f"mul i64 {index.text}, {_records[address.type].SIZE}")
        return self._value(f"add i64 {address.text}, {offset}", address.type)

    def _value(self, text: str, type: str) -> _Value:
        return _Value(self.temporary(text), type)

    def _unaryop_value(self, node: ast.UnaryOp) -> _Value:
        value = self.expression(node.operand)
        name, kind = LLVM[value.type], type(node.op).__name__
        if kind in ("Not", "Invert"):
            return self._value(f"xor {name} {value.text}, -1", value.type)
        if value.type[0] == "f":
            return self._value(f"fneg {name} {value.text}", value.type)
        return self._value(f"sub {name} 0, {value.text}", value.type)

    def _pair(self, left: ast.expr, right: ast.expr, node: ast.AST) -> tuple[_Value, _Value]:
        a, b = self.expression(left), self.expression(right)
        type = a.type or b.type
        if not type:
            raise self.fail(node, "cast one of the constants")
        return self.typed(a, type, node), self.typed(b, type, node)

    def _binop_value(self, node: ast.BinOp) -> _Value:
        a, b = self._pair(node.left, node.right, node)
        kind = type(node.op).__name__
        operation = {"f": _FLOAT, "i": _SIGNED}.get(a.type[0], _UNSIGNED)[kind]
        return self._value(f"{operation} {LLVM[a.type]} {a.text}, {b.text}", a.type)

    def _compare_value(self, node: ast.Compare) -> _Value:
        (comparator,), (operator,) = node.comparators, node.ops
        a, b = self._pair(node.left, comparator, node)
        kind = _COMPARE[type(operator).__name__]
        if a.type[0] == "f":
            test = f"fcmp {'une' if kind == 'ne' else 'o' + kind}"
        else:
            test = "icmp " + (kind if kind in ("eq", "ne") else ("s" if a.type[0] == "i" else "u") + kind)
        return self._value(f"{test} {LLVM[a.type]} {a.text}, {b.text}", "bool")

    def _boolop_value(self, node: ast.BoolOp) -> _Value:
        """``and`` and ``or`` stop early."""
        self.count += 1
        name = f"b{self.count}"
        first, *others = (ast.unparse(value) for value in node.values)
        goes_on = name if isinstance(node.op, ast.And) else f"not {name}"
        steps = "".join(f"if {goes_on}:\n {name} = {other}\n" for other in others)
        self._statements(ast.parse(f"{name} = {first}\n{steps}").body)
        return self._name_value(ast.Name(name))

    def _ifexp_value(self, node: ast.IfExp) -> _Value:
        condition = self.condition(node.test)
        a, b = self._pair(node.body, node.orelse, node)
        name = LLVM[a.type]
        return self._value(f"select i1 {condition}, {name} {a.text}, {name} {b.text}", a.type)

    # Calls

    def _call_value(self, node: ast.Call) -> _Value:
        name = ast.unparse(node.func)
        if name == "address_of":
            return self._value(f"ptrtoint ptr {self._pointer(node.args[0])} to i64", "u64")
        values = [self.expression(a) for a in node.args]
        if name in LLVM:
            return self._cast(values[0], name, node)
        if name.startswith(("load_", "store_")):
            return self._access(name, values, node)
        if name.startswith("bits_"):
            return self._value(f"bitcast {LLVM[values[0].type]} {values[0].text} to {LLVM[name[5:]]}", name[5:])
        if name in _OPERATIONS:
            type = next(v.type for v in values if v.type)
            arguments = (self.typed(v, type, node).text for v in values)
            return _Value(self.intrinsic(name, LLVM[type], *arguments), type)
        if name == "atomic_add" and isinstance(node.args[0], ast.Attribute):  # to a field
            (pointer, type), amount = self._field(node.args[0]), self.typed(values[1], "u32", node)
            return self._value(f"atomicrmw add ptr {pointer}, {LLVM[type]} {amount.text} seq_cst", type)
        if name == "call_address":  # a function of C that takes and returns ``u64``
            function = self.temporary(f"inttoptr i64 {values[0].text} to ptr")
            return self._call(function, "u64", tuple(value.type for value in values[1:]), values[1:], node)
        if name in _EXTERNAL:
            return self._call(f"@{name}", *_EXTERNAL[name], values, node)
        if name not in _functions or name == self.name:
            raise self.fail(node, "recursion" if name == self.name else "not a native function")
        self.calls.add(name)
        compiled = compile_native(name)
        return self._call(f'@"native.{name}"', compiled.returns, compiled.parameters, values, node)

    def _call(self, symbol: str, returns: str, types: tuple[str, ...], values: list[Any], node: ast.AST) -> _Value:
        arguments = (f"{LLVM[t]} {self.typed(v, t, node).text}" for v, t in zip(values, types, strict=True))
        return _Value(self.call_symbol(LLVM[returns], symbol, *arguments), returns)

    def _cast(self, value: Any, to: str, node: ast.AST) -> _Value:
        if not value.type:
            return self.typed(value, to, node)
        source, target = LLVM[value.type], LLVM[to]
        if source == target:
            return _Value(value.text, to)
        kind = value.type[0]
        widths = (int(re.sub(r"\D", "", each) or 1) for each in (value.type, to))
        operation = _CASTS.get(kind + to[0]) or _RESIZES[kind][int.__gt__(*widths)]
        return self._value(f"{operation} {source} {value.text} to {target}", to)

    def _address(self, base: Any, offset: Any, node: ast.AST) -> str:
        pointer = self.temporary(f"inttoptr i64 {base.text} to ptr")
        offset = self.typed(offset, offset.type or "i64", node)
        return self.temporary(f"getelementptr i8, ptr {pointer}, {LLVM[offset.type]} {offset.text}")

    def _access(self, name: str, values: list[Any], node: ast.AST) -> _Value:
        """``load_T(address, offset)`` and ``store_T(address, offset, value)``."""
        operation, type = name.split("_")
        pointer = self._address(values[0], values[1], node)
        if operation == "load":
            return self._value(f"load {LLVM[type]}, ptr {pointer}, align 1", type)
        self.emit(f"store {LLVM[type]} {self.typed(values[2], type, node).text}, ptr {pointer}, align 1")
        return _Value("", "None")


compile_native = functools.cache(NativeFunction)


def constant(number: int | float, type: str) -> str:
    """Return *number* as a constant of LLVM."""
    if type[0] != "f":
        return str(int(number))
    if type == "f32":
        (number,) = struct.unpack("<f", struct.pack("<f", number))
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
