# SPDX-License-Identifier: BSD-2-Clause
"""Variables that the host sets: whether those of a link have names of their own, and whether C++ declares them so.

The linker compares nothing: a variable that C++ declares in another memory, or as a pointer, is read from wrong
addresses, and can crash the linker.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable

from ..inputs import kinds
from ..inputs.link_input import LinkInput, VariableSource
from .errors import LinkError, link_error
from .link_plan import LinkPlan, PlannedInput

_WRONG = re.compile(r'static assertion failed with "(\w+) is (.*?): it has (?:(\d+) bytes|elements of another type)"')
_UNDEFINED = re.compile(r"Unresolved extern variable '([^']+)'")
_UNDECLARED = re.compile(r'error: identifier "(\w+)" is undefined')
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BRACE = re.compile(r'(extern\s*"C(?:\+\+)?"\s*)?\{|\}')
_SPACES = ("managed", "constant", "device")  # managed variables may be __device__ too
_SPACE = "numba_cuda_autolink_variables"
_INTEGERS = [f"{sign}{each}" for sign in ("", "unsigned ") for each in ("short", "int", "long", "long long")]
# The size of an array without one is not known. Where the unit has no such variable, "none" is found.
_SIZES = """
namespace $space {
struct none {};
template <class t> struct bytes { enum { is = sizeof(t) }; };
template <> struct bytes<none> { enum { is = 0 }; };
template <class t> struct bytes<t&> : bytes<t> {};
template <class t> struct bytes<t[]> { enum { is = 0 }; };
// The bytes of a floating-point number, 1 of an integer, and 0 of what may stand for anything.
template <class t> struct number { enum { is = 0 }; };
template <class t> struct number<const t> : number<t> {};
template <class t> struct number<volatile t> : number<t> {};
template <class t> struct number<const volatile t> : number<t> {};
template <> struct number<float> { enum { is = 4 }; };
template <> struct number<double> { enum { is = 8 }; };
INTEGERS
template <class t> struct element { typedef t type; };
template <class t> struct element<t&> : element<t> {};
template <class t> struct element<t[]> : element<t> {};
template <class t, decltype(sizeof(0)) n> struct element<t[n]> : element<t> {};
template <class t, int n> struct has {
    enum { found = number<typename element<t>::type>::is, is = found == 0 || n == 0 || int(found) == n };
};
}
""".replace("INTEGERS", "\n".join(f"template <> struct number<{each}> {{ enum {{ is = 1 }}; }};" for each in _INTEGERS))
_SIZE = """
namespace $space { extern __device__ none $name; }
using namespace $space;
#line 1 "autolink.Variable"
static_assert($space::bytes<decltype((::$name))>::is % $bytes == 0 && $space::bytes<decltype((::$name))>::is <= $bytes,
              "$name is $described: it has $bytes bytes");
static_assert($space::has<decltype((::$name)), $number>::is, "$name is $described: it has elements of another type");
"""


def check_variables(plan: LinkPlan) -> None:
    """Raise `LinkError` if two variables of *plan* have one name, or a source declares one in another memory."""
    by_name: dict[str, tuple[str, VariableSource]] = {}
    for origin, variable in plan.variables:
        first_by, first = by_name.setdefault(variable.memory.name, (origin, variable))
        if first is not variable:
            raise link_error(
                plan,
                f"two variables have the name {first.memory.name!r}",
                f"first by: {first_by}, {first.memory.type}",
                f"again by: {origin}, {variable.memory.type}",
                "what to do: give each a name of its own (autolink.symbol makes one of what distinguishes them), or let"
                " the objects return the same Variable",
            )
    for planned in plan.inputs:
        if planned.input.kind is kinds.CUDA and planned.input.variable is None:
            for _, variable in plan.variables:
                _check_space(plan, planned, variable)


def with_variables_checked(source: LinkInput, variables: Iterable[VariableSource]) -> LinkInput:
    """Return a CUDA C++ *source* with assertions for each of *variables* that it declares: size and type are right."""
    text = source.code.decode()
    declared = [each.memory.type for each in variables if extern_declaration(text, each.memory.name) is not None]
    if not declared:
        return source
    added = [_SIZES.replace("$space", _SPACE)]
    for each in declared:
        number = each.dtype.itemsize if each.dtype.kind == "f" else int(each.dtype.kind in "iu")
        # What has one byte may be memory for anything; numbers of 16 bits have several names.
        number = number if each.dtype.itemsize > 2 else 0
        values = {"$space": _SPACE, "$name": each.name, "$bytes": str(each.nbytes), "$described": str(each)}
        values["$number"] = str(number)
        added.append(functools.reduce(lambda text, name: text.replace(name, values[name]), values, _SIZE))
    return dataclasses.replace(source, code="\n".join([text, *added]).encode())


def declaration_error(plan: LinkPlan, planned: PlannedInput, log: str) -> LinkError | None:
    """Return the error if NVRTC's *log* says that a source declares a variable otherwise than it is, or ``None``."""
    found = _WRONG.search(log)
    if found is None:
        return None
    name, described, size = found.groups()
    declared = extern_declaration(planned.input.code.decode(), name)
    return link_error(
        plan,
        f"{name!r} is declared with another {'size' if size else 'type'} than it has",
        f"declared by: {planned}{f', line {declared[1]}' if declared else ''}",
        f"expected: {described}{f', {size} bytes' if size else ''}",
        "what to do: declare it as the Variable is: an array as an array, not as a pointer (Variable.declaration is the"
        " text)",
        log=log,
        shown="",
    )


def undeclared_variable(plan: LinkPlan, log: str) -> str:
    """Return what to do if NVRTC's *log* says that a source uses a variable of *plan* without a declaration."""
    found = _UNDECLARED.search(log)
    for _, variable in plan.variables:
        if found is not None and variable.memory.name == found[1]:
            return f"declare {found[1]!r} in the source: Variable.declaration is the text"
    return ""


def undefined_variable(log: str) -> str | None:
    """Return the first undefined variable that the linker's *log* names, or ``None``. With LTO that is a warning: the
    linker makes a variable of zeros."""
    found = _UNDEFINED.search(log)
    return found[1] if found else None


def extern_declaration(text: str, name: str) -> tuple[str, int] | None:
    """Return the specifiers of the ``extern`` declaration of *name* in C++, and its line; ``None`` without one."""
    if name not in text:
        return None
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    for found in re.finditer(rf"(?:^|[;{{}}])([^;{{}}]*\bextern\b[^;{{}}()]*?)\b{name}\b\s*[\[;,]", text):
        if _is_at_file_level(text[: found.start(1)]):
            return found[1], text.count("\n", 0, found.end()) + 1
    return None


def _is_at_file_level(before: str) -> bool:
    """Return whether what follows is in no namespace, class or function: in blocks of ``extern "C"`` at most."""
    is_linkage: list[bool] = []
    for brace in _BRACE.finditer(before):
        if brace[0] != "}":
            is_linkage.append(brace[1] is not None)
        elif is_linkage:
            is_linkage.pop()
    return all(is_linkage)


def _check_space(plan: LinkPlan, planned: PlannedInput, variable: VariableSource) -> None:
    found = extern_declaration(planned.input.code.decode(), variable.memory.name)
    if found is None:
        return
    specifiers, line = found
    declared = next((space for space in _SPACES if f"__{space}__" in specifiers), None)
    expected = variable.memory.type
    if declared not in (None, expected.space):
        raise link_error(
            plan,
            f"{expected.name!r} is declared in another memory than it is in",
            f"declared by: {planned}, line {line}",
            f"got: __{declared}__",
            f"expected: __{expected.space}__, of the variable {expected}",
            f"what to do: declare it extern __{expected.space}__, or make the Variable with space={declared!r}",
        )
