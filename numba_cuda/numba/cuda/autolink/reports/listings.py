# SPDX-License-Identifier: BSD-2-Clause
"""What code became: the lines of sources with the machine code that comes from them, as NVIDIA's ``nvdisasm`` reads
it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import linecache
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.ltoir_symbols import PROBE_SYMBOLS, ptx_of_ltoir

from numba_cuda_autolink.given_sources import find_source

from ..function_code.build_record import BuildFacts
from . import formatting
from .machine_code import Instruction, as_text
from .records import CodeReport, LineReport, ListingReport

_LONGEST = 200  # lines of a source that is shown whole; of a header, the parts with machine code are
_NEAR = 2  # lines around one with machine code
_WITHOUT_CODE = (
    "No machine code is known to come from these lines: that of a function without line information,"
    " cuda.jit(lineinfo=True), is at the line of the call"
)
_IN_OTHERS = "The machine code of these lines is at the lines of the functions that they call"
# What the link that makes PTX of LTO-IR adds to it: a kernel with a table of the functions.
_PROBE = re.compile(
    rf"^//.*\n|^\s*// \.globl\s+{PROBE_SYMBOLS[0]}\n|^\.global [^;]*\b{PROBE_SYMBOLS[1]}\b[^;]*;\n"
    rf"|^\.visible \.entry {PROBE_SYMBOLS[0]}\([^)]*\)\s*\{{[^}}]*\}}\n",
    re.MULTILINE,
)


def listings_of(
    facts: BuildFacts,
    codes: Sequence[tuple[CodeReport, LinkInput | None, tuple[str, bytes] | None]],
    instructions: Sequence[Instruction] | None,
) -> tuple[ListingReport, ...]:
    """Return the listings of the functions in Python that lead to calls, of each of the linked *codes*, which come with
    what the object returned and with kind and bytes of what the linker was given, and of the other files that machine
    code comes from: that of the *instructions* of the result."""
    written = [[] if code.own else _text(source) for code, source, _ in codes]
    names = [_names(code) if text else set() for (code, *_), text in zip(codes, written, strict=True)]
    placed, unplaced = _by_place(instructions, set().union(*names))
    inlined_at = {place for each in instructions or () for place in each.places}

    def python_lines(path: str, first: int | None) -> tuple[tuple[LineReport, ...], str]:
        """Return the lines of the function that begins at line *first*, and why they have no machine code."""
        lines = _python_lines(path, first, placed.get(path, {}))
        if not placed or not lines or any(line.sass for line in lines):
            return lines, ""
        return lines, _IN_OTHERS if any((path, line.number) in inlined_at for line in lines) else _WITHOUT_CODE

    found, shown = [], set[tuple[str | None, int]]()
    for function in facts.graph.functions:
        lines, note = python_lines(function.filename or "", function.line)
        shown |= {(function.filename, line.number) for line in lines}
        found.append(ListingReport(function.name, lines, note=note))
    titles = formatting.titles([code for code, *_ in codes], facts.calls)
    for (code, source, linked), title, text, of_code in zip(codes, titles, written, names, strict=True):
        python = source.python if source is not None else None
        if python is not None and (python.path, python.line) not in shown:
            shown.add((python.path, python.line))
            lines, note = python_lines(python.path, python.line)
            found.append(ListingReport(title, lines, _ptx(code, linked, facts.target.arch), note=note))
        elif not code.own:
            path = next((path for path in placed if os.path.basename(path) in of_code), "")
            lines = _numbered(text, placed.pop(path, {}))
            rest = [each for name in code.defines or () for each in unplaced.pop(name, ())]
            found.append(ListingReport(title, lines, _ptx(code, linked, facts.target.arch), _sass(rest)))
    found[0] = dataclasses.replace(found[0], sass=_sass([each for some in unplaced.values() for each in some]))
    for path, machine_code in placed.items():
        if machine_code:
            found.append(_of_file(path, machine_code, facts.given_texts))
    return tuple(listing for listing in found if listing.lines or listing.ptx or listing.sass)


def _of_file(
    path: str, machine_code: Mapping[int, Sequence[str]], given_texts: Sequence[tuple[str, tuple[str, int]]]
) -> ListingReport:
    """Return the lines with *machine_code* of a file; of one that the cache made of a text in a Python file, that file
    with the first of its lines."""
    lines = linecache.getlines(path)
    shown, text = _numbered(lines, machine_code, longest=0), "".join(lines).rstrip("\n")
    for given, place in given_texts:
        if given.rstrip("\n") == text and (source := find_source(given, place)) is not None:
            file, numbers = source
            moved = [dataclasses.replace(line, number=numbers[min(line.number, len(numbers)) - 1]) for line in shown]
            return ListingReport(f"{file}:{numbers[0]}", tuple(_joined(moved)))
    return ListingReport(path, shown)


def _joined(lines: Sequence[LineReport]) -> Iterator[LineReport]:
    """Yield *lines*, those that one line of a Python file has as one."""
    for number, some in itertools.groupby(lines, lambda line: line.number):
        same = list(some)
        sass = tuple(each for line in same for each in line.sass)
        yield LineReport(number, "\n".join(line.text for line in same), sass)


def _names(code: CodeReport) -> set[str]:
    return {os.path.basename(each.name) for each in (code, *code.parts)}


def _by_place(
    instructions: Sequence[Instruction] | None, given: Collection[str]
) -> tuple[dict[str, dict[int, list[str]]], dict[str, list[Instruction]]]:
    """Return the text of instructions by file and line, and those without a line by function. Of the lines that an
    instruction was inlined through, the innermost counts whose text can be shown: that of a file, or of a source that
    was *given* under its name. The generated text around a call is neither."""
    can_be_shown = functools.cache(lambda path: os.path.basename(path) in given or bool(linecache.getlines(path)))
    placed = defaultdict[str, dict[int, list[str]]](dict)
    unplaced = defaultdict[str, list[Instruction]](list)
    for each in instructions or ():
        if place := next((place for place in each.places if can_be_shown(place[0])), None):
            placed[place[0]].setdefault(place[1], []).append(each.text.strip())
        else:
            unplaced[each.function].append(each)
    return dict(placed), dict(unplaced)


def _python_lines(
    filename: str | None, first: int | None, machine_code: dict[int, list[str]]
) -> tuple[LineReport, ...]:
    """Return the lines of the function that begins at line *first*, with their part of *machine_code*, which is taken
    out; none if the file was edited since the build."""
    lines = linecache.getlines(filename)[first - 1 :] if filename and first else []
    try:
        block = inspect.getblock(lines) if lines else []
    except (SyntaxError, IndentationError, IndexError):
        return ()
    return tuple(
        LineReport(number, text.rstrip(), tuple(machine_code.pop(number, ())))
        for number, text in enumerate(block, first or 1)
    )


def _text(source: LinkInput | None) -> list[str]:
    """Return the lines of a source; none of one that only wraps what its prologue declares."""
    if source is None or source.kind is not kinds.CUDA or source.options.prologue:
        return []
    return source.code.decode("utf-8", "replace").splitlines()


def _numbered(
    lines: Sequence[str], machine_code: Mapping[int, Sequence[str]], longest: int = _LONGEST
) -> tuple[LineReport, ...]:
    """Return *lines* with their machine code; of more than *longest* those with machine code, and some around them."""
    shown = list(range(1, len(lines) + 1))
    if len(lines) > longest and machine_code:
        near = {line + distance for line in machine_code for distance in range(-_NEAR, _NEAR + 1)}
        shown = [number for number in shown if number in near]
    numbers = [*shown, *(number for number in sorted(machine_code) if number > len(lines))]
    text = dict(enumerate(lines, 1))
    return tuple(LineReport(n, text.get(n, "").rstrip(), tuple(machine_code.get(n, ()))) for n in numbers)


def _sass(instructions: list[Instruction]) -> str | None:
    return as_text(instructions) or None


def _ptx(code: CodeReport, linked: tuple[str, bytes] | None, arch: str) -> str | None:
    kind, content = linked if linked is not None else ("", b"")
    if kind == kinds.PTX.name:
        return content.decode("utf-8", "replace").rstrip("\0")
    if kind != kinds.LTO_IR.name or not code.defines:
        return None
    ptx = ptx_of_ltoir([content], code.defines, arch)
    return None if ptx is None else _PROBE.sub("", ptx.decode("utf-8", "replace").rstrip("\0")).strip()
