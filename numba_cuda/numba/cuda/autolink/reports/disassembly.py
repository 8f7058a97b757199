# SPDX-License-Identifier: BSD-2-Clause
"""The machine code of a cubin as text, by function and by source file: NVIDIA's ``nvdisasm`` writes it."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

from cuda import pathfinder
from numba.cuda.cudadrv.external_code.formats.mangled_names import readable

_TIMEOUT = 120.0  # seconds
_FUNCTION = re.compile(r"([\w$.]+):\s*")
_FILE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/")
_ADDRESS = re.compile(r"^\s+(/\*[0-9a-f]{4,}\*/)\s+")


@dataclass(frozen=True)
class Instruction:
    """A line of machine code: the function that it is in, and where line information is there, its source."""

    function: str
    text: str
    filename: str | None
    line: int | None


def nvdisasm() -> str | None:
    """Return the path of ``nvdisasm``, of the package ``nvidia-cuda-nvdisasm`` or of a CUDA toolkit, or ``None``."""
    find = getattr(pathfinder, "find_nvidia_binary_utility", None)
    found: str | None = (find("nvdisasm") if find is not None else None) or shutil.which("nvdisasm")
    return found


def disassemble(cubin: bytes, entry_name: str) -> list[Instruction] | None:
    """Return the machine code of *cubin*; ``None`` if there is no ``nvdisasm``, or it refuses the cubin."""
    if (tool := nvdisasm()) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.cubin")
        with open(path, "wb") as file:
            file.write(cubin)
        try:
            done = subprocess.run([tool, "-g", "-c", path], capture_output=True, timeout=_TIMEOUT, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
    return _instructions(done.stdout.decode("utf-8", "replace"), entry_name) if done.returncode == 0 else None


def _instructions(text: str, entry_name: str) -> list[Instruction]:
    function = ""
    place: tuple[str | None, int | None] = None, None
    found = []
    for line in text.splitlines():
        if _INSTRUCTION.match(line):
            shown = _ADDRESS.sub(r"\1 ", line).replace(f"${entry_name}$", "").rstrip()
            found.append(Instruction(function, shown, *place))
        elif file := _FILE.match(line):
            place = file[1], int(file[2])
        elif (label := _FUNCTION.fullmatch(line)) and not label[1].startswith("."):
            function, place = label[1].removeprefix(f"${entry_name}$"), (None, None)
    return found


def as_text(instructions: list[Instruction]) -> str:
    """Return *instructions* as lines, with the name of each function before its own."""
    lines = []
    for function, some in itertools.groupby(instructions, lambda each: each.function):
        lines += [f"// {readable(function)}", *(each.text for each in some)]
    return "\n".join(lines)
