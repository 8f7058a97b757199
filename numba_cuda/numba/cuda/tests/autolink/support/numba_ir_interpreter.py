# SPDX-License-Identifier: BSD-2-Clause
"""Runs a function's Numba IR in Python, before types are inferred."""

from __future__ import annotations

import operator
from typing import Any

from numba.cuda.core import ir


class _Returned(Exception):
    pass


def interpret(func_ir: ir.FunctionIR, *args: Any) -> Any:
    """Return what the function returns for *args*."""
    values: dict[str, Any] = {}
    label: int | None = min(func_ir.blocks)
    try:
        while label is not None:
            label = _run(func_ir.blocks[label], values, args)
    except _Returned as returned:
        return returned.args[0]
    raise AssertionError("the function has no end")


def _run(block: ir.Block, values: dict[str, Any], args: tuple[Any, ...]) -> int | None:
    for statement in block.body:
        if isinstance(statement, ir.Assign):
            values[statement.target.name] = _evaluated(statement.value, values, args)
        elif isinstance(statement, ir.SetItem):
            values[statement.target.name][values[statement.index.name]] = values[statement.value.name]
        elif isinstance(statement, ir.StaticSetItem):
            values[statement.target.name][statement.index] = values[statement.value.name]
        elif isinstance(statement, ir.Jump):
            return statement.target
        elif isinstance(statement, ir.Branch):
            return statement.truebr if values[statement.cond.name] else statement.falsebr
        elif isinstance(statement, ir.Return):
            raise _Returned(values[statement.value.name])
        elif not isinstance(statement, ir.Del):
            raise NotImplementedError(str(statement))
    return None


def _evaluated(value: Any, values: dict[str, Any], args: tuple[Any, ...]) -> Any:
    if isinstance(value, ir.Var):
        return values[value.name]
    if isinstance(value, ir.Arg):
        return args[value.index]
    if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
        return value.value
    given = {name: values[each.name] if isinstance(each, ir.Var) else each for name, each in value._kws.items()}
    if value.op == "call":
        return given["func"](*(values[each.name] for each in value.args))
    if value.op in ("binop", "inplace_binop"):
        return given["fn"](given["lhs"], given["rhs"])
    if value.op == "unary":
        return given["fn"](given["value"])
    if value.op == "iternext":
        element = next(given["value"], _run)
        return element, element is not _run
    simple = {
        "getiter": iter,
        "pair_first": operator.itemgetter(0),
        "pair_second": operator.itemgetter(1),
        "cast": lambda each: each,
    }
    if value.op in simple:
        return simple[value.op](given["value"])
    if value.op == "build_tuple":
        return tuple(values[each.name] for each in value.items)
    if value.op in ("getitem", "static_getitem"):
        return given["value"][given["index"]]
    if value.op == "getattr":
        return getattr(given["value"], value.attr)
    raise NotImplementedError(str(value))
