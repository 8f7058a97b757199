# SPDX-License-Identifier: BSD-2-Clause
"""Where in a kernel is what kernels do not have: the statement, or the expression that makes the value.

A front end refuses a list, a dictionary or a text where the kernel uses it, and a ``with`` at the decorator.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from numba_cuda_autolink.source_syntax import columns_of, function_around, nodes_of

KERNELS_HAVE_NO = "kernels have no "
NO_CONTAINERS = f"{KERNELS_HAVE_NO}lists, dictionaries and sets"
NO_TEXT = "kernels make no text"
NO_WITH = f"{KERNELS_HAVE_NO}with"
NO_YIELD = f"{KERNELS_HAVE_NO}generators: no yield, map() and filter()"
MADE_BY_NUMPY = "zeros|ones|empty|full|array|arange|linspace|eye|identity"
NO_ARRAYS = "kernels do not allocate memory for arrays"
NOT_ALLOCATED = "kernels do not allocate memory for lists, texts and arrays"
NO_EXCEPTIONS = "kernels catch no exceptions"
NO_RECURSION = f"{KERNELS_HAVE_NO}recursion with other types, or through another function"


_TWO_TYPES = re.compile(r"Cannot unify .* for '(\w+)(?:\.\d+)?'")
UNKNOWN_NAME = re.compile(r"(?:NameError: )?(?:global )?name '(\w+)' is not defined")
_NOT_CALLED = re.compile(
    r"(?:kernels can call the object |.*C\+\+ has no |kernels cannot use (?:the [\w ]+ )?)"
    r"'(?P<name>[\w:]+)'|.*'(?P<constant>[\w:]+)' is a constant of C\+\+"
)
_SET_ELEMENT = re.compile("an element of .* cannot be set to ")


class Statement(NamedTuple):
    """A line, and the columns in it that are meant; ``None`` for all of them."""

    line: int
    columns: tuple[int, int] | None


def _makes_container(node: ast.AST) -> bool:
    containers = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set, ast.SetComp)
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return isinstance(node, containers) or (is_call and node.func.id in ("list", "dict", "set", "sorted"))  # type: ignore[attr-defined]


def _makes_text(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        is_method = isinstance(function, ast.Attribute) and _is_text(function.value)
        return is_method or (isinstance(function, ast.Name) and function.id in ("str", "repr", "format"))
    is_operation = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Add))
    return isinstance(node, ast.JoinedStr) or (is_operation and _is_text(node.left))  # type: ignore[attr-defined]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _makes_array(node: ast.AST) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and re.fullmatch(MADE_BY_NUMPY, function.attr) is not None


_VALUES: dict[str, Callable[[ast.AST], bool]] = {
    NO_CONTAINERS: _makes_container,
    NO_TEXT: _makes_text,
    NO_ARRAYS: _makes_array,
}
_STATEMENTS: dict[str, tuple[type[ast.AST], ...]] = {
    NO_WITH: (ast.With,),
    NO_YIELD: (ast.Yield, ast.YieldFrom),
    NO_EXCEPTIONS: (ast.Try, *([ast.TryStar] if hasattr(ast, "TryStar") else [])),
}


def find_statement(message: str, filename: str, line: int) -> Statement | None:
    """Return the statement or expression that the *message* of a front end is about, in the function with a *line* of a
    file; ``None`` where it is about no such thing, or that is not known."""
    diagnosis = message.partition("\n")[0]
    if (function := function_around(filename, line)) is None:
        return None
    if kinds := _STATEMENTS.get(diagnosis):
        found = [each for each in _within(function) if isinstance(each, kinds)]
        around = [each for each in found if each.lineno <= line <= (each.end_lineno or 0)]  # type: ignore[attr-defined]
        node = next(iter([*reversed(around), *found]), None)
    elif diagnosis == NO_RECURSION:
        node = _find_recursion(function, line)
    elif unified := _TWO_TYPES.match(diagnosis):
        assigned = _find_assignments(function, unified[1])
        node = assigned[-1] if assigned else None
    elif unknown := UNKNOWN_NAME.match(diagnosis):
        names = [each for each in _within(function) if isinstance(each, ast.Name) and each.id == unknown[1]]
        node = min(names, key=lambda each: abs(each.lineno - line), default=None)
    elif used := _NOT_CALLED.match(diagnosis):
        node = _find_name(function, line, used["name"] or used["constant"])
    elif _SET_ELEMENT.match(diagnosis):
        node = next((each for each in _within(function) if isinstance(each, ast.stmt) and each.lineno == line), None)
    elif makes := _makes_container if diagnosis == NOT_ALLOCATED else _VALUES.get(diagnosis):
        node = _find_made(function, line, makes)
    else:
        return None
    if node is None:
        return None
    first: int = node.lineno  # type: ignore[attr-defined]
    return Statement(first, None if isinstance(node, ast.stmt) else columns_of(node, filename, first))


def lines_of_assignments(message: str, filename: str, line: int) -> list[int]:
    """Return the lines that assign the variable of two types that *message* is about, in the function with a *line* of
    a file; none for another message."""
    unified, function = _TWO_TYPES.match(message), function_around(filename, line)
    return [each.lineno for each in _find_assignments(function, unified[1])] if unified and function else []


def _find_assignments(function: ast.FunctionDef, name: str) -> list[ast.stmt]:
    statements = [each for each in _within(function) if isinstance(each, ast.stmt) and name in _assigned(each)]
    return sorted(statements, key=lambda each: each.lineno)


def calls_itself(filename: str, line: int) -> bool:
    """Return whether the function with a *line* of a file calls itself."""
    function = function_around(filename, line)
    return function is not None and any(_is_call_of(each, function.name) for each in _within(function))


def find_method_call(filename: str, line: int, name: str) -> ast.Call | None:
    """Return the call of the attribute *name* in a *line* of a file; ``None`` if that is not called there."""
    called = (each for each in nodes_of(filename) if isinstance(each, ast.Call))
    at_line = (each for each in called if each.lineno <= line <= (each.end_lineno or 0))
    return next((each for each in at_line if isinstance(each.func, ast.Attribute) and each.func.attr == name), None)


def _find_name(function: ast.FunctionDef, line: int, name: str) -> ast.AST | None:
    """Return where *function* has the object *name* without calling it, nearest to a *line*; ``None`` if it has not."""
    nodes = [*_within(function)]
    called = [each.func for each in nodes if isinstance(each, ast.Call)]
    named = [each for each in nodes if name in _names(each) and each not in called]
    return min(named, key=lambda each: abs(each.lineno - line), default=None)  # type: ignore[attr-defined]


def _names(node: ast.AST) -> tuple[str, ...]:
    """Return what a name, an attribute or an item calls the object that it is."""
    index = node.slice if isinstance(node, ast.Subscript) else None
    item = index.value if isinstance(index, ast.Constant) and isinstance(index.value, str) else ""
    return getattr(node, "attr", ""), getattr(node, "id", ""), item


def _is_call_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _find_recursion(function: ast.FunctionDef, line: int) -> ast.AST | None:
    """Return the call in *function* that leads back to it: on a *line*, where the front end names that of a call."""
    own = next((each for each in _within(function) if _is_call_of(each, function.name)), None)
    on_line = (each for each in _within(function) if isinstance(each, ast.Call) and each.lineno == line)
    return own or next(on_line, None)


def _within(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a *function* in the order of its lines, without those of functions in it."""
    pending: list[ast.AST] = [*reversed(function.body)]
    while pending:
        yield (node := pending.pop())
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            pending += reversed([*ast.iter_child_nodes(node)])


def _find_made(function: ast.FunctionDef, line: int, makes: Callable[[ast.AST], bool]) -> ast.AST | None:
    """Return what *makes* the value that a *line* of *function* uses: in it, or where its variables are assigned."""
    statements = [each for each in _within(function) if isinstance(each, ast.stmt)]
    pending = [each for each in reversed(statements) if each.lineno <= line <= (each.end_lineno or 0)][:1]
    if not pending:  # the front end names the function alone
        return next(filter(makes, _within(function)), None)
    seen: set[str] = set()
    while pending:
        nodes = [*_own_nodes(pending.pop(0))]
        if made := next(filter(makes, nodes), None):
            return made
        used = {each.id for each in nodes if isinstance(each, ast.Name)} - seen
        seen |= used
        pending += [each for each in statements if used & _assigned(each)]
    return None


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a *statement* without those of statements in it."""
    pending: list[ast.AST] = [statement]
    while pending:
        yield (node := pending.pop())
        inner = [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.stmt)]
        pending += reversed(inner)


def _assigned(statement: ast.stmt) -> set[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For)):
        targets = [statement.target]
    return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name) and _is_set(each)}


def _is_set(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)  # and not the array of which an element is
