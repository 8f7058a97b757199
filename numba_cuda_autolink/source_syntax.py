# SPDX-License-Identifier: BSD-2-Clause
"""The syntax of Python sources: their functions and calls, and the columns in a line of what a message is about."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import re
import traceback
from collections.abc import Iterator
from types import CodeType

_LINKED = re.compile(r"^  linked: .*$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"(?!.* raised \w+: ).*\battribute '(\w+)'")  # of a kernel, not of a hook that raised
_OPERATION = re.compile(r"No implementation of (\w+)\(")
_OPERATORS: dict[str, tuple[type[ast.AST], ...]] = {  # by the names that front ends have for them
    "add": (ast.Add, ast.UAdd),
    "sub": (ast.Sub,),
    "mul": (ast.Mult,),
    "truediv": (ast.Div,),
    "floordiv": (ast.FloorDiv,),
    "mod": (ast.Mod,),
    "pow": (ast.Pow,),
    "matmul": (ast.MatMult,),
    "and_": (ast.BitAnd,),
    "or_": (ast.BitOr,),
    "xor": (ast.BitXor,),
    "lshift": (ast.LShift,),
    "rshift": (ast.RShift,),
    "neg": (ast.USub,),
    "pos": (ast.UAdd,),
    "invert": (ast.Invert,),
    "not_": (ast.Not,),
    "eq": (ast.Eq,),
    "ne": (ast.NotEq,),
    "lt": (ast.Lt,),
    "le": (ast.LtE,),
    "gt": (ast.Gt,),
    "ge": (ast.GtE,),
    "contains": (ast.In, ast.NotIn),
}
_OPERATORS |= {f"i{name.rstrip('_')}": each for name, each in _OPERATORS.items()}


def nodes_of(filename: str) -> list[ast.AST]:
    """Return the nodes of a file of Python, outer ones first; none if it has changed, or is not Python's."""
    try:
        return _parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return []


@functools.lru_cache(maxsize=1)  # errors come in series: a launch tries several signatures
def _parse(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def code_of_file(filename: str) -> Iterator[CodeType]:
    """Yield the code of all functions in a file of Python, as they are compiled now; nothing if that fails."""
    try:
        pending = [compile("".join(linecache.getlines(filename)), filename, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return
    while pending:
        yield (code := pending.pop())
        pending += [each for each in code.co_consts if isinstance(each, CodeType)]


def function_around(filename: str, line: int) -> ast.FunctionDef | None:
    """Return the innermost function with a *line*, which may be one of its decorators; None outside of all."""
    around = [each for each in nodes_of(filename) if isinstance(each, ast.FunctionDef) and _first_line(each) <= line]
    return next((each for each in reversed(around) if line <= (each.end_lineno or 0)), None)


def _first_line(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


def find_call(filename: str, line: int, name: str) -> tuple[str, int] | None:
    """Return the place of the first call of *name* in the function that begins at *line*, None if there is none."""
    for function in nodes_of(filename):
        if not isinstance(function, ast.FunctionDef):
            continue
        if line in (function.lineno, *(each.lineno for each in function.decorator_list)):
            calls = (each for each in ast.walk(function) if isinstance(each, ast.Call))
            return next(((filename, each.lineno) for each in calls if ast.unparse(each.func).endswith(name)), None)
    return None


def find_argument(filename: str, line: int, called: str, number: int) -> ast.expr | None:
    """Return the argument with this *number*, counted from 1, of the call in a *line* of a file of a function that
    messages name *called*; ``None`` if it is not known which call that is."""
    calls = [each for each in nodes_of(filename) if isinstance(each, ast.Call) and line in _lines_of(each)]
    named = [each for each in calls if _name(each) in re.findall(r"\w+", called)]
    found = next((each for each in (named, calls) if len(each) == 1), None)
    return found[0].args[number - 1] if found and len(found[0].args) >= number else None


def write_element(array: ast.expr, ndim: int) -> tuple[str, int]:
    """Return the expression of one element of *array*, which has *ndim* dimensions, and how many dimensions the array
    has that it is a row of; 0 for an array that is no row. The text is empty for an array that has no name."""
    names, indices = (each for each in "ijklmnopqr"), list[str]()
    dimensions, owner = 0, array
    if isinstance(array, ast.Subscript):
        owner = array.value
        written = array.slice.elts if isinstance(array.slice, ast.Tuple) else [array.slice]
        used = {each.id for each in ast.walk(array) if isinstance(each, ast.Name)}
        names = (each for each in "ijklmnopqr" if each not in used)
        ranges = sum(isinstance(each, ast.Slice) for each in written)
        indices = [next(names) if isinstance(each, ast.Slice) else ast.unparse(each) for each in written]
        ndim -= ranges
        dimensions = 0 if ranges else len(indices) + ndim
    if ndim < 0 or not isinstance(owner, (ast.Name, ast.Attribute)):
        return "", 0
    return f"{ast.unparse(owner)}[{', '.join([*indices, *itertools.islice(names, ndim)])}]", dimensions


def shared_arrays(place: str) -> list[tuple[int, str]]:
    """Return the lines and the names of variables that are shared arrays, of the innermost function around *place*."""
    filename, _, line = place.rpartition(":")
    function = function_around(filename, int(line))
    assignments = (each for each in ast.walk(function) if isinstance(each, ast.Assign)) if function else ()
    is_array = re.compile(r"(?:\w+\.)*shared\.array\(").match
    return sorted(
        (each.lineno, ast.unparse(each.targets[0])) for each in assignments if is_array(ast.unparse(each.value))
    )


def columns_of(node: ast.AST, filename: str, line: int) -> tuple[int, int]:
    """Return the columns of *node* in a *line* of it. They are Unicode characters, where Python counts bytes."""
    text = linecache.getline(filename, line).rstrip()
    encoded = text.encode()
    begin = getattr(node, "col_offset", 0) if getattr(node, "lineno", 0) == line else len(text) - len(text.lstrip())
    end = getattr(node, "end_col_offset", 0) if getattr(node, "end_lineno", 0) == line else len(encoded)
    return len(encoded[:begin].decode()), len(encoded[:end].decode())


def columns_of_message(
    filename: str, line: int, message: str, last_column: int | None, is_named: bool
) -> tuple[int, int] | None:
    """Return the columns of the attribute, of the operator with its operands, or else of the call or index, in a *line*
    that *message* is about; None if that is not known. The call ends in *last_column*, in bytes, if it is known; one
    that *is_named* is named in the first line of *message*."""
    nodes = [each for each in nodes_of(filename) if line in _lines_of(each)]
    if attribute := _ATTRIBUTE.match(message.partition("\n")[0]):
        owners = [each for each in nodes if isinstance(each, ast.Attribute) and each.attr == attribute[1]]
        return columns_of(owners[0], filename, line) if owners else None
    operation = _OPERATION.match(message)
    if operation and (operators := _OPERATORS.get(operation[1])) is not None:
        operated = [each for each in nodes if isinstance(_operator(each), operators)]
        return columns_of(operated[0], filename, line) if len(operated) == 1 else None
    if operation and operation[1] in ("getitem", "static_getitem"):
        read = [each for each in nodes if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load)]
        return columns_of(read[0], filename, line) if len(read) == 1 else None
    if "needs a constant index" in message.partition("\n")[0]:
        read = [each for each in nodes if isinstance(each, ast.Subscript) and not isinstance(each.slice, ast.Constant)]
        return columns_of(read[0], filename, line) if len(read) == 1 else None
    ending = [each for each in nodes if getattr(each, "end_col_offset", None) == last_column]
    for kind in (ast.Call, ast.Subscript):
        if last := next((each for each in ending if isinstance(each, kind)), None):
            return _columns_of_last(last, filename, line)
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    if len(calls) > 1 or is_named:
        diagnosis, _, details = message.partition("\n")
        # All that is linked is not what the message is about.
        texts = (diagnosis,) if is_named else (diagnosis, _LINKED.sub("", details))
        named = ([each for each in calls if _name(each) in re.findall(r"\w+", text)] for text in texts)
        calls = next(filter(None, named), [])
    return _columns_of_last(calls[0], filename, line) if len(calls) == 1 else None


def _lines_of(node: ast.AST) -> tuple[int, ...]:
    """Return the lines that *node* is at for Python: that of its first name, and of the last that a call has before its
    arguments."""
    first = getattr(node, "lineno", 0)
    return (first, node.func.end_lineno or 0) if isinstance(node, ast.Call) else (first,)


def _operator(node: ast.AST) -> ast.AST | None:
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.AugAssign)):
        return node.op
    return node.ops[0] if isinstance(node, ast.Compare) and len(node.ops) == 1 else None


def _columns_of_last(node: ast.Call | ast.Subscript, filename: str, line: int) -> tuple[int, int]:
    """Return the columns of a call or an index in a *line*, without a call before it whose result it is of."""
    begin, end = columns_of(node, filename, line)
    before: ast.AST = node.func if isinstance(node, ast.Call) else node.value
    while isinstance(before, (ast.Attribute, ast.Subscript)):
        before = before.value
    if isinstance(before, ast.Call) and before.end_lineno == line:
        text = linecache.getline(filename, line).rstrip()
        after = columns_of(before, filename, line)[1]
        if text[after:].strip(" .\\"):  # it goes on in this line
            begin = after + text[after:].startswith(".")
    return begin, end


def _name(call: ast.Call) -> str:
    """Return the last name of the function that *call* calls."""
    function = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    return str(getattr(function, "attr", getattr(function, "id", "")))


def describe_syntax_error(error: SyntaxError, path: str | None = None) -> str:
    """Return the file, line and message of *error*, and the line with a caret as Python shows it. *path* is what users
    call the file."""
    place = path or error.filename
    at = f"{place}:{error.lineno}: " if place and error.lineno else f"{place}: " if place else ""
    lines = "".join(traceback.format_exception_only(error)).splitlines()
    shown = [line[2:] for line in lines if line.startswith("    ")]
    return "\n".join([f"{at}{type(error).__name__}: {error.msg}", *shown])
