# SPDX-License-Identifier: BSD-2-Clause
"""The machine code of a cubin as NVIDIA's ``nvdisasm`` reads it, with the lines of sources that it comes from."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cuda import pathfinder

from numba_cuda_autolink.mangled_names import readable
from numba_cuda_autolink.source_locations import name_of_file

from .ptx_lines import SECTION, Place, places_by_line

_PADDING = "NOP"
_TIMEOUT = 120.0  # seconds
_SECTION = re.compile(r"\s*\.section\s+\.text\.([\w$.]+)")
_LABEL, _BRANCH = re.compile(r"([\w$.]+):\s*"), ".L_"  # of functions, and what the targets of branches begin with
_FILE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/")
_CALL = re.compile(r"\bCALL\.\S* .*`\((?:\$__internal_\d+_\$)?([\w$.]+)\)")
_ADDRESS = re.compile(r"^\s+(/\*[0-9a-f]{4,}\*/)\s+")


@dataclass(frozen=True)
class Instruction:
    """A line of machine code, and the function that it is in. With line information, *places* are the file and line of
    its source and of the calls that it was inlined through, the innermost first."""

    function: str
    text: str
    places: tuple[Place, ...]


def nvdisasm() -> str | None:
    """Return the path of ``nvdisasm``, of the package ``nvidia-cuda-nvdisasm`` or of a CUDA toolkit, or ``None``."""
    find = getattr(pathfinder, "find_nvidia_binary_utility", None)
    return (find("nvdisasm") if find is not None else None) or shutil.which("nvdisasm")


def disassemble(cubin: bytes, entry_name: str, texts: Sequence[str] = ()) -> list[Instruction] | None:
    """Return the machine code of *cubin*; ``None`` if there is no ``nvdisasm``, or it refuses the cubin. Targets of
    branches have their labels. Where *texts* of PTX have the places of instructions, these count: ptxas loses a place
    whose line has the number of that of its call, and functions that it puts into another's section have *places* only
    there."""
    if (tool := nvdisasm()) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.cubin")
        with open(path, "wb") as file:
            file.write(cubin)
        try:
            done = subprocess.run([tool, "-gi", "-gp", "-c", path], capture_output=True, timeout=_TIMEOUT, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
    if done.returncode != 0:
        return None
    return _instructions(done.stdout.decode("utf-8", "replace"), entry_name, places_by_line(cubin, texts))


def _instructions(text: str, entry_name: str, of_ptx: Mapping[tuple[str, int], tuple[Place, ...]]) -> list[Instruction]:
    function, section, mark, within = "", "", "", f"${entry_name}$"
    places: tuple[Place, ...] = ()
    in_ptx = "", 0
    is_new = is_within = False  # whether the next place is that of other instructions; whether in another's section
    found = []
    for line in text.splitlines():
        if _INSTRUCTION.match(line):
            shown = _ADDRESS.sub(rf"\1 {mark}", line).replace(within, "").rstrip()
            found.append(Instruction(function, shown, of_ptx.get(in_ptx) or (() if is_within else places)))
            is_new, mark = True, ""
        elif file := _FILE.match(line):
            place = file[1], int(file[2])
            if place[0].startswith(SECTION):
                in_ptx = place
            else:
                place = name_of_file(place[0]), place[1]
                places, is_new = (*(() if is_new else places), place), False
        elif begin := _SECTION.match(line):
            section = begin[1]
        elif label := _LABEL.fullmatch(line):
            if not label[1].startswith("."):
                is_within = label[1] != section
                function, places, is_new, in_ptx, mark = label[1].removeprefix(within), (), True, ("", 0), ""
            elif label[1].startswith(_BRANCH) and f"`({label[1]})" in text:
                mark += f"{label[1]}: "
    return [
        each for _, some in itertools.groupby(found, lambda each: each.function) for each in _without_padding([*some])
    ]


def calls_in(instructions: Iterable[Instruction]) -> dict[str, list[tuple[Place, ...]]]:
    """Return the places of the ``CALL`` instructions, by the function that they call."""
    found = defaultdict[str, list[tuple[Place, ...]]](list)
    for each in instructions:
        if call := _CALL.search(each.text):
            found[call[1]].append(each.places)
    return dict(found)


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
