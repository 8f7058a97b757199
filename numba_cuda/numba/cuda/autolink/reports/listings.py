# SPDX-License-Identifier: BSD-2-Clause
"""What code became: which calls were inlined, and the lines of sources with the machine code that comes from them, as
NVIDIA's ``nvdisasm`` reads it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import linecache
import os
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cuda import pathfinder
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.ltoir_symbols import PROBE_SYMBOLS, ptx_of_ltoir

from numba_cuda_autolink.mangled_names import readable

from ..function_code.build_record import BuildFacts
from . import formatting
from .records import CallReport, CodeReport, FunctionReport, LineReport, ListingReport

_PADDING = "NOP"
_LONGEST = 200  # lines of a source that is shown whole; of a header, the parts with machine code are
_NEAR = 2  # lines around one with machine code
_WITHOUT_CODE = (
    "No machine code is known to come from these lines. A function needs line information of its own,"
    " cuda.jit(lineinfo=True): without it, what was inlined is at the line of the call"
)
# What the link that makes PTX of LTO-IR adds to it: a kernel with a table of the functions.
_PROBE = re.compile(
    rf"^//.*\n|^\s*// \.globl\s+{PROBE_SYMBOLS[0]}\n|^\.global [^;]*\b{PROBE_SYMBOLS[1]}\b[^;]*;\n"
    rf"|^\.visible \.entry {PROBE_SYMBOLS[0]}\([^)]*\)\s*\{{[^}}]*\}}\n",
    re.MULTILINE,
)


def with_inlining(
    calls: Sequence[CallReport],
    codes: Sequence[CodeReport],
    functions: Collection[str],
    reached: Mapping[str, Collection[str]],
) -> tuple[CallReport, ...]:
    """Return *calls* with whether they were inlined: whether what they call, of the linked *codes*, or a function that
    it leads to, as *reached* has them by name, is still one of the *functions* of the result. CUDA's own parts of
    mathematical functions, whose names are reserved, do not count."""
    called = {name for code in codes if code.own for name in code.undefined or ()}
    by_site = defaultdict[str, set[str]](set)
    for piece in (piece for code in codes for piece in code.parts or (code,)):
        for site in piece.brought_by:
            by_site[site].update(piece.defines or ())
    found = []
    for call in calls:
        names = called.intersection(by_site[call.site])
        left = names.intersection(functions)
        known = bool(names) and len(left) in (0, len(names))
        inner = {each for name in names for each in reached.get(name, ())}.intersection(functions) - names
        inner = {each for each in inner if not each.startswith("__")}
        text = tuple(sorted(map(readable, inner))) if known and not left else ()
        found.append(dataclasses.replace(call, inlined=not (left or inner) if known else None, called=text))
    return tuple(found)


def function_reports(sizes: Mapping[str, int], entry_name: str) -> tuple[FunctionReport, ...]:
    names = sorted(sizes, key=lambda name: (name != entry_name, -sizes[name], name))
    return tuple(FunctionReport(readable(name), sizes[name]) for name in names)


def listings_of(
    facts: BuildFacts,
    codes: Sequence[tuple[CodeReport, LinkInput | None, tuple[str, bytes] | None]],
    cubin: bytes,
) -> tuple[ListingReport, ...]:
    """Return the listings of the functions in Python that lead to calls, of each of the linked *codes*, which come with
    what the object returned and with kind and bytes of what the linker was given, and of the other files that machine
    code comes from."""
    texts = [[] if code.own else _text(source) for code, source, _ in codes]
    names = [_names(code) if text else set() for (code, *_), text in zip(codes, texts, strict=True)]
    placed, unplaced = _by_place(disassemble(cubin, facts.entry_name), set().union(*names))
    found = []
    for function in facts.graph.functions:
        lines = _python_lines(function.filename, function.line, placed.get(function.filename or "", {}))
        without = bool(placed) and not any(line.sass for line in lines)
        found.append(ListingReport(function.name, lines, note=_WITHOUT_CODE if without else ""))
    titles = formatting.titles([code for code, *_ in codes], facts.calls)
    for (code, _, linked), title, text, of_code in zip(codes, titles, texts, names, strict=True):
        if not code.own:
            path = next((path for path in placed if os.path.basename(path) in of_code), "")
            lines = _numbered(text, placed.pop(path, {}))
            rest = [each for name in code.defines or () for each in unplaced.pop(name, ())]
            found.append(ListingReport(title, lines, _ptx(code, linked, facts.target.arch), _sass(rest)))
    found[0] = dataclasses.replace(found[0], sass=_sass([each for some in unplaced.values() for each in some]))
    for path, machine_code in placed.items():
        if machine_code:
            found.append(ListingReport(path, _numbered(linecache.getlines(path), machine_code, longest=0)))
    return tuple(listing for listing in found if listing.lines or listing.ptx or listing.sass)


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


_TIMEOUT = 120.0  # seconds
_FUNCTION = re.compile(r"([\w$.]+):\s*")
_FILE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/")
_ADDRESS = re.compile(r"^\s+(/\*[0-9a-f]{4,}\*/)\s+")


@dataclass(frozen=True)
class Instruction:
    """A line of machine code, and the function that it is in. With line information, *places* are the file and line of
    its source and of the calls that it was inlined through, the innermost first."""

    function: str
    text: str
    places: tuple[tuple[str, int], ...]


def nvdisasm() -> str | None:
    """Return the path of ``nvdisasm``, of the package ``nvidia-cuda-nvdisasm`` or of a CUDA toolkit, or ``None``."""
    find = getattr(pathfinder, "find_nvidia_binary_utility", None)
    return (find("nvdisasm") if find is not None else None) or shutil.which("nvdisasm")


def disassemble(cubin: bytes, entry_name: str) -> list[Instruction] | None:
    """Return the machine code of *cubin*; ``None`` if there is no ``nvdisasm``, or it refuses the cubin."""
    if (tool := nvdisasm()) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.cubin")
        with open(path, "wb") as file:
            file.write(cubin)
        try:
            done = subprocess.run([tool, "-gi", "-c", path], capture_output=True, timeout=_TIMEOUT, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
    return _instructions(done.stdout.decode("utf-8", "replace"), entry_name) if done.returncode == 0 else None


def _instructions(text: str, entry_name: str) -> list[Instruction]:
    function = ""
    places: tuple[tuple[str, int], ...] = ()
    is_new = True  # whether the next place is that of other instructions
    found = []
    for line in text.splitlines():
        if _INSTRUCTION.match(line):
            shown = _ADDRESS.sub(r"\1 ", line).replace(f"${entry_name}$", "").rstrip()
            found.append(Instruction(function, shown, places))
            is_new = True
        elif file := _FILE.match(line):
            places = (*(() if is_new else places), (file[1], int(file[2])))
            is_new = False
        elif (label := _FUNCTION.fullmatch(line)) and not label[1].startswith("."):
            function, places = label[1].removeprefix(f"${entry_name}$"), ()
    return [
        each for _, some in itertools.groupby(found, lambda each: each.function) for each in _without_padding([*some])
    ]


def _without_padding(instructions: list[Instruction]) -> list[Instruction]:
    while instructions and _PADDING in instructions[-1].text:
        instructions = instructions[:-1]
    return instructions


def as_text(instructions: list[Instruction]) -> str:
    """Return *instructions* as lines, with the name of each function before its own."""
    lines = []
    for function, some in itertools.groupby(instructions, lambda each: each.function):
        lines += [f"// {readable(function)}", *(each.text for each in some)]
    return "\n".join(lines)
