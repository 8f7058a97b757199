# SPDX-License-Identifier: BSD-2-Clause
"""NVRTC and nvJitLink as random programs use them: with the same differences between results, at next to no cost.

NVRTC runs once for each source, its options and the files that it could read. A link gives a cubin that contains the
digest of everything that the linker was given. The working directory, which NVRTC writes into LTO-IR, is no part of it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numba.cuda.cudadrv.external_code.compile import nvrtc_processes, translation_unit
from numba.cuda.cudadrv.external_code.compile.nvrtc import run_nvrtc
from numba.cuda.cudadrv.external_code.link import checked_link, nvjitlink

# A text without any of these reads no header.
_DIRECTIVES = ("#", "%:", "??=")
# The number of a feature, which is in the name of each of its files and of its C function.
_NUMBER = re.compile(r"\bf(\d+)")


def install(results: Path, program: Path, ran: list[str]) -> None:
    """Use these tools in this process and its children.

    Parameters
    ----------
    results:
        The folder for what NVRTC made, which processes may share.
    program:
        The folder that sources may include files from.
    ran:
        Gets the name of each tool that is called.
    """
    compile_in_child = nvrtc_processes.compile_in_child

    def run(
        code: str, name: str, options: dict[str, Any], output: str, *, traces: str = "", names: Sequence[str] = ()
    ) -> Any:
        def make() -> Any:
            return run_nvrtc(code, name, options, output, traces=traces, names=names)

        ran.append("NVRTC")
        return _remembered(results, program, (code, name, options, output, (traces, *names)), make)

    def child(unit: Any, names: Sequence[str] = (), *, traces: bool = False, kept: Any = None) -> Any:
        ran.append("NVRTC")
        what = unit.code, unit.name, dict(unit.options), unit.output, (traces, *names)
        return _remembered(results, program, what, lambda: compile_in_child(unit, names, traces=traces))

    template = _a_cubin()

    def link_here(parts: Any, options: Any, output: str) -> nvjitlink.Outcome:
        ran.append("nvJitLink")
        given = [(part.kind.name, part.name, _told_apart_by(results, part.code)) for part in parts]
        digest = _digest(repr((given, options, output)).encode())
        return nvjitlink.Outcome(True, code=template + digest.encode())

    translation_unit.run_nvrtc = run
    nvrtc_processes.compile_in_child = child
    checked_link.link_here = link_here
    checked_link.doubted = lambda job: []  # linked in no helper process
    os.fsync = lambda file: None


def _a_cubin() -> bytes:
    code = 'extern "C" __global__ void kernel() {}'
    return run_nvrtc(code, "kernel.cu", {"arch": "sm_90a", "relocatable_device_code": True}, "cubin").code


def _remembered(results: Path, program: Path, what: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    code, name, options, output, _ = what
    reads = any(each in code for each in _DIRECTIVES) or "pre_include" in options
    files = (os.getcwd(), _readable(program, code)) if reads else None
    path = results / _digest(repr((what, files)).encode())
    if path.exists():
        return pickle.loads(path.read_bytes())
    made = make()
    if reads and output == "ltoir":
        others = {key: options[key] for key in options if key != "link_time_optimization"}
        _write(results / f"of {_digest(made.code)}", run_nvrtc(code, name, others, "cubin").code)
    _write(path, pickle.dumps(made))
    return made


def _told_apart_by(results: Path, code: bytes) -> bytes:
    """Return what tells *code* apart: of LTO-IR that was compiled in some working directory, machine code."""
    path = results / f"of {_digest(code)}"
    return path.read_bytes() if path.exists() else code


def _readable(program: Path, code: str) -> Any:
    """Return all files of *program* that compiling *code* may read."""
    number = _NUMBER.search(code)
    return [
        (name, os.readlink(path) if path.is_symlink() else path.read_bytes())
        for path in sorted(program.rglob("*"))
        if path.is_symlink() or path.is_file()
        if (name := str(path.relative_to(program))) and (number is None or number[1] in re.findall(r"\d+", name))
    ]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(path: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    os.replace(file.name, path)
