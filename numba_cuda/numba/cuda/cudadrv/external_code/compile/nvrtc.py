# SPDX-License-Identifier: BSD-2-Clause
"""One call of NVRTC. Run as a script, it is made in a process of its own, which needs nothing of Numba.

The script reads a `CallInput` as JSON from standard input, and writes to standard output the size (8 bytes) of a JSON
object, that object (``log`` and ``headers``, or ``error``) and the code.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any

from cuda.core import Program, ProgramOptions


class CompileError(RuntimeError):
    """NVRTC refused a CUDA C++ source; ``log`` is what it printed."""

    def __init__(self, name: str, log: str):
        self.log = log.replace("\0", "")
        super().__init__(f"{name} does not compile:\n{self.log}")


@dataclass(frozen=True)
class Compiled:
    """What NVRTC made of a translation unit: code, its log, and the headers that it read, where it tells them."""

    code: bytes = field(repr=False)
    log: str
    headers: tuple[str, ...] | None


def run_nvrtc(code: str, name: str, options: dict[str, Any], output: str, *, traces: bool = False) -> Compiled:
    """Compile CUDA C++.

    Parameters
    ----------
    code, name:
        The source, and what messages and ``__FILE__`` call it.
    options:
        Fields of `cuda.core.ProgramOptions`.
    output:
        ``"ltoir"`` or ``"cubin"``.
    traces:
        Whether to have NVRTC 13 or later tell which headers it reads. Not in a process that goes on to do other things:
        NVRTC 13.4 was seen to corrupt its memory with that.

    Raises
    ------
    CompileError
        If the code does not compile.
    """
    options = {option: list(map(_pair, value)) if _is_several(value) else value for option, value in options.items()}
    log = _Log()
    with tempfile.TemporaryDirectory(prefix="numba-cuda-autolink-") as folder:
        if traces:
            options["fdevice_time_trace"] = os.path.join(folder, "trace.json")
        try:
            program = Program(code, "c++", options=ProgramOptions(name=name, **options))
            result = bytes(program.compile(output, logs=log).code)
        except Exception as error:
            raise CompileError(name, str(error)) from error
        return Compiled(result, log.text.replace("\0", ""), _traced_headers(folder) if traces else None)


def _is_several(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _pair(value: Any) -> Any:
    return tuple(value) if _is_several(value) else value  # JSON makes lists of tuples


class _Log:
    """What `Program.compile` writes its log to."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def _traced_headers(folder: str) -> tuple[str, ...]:
    headers: dict[str, None] = {}
    for file in pathlib.Path(folder).iterdir():  # some versions add a suffix of their own
        for event in json.loads(file.read_bytes())["traceEvents"]:
            if event.get("name") == "Processing Header File":
                headers[event["args"]["detail"]] = None
    return tuple(path for path in headers if os.path.isfile(path))  # others are part of NVRTC


def pack(answer: Compiled | CompileError) -> bytes:
    """What the script answers."""
    if isinstance(answer, CompileError):
        return _framed({"error": answer.log})
    return _framed({"log": answer.log, "headers": answer.headers}) + answer.code


def _framed(told: dict[str, Any]) -> bytes:
    text = json.dumps(told).encode()
    return len(text).to_bytes(8, "little") + text


def unpack(name: str, answer: bytes) -> Compiled:
    """The script's answer for the source *name*.

    Raises
    ------
    CompileError
        If that says that the code does not compile.
    """
    size = int.from_bytes(answer[:8], "little")
    told = json.loads(answer[8 : 8 + size])
    if "error" in told:
        raise CompileError(name, told["error"])
    headers = told["headers"]
    return Compiled(answer[8 + size :], told["log"], None if headers is None else tuple(headers))


def _main() -> None:
    try:
        answer: Compiled | CompileError = run_nvrtc(**json.load(sys.stdin))
    except CompileError as error:
        answer = error
    sys.stdout.buffer.write(pack(answer))


if __name__ == "__main__":
    _main()
