# SPDX-License-Identifier: BSD-2-Clause
"""What two parts of a link define: where each does so, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from numba_cuda_autolink import mangled_names
from numba_cuda_autolink.given_sources import find_in_given
from numba_cuda_autolink.source_locations import shown_file

from ..compile.programs import header_files
from ..inputs import kinds
from ..link.duplicate_symbols import Duplicate
from ..link.linker_input import LinkJob, Part
from ..plan.link_plan import LinkError, PlannedInput, link_error
from ..platform.target import Target

_OF_PYTHON = (kinds.LTO_IR, kinds.PTX, kinds.CUBIN)  # which cuda.compile_all returns, with what the function calls


def explain_duplicate(job: LinkJob, duplicate: Duplicate, log: str = "") -> LinkError:
    """Return the error for a symbol that two parts define, of which the linker may have said so in its *log*."""
    planned = [duplicate.first.planned, duplicate.second.planned]
    return _error(job, duplicate, "is defined twice", _remedy(job, duplicate.symbol, planned), log)


def explain_difference(job: LinkJob, duplicate: Duplicate, form: str) -> LinkError:
    """Return the error for a symbol that two parts define for each other, and not alike in code of the kind *form*."""
    planned = [each.planned for each in (duplicate.first, duplicate.second) if each.planned is not None]
    return _error(job, duplicate, "is defined in two different ways", _make_equal(planned, form))


def _error(job: LinkJob, duplicate: Duplicate, what: str, remedy: Iterator[str], log: str = "") -> LinkError:
    symbol, first, second = duplicate
    return link_error(
        job.plan,
        f"{mangled_names.readable(symbol)!r} {what}",
        *mangled_names.mangled_lines(symbol),
        f"first by: {first.origin}{_find_definition(first, symbol, job.plan.target)}",
        f"again by: {second.origin}{_find_definition(second, symbol, job.plan.target)}",
        *remedy,
        log=log,
    )


def _remedy(job: LinkJob, symbol: str, planned: Sequence[PlannedInput | None]) -> Iterator[str]:
    """Yield what to do, after what it follows from."""
    sources = [each for each in planned if each is not None and each.input.kind is kinds.CUDA]
    if any(each.input.variable is not None for each in sources):
        yield "what to do: declare it extern in C++: the Variable defines it"
    elif symbol in job.kernel_code.sites or len(sources) < len(planned):
        compiled = any(each is not None and each.input.kind in _OF_PYTHON for each in planned)
        yield (
            "what to do: give the two functions different names (put what distinguishes them, such as sizes and types,"
            " into the symbol), or let both have equal code: equal code is linked once"
            + "; for a Python function, autolink.device_function(f, *argtypes)"
            * compiled
        )
    else:
        first, second = ((each.members or (each,))[0].input.options for each in sources)
        if first.unit == second.unit != "":
            yield from first.list_differences(second)
            if first.prologue != second.prologue:
                yield "prologue: two different texts"
            yield (
                f"what to do: make these equal: only then are the sources of the unit {first.unit!r} compiled together,"
                " and a header that both include defines it once"
            )
        else:
            yield (
                "what to do: give the two different names, or namespaces; if a header that both include defines it,"
                " make it inline there, or let one source include both: one autolink.cxx(...), or CUDASource(...,"
                " unit='a name') with equal options"
            )


def _make_equal(planned: Sequence[PlannedInput], form: str) -> Iterator[str]:
    """Yield how the sources of two parts are compiled differently, and what to do."""
    inputs = [(each.members or (each,))[0].input for each in planned]
    if all(each.kind is kinds.CUDA for each in inputs):
        yield from inputs[0].options.list_differences(inputs[1].options)
    with_lto = "" if form == kinds.LTO_IR.name else "; or link with LTO, which knows what differs by its compiler alone"
    yield (
        "what to do: the linker would take one for both: give each a name or namespace of its own, or let one library,"
        " one autolink.cxx(...), have both callers; if both mean one text, compile it with equal macros and options"
        f"{with_lto}"
    )


def _find_definition(part: Part, symbol: str, target: Target) -> str:
    """Return ``" at file:line"``, where the source of a *part*, or a header that it reads, first names *symbol* as what
    it defines; empty if that is not known."""
    if part.planned is None or part.planned.input.kind is not kinds.CUDA:
        return ""
    pattern = re.compile(rf"[\w>&*]\s+[&*]*(?:\w+::)*{re.escape(mangled_names.base_name(symbol))}\s*[({{;=\[]")
    sources = [each.input for each in part.planned.members or (part.planned,)]
    if found := find_in_given("\n".join(source.text for source in sources), pattern):
        return f" at {shown_file(found[0])}:{found[1]}"
    for path, text in header_files(part.planned.input, target, with_toolkit=False):
        lines = enumerate(text.splitlines(), 1)
        if number := next((number for number, line in lines if pattern.search(line)), 0):
            return f" at {shown_file(path)}:{number}"
    return ""
