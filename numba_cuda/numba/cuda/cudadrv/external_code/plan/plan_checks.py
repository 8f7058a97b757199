# SPDX-License-Identifier: BSD-2-Clause
"""Whether link inputs fit the target of a link, as far as their headers show it; and the variables that the host sets:
whether those of a link have names of their own, and whether C++ declares them so.

The linker compares nothing: a variable that C++ declares in another memory, or as a pointer, is read from wrong
addresses, and can crash the linker.
"""

from __future__ import annotations

import dataclasses
import re
import string
from collections.abc import Iterable
from typing import TYPE_CHECKING

from numba_cuda_autolink.printable_texts import number_of

from ..inputs import kinds
from ..inputs.link_input import LinkInput, VariableSource
from ..platform.target import Target
from .link_plan import LinkError, LinkPlan, PlannedInput, link_error

if TYPE_CHECKING:
    from ..formats.containers import Piece


def misfit(link_input: LinkInput, target: Target) -> str:
    """Return why *link_input* does not fit *target*, and what to do; ``""`` if no header shows a misfit."""
    kind, code = link_input.kind.name, link_input.code
    if link_input.kind.is_compiled:
        return ""
    from numba_cuda_autolink.errors import FormatError
    from numba_cuda_autolink.ptx import read_ptx

    from ..formats.containers import pieces, read_lto_ir
    from ..formats.elf import read_elf

    major, minor = target.compute_capability
    sm = major * 10 + minor
    try:
        if kind == "cubin":
            return _cubin_misfit(read_elf(code).sm, sm, target.arch)
        if kind == "PTX":
            ptx = read_ptx(code)
            is_only_for_another = ptx.suffix == "a" and (ptx.sm != sm or target.suffix != "a")
            if ptx.sm > sm or is_only_for_another:
                why = "is newer than" if ptx.sm > sm else "is for that architecture only, not for"
                return f"its .target {ptx.target} {why} {_remedy(target.arch)}"
        if kind == "LTO-IR" and (made_for := read_lto_ir(code).sm or 0) > sm:
            return f"it is LTO-IR for sm_{made_for}, which is newer than {_remedy(target.arch)}"
        if kind in ("fatbin", "object"):
            return _container_misfit(list(pieces(kind, code)), sm, target.arch)
    except FormatError as error:
        return str(error)
    return ""


def _runs_on(cubin_sm: int, target_sm: int) -> bool:
    """Return whether machine code runs, as it does on its own and later minor versions of its major version."""
    return cubin_sm // 10 == target_sm // 10 and cubin_sm <= target_sm


def _cubin_misfit(sm: int | None, target_sm: int, arch: str) -> str:
    if sm is None or _runs_on(sm, target_sm):
        return ""
    first = target_sm // 10 * 10
    runs = f"sm_{target_sm}" if first == target_sm else f"sm_{first} to sm_{target_sm}"
    return (
        f"it is machine code for sm_{sm}, and the kernel is built for {arch}, which runs code for {runs}\n"
        f"  what to do: compile it for {arch} (in the hook: autolink.current_target().arch), or return PTX or LTO-IR"
        " for that architecture or an older one"
    )


def _remedy(arch: str) -> str:
    return (
        f"{arch}, which the kernel is built for\n"
        f"  what to do: compile it for {arch} or an older architecture (in the hook: autolink.current_target().arch)"
    )


def _container_misfit(held: list[Piece], target_sm: int, arch: str) -> str:
    if not held or any(piece.sm is None for piece in held):
        return ""
    found = sorted({(piece.kind, piece.sm or 0) for piece in held})
    if any(_runs_on(sm, target_sm) if kind == "cubin" else sm <= target_sm for kind, sm in found):
        return ""
    listed = ", ".join(f"{kind} for sm_{sm}" for kind, sm in found)
    return (
        f"it holds {listed}: nothing for {arch}, which the kernel is built for\n"
        f"  what to do: compile it for {arch} (nvcc -arch={arch})"
    )


_WRONG = re.compile(r'static assertion failed with "(\w+) is (.*?): it has (?:(\d+) bytes|elements of another type)"')
_UNDEFINED = re.compile(r"Unresolved extern variable '([^']+)'")
_UNDECLARED = re.compile(r'error: identifier "(\w+)" is undefined')
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BRACE = re.compile(r'(extern\s*"C(?:\+\+)?"\s*)?\{|\}')
_SPACES = ("managed", "constant", "device")  # managed variables may be __device__ too
_SIZE = string.Template("""
namespace $space { extern __device__ none $name; }
using namespace $space;
#line 1 "autolink.Variable"
static_assert($space::bytes<decltype((::$name))>::is % $bytes == 0 && $space::bytes<decltype((::$name))>::is <= $bytes,
              "$name is $described: it has $bytes bytes");
static_assert($space::has<decltype((::$name)), $number>::is, "$name is $described: it has elements of another type");
""")


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
    from importlib import resources

    added = [resources.files(__package__).joinpath("variable_assertions.cuh").read_text("utf-8")]
    for each in declared:
        number = each.dtype.itemsize if each.dtype.kind == "f" else int(each.dtype.kind in "iu")
        # What has one byte may be memory for anything; numbers of 16 bits have several names.
        number = number if each.dtype.itemsize > 2 else 0
        values = {"name": each.name, "bytes": each.nbytes, "described": each, "number": number}
        added.append(_SIZE.substitute(values, space="numba_cuda_autolink_variables"))
    return dataclasses.replace(source, code="\n".join([text, *added]).encode())


def declaration_error(plan: LinkPlan, planned: PlannedInput, log: str) -> LinkError | None:
    """Return the error if NVRTC's *log* says that a source declares a variable otherwise than it is, or ``None``."""
    found = _WRONG.search(log)
    if found is None:
        return None
    name, described, size = found.groups()
    code = planned.input.code.decode()
    declared = extern_declaration(code, name)
    return link_error(
        plan,
        f"{name!r} is declared with another {'size' if size else 'type'} than it has",
        f"declared by: {planned}{f', line {declared[1]}' if declared else ''}",
        *([f"got: {code.splitlines()[declared[1] - 1].strip()}"] if declared else []),
        f"expected: {described}{', ' + number_of(int(size), 'byte') if size else ''}",
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
