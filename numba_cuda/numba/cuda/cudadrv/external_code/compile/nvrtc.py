# SPDX-License-Identifier: BSD-2-Clause
"""Call NVRTC. This file is also the script of a child process, so it imports nothing of this package or of Numba."""

from __future__ import annotations

import io
import json
import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cuda.core import Program, ProgramOptions


class CompileError(RuntimeError):
    """NVRTC rejected a CUDA C++ source; ``log`` is what NVRTC printed."""

    def __init__(self, name: str, log: str):
        self.log = log.replace("\0", "")
        super().__init__(f"{name} does not compile:\n{self.log}")


@dataclass(frozen=True)
class Compiled:
    """A compiled translation unit: its code, NVRTC's log, the headers read, if they were traced, and the lowered names
    of the expressions that were asked for."""

    code: bytes = field(repr=False)
    log: str
    headers: tuple[str, ...]
    names: dict[str, str] = field(default_factory=dict)


def program_options(name: str, options: dict[str, Any]) -> ProgramOptions:
    """Return the *options* of a unit called *name*, which may have been sent as JSON: that makes lists of tuples."""
    made = {
        option: [tuple(e) if isinstance(e, list) else e for e in value] if isinstance(value, (tuple, list)) else value
        for option, value in options.items()
    }
    return ProgramOptions(name=name, **made)


def run_nvrtc(
    code: str, name: str, options: dict[str, Any], output: str, *, traces: str = "", names: Sequence[str] = ()
) -> Compiled:
    """Compile a translation unit, given by its fields, and lower the name expressions *names*. Raises `CompileError` if
    the code does not compile, or a name means nothing in it.

    With *traces*, an empty folder, NVRTC, 13 or later, reports which headers it reads. Only in a process that does
    nothing else: NVRTC 13.4 has been seen to corrupt memory when it does.
    """
    options = dict(options)
    log = io.StringIO()
    if traces:
        options["fdevice_time_trace"] = os.path.join(traces, "trace.json")
    try:
        program = Program(code, "c++", options=program_options(name, options))
        try:
            result = program.compile(output, name_expressions=tuple(names), logs=log)
        finally:
            del program  # of which cuda.core prints an error if it is collected with the frames of an exception
    except Exception as error:
        raise CompileError(name, str(error)) from error
    lowered = {given: os.fsdecode(result.symbol_mapping[given]) for given in names}
    headers = _traced_headers(traces) if traces else ()
    return Compiled(bytes(result.code), log.getvalue().replace("\0", ""), headers, lowered)


def _traced_headers(folder: str) -> tuple[str, ...]:
    files = pathlib.Path(folder).iterdir()  # some versions add a suffix of their own
    events = (event for file in files for event in json.loads(file.read_bytes())["traceEvents"])
    headers = dict.fromkeys(
        event["args"]["detail"] for event in events if event.get("name") == "Processing Header File"
    )
    return tuple(path for path in headers if os.path.isfile(path))  # others are part of NVRTC


def answer(content: dict[str, Any], blobs: Sequence[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Answer as a child process: return ``log``, ``headers``, ``names`` and the code, or the log of the failure as
    ``error``."""
    try:
        compiled = run_nvrtc(**content)
    except CompileError as error:
        return {"error": error.log}, []
    return {"log": compiled.log, "headers": compiled.headers, "names": compiled.names}, [compiled.code]
