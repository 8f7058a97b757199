# SPDX-License-Identifier: BSD-2-Clause
"""Call NVRTC. This file is also the script of a child process, so it imports nothing of this package or of Numba.

Such a child also makes precompiled headers, in a fork of itself at the lowest priority: no request waits for it. Files
of that kind are only valid at the address where the child's NVRTC has its heap, which a fork has at the same place.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

_HEAP = 768 << 20  # bytes of addresses: the headers of CUB take 300 MB, most of them never touched
_LEAST_FREE = 2 << 30  # bytes on the disk on which precompiled headers are written
_REMARK = re.compile(r'(?m)^"[^"\n]*": (?:using|creating) precompiled header file "[^"\n]*"\n')
_PR_SET_PDEATHSIG = 1

_to_precompile: list[tuple[str, dict[str, Any]]] = []  # files, and what is to be in them
_heaps: list[int] = []  # the size of NVRTC's heap for precompiled headers, once it is set


class CompileError(RuntimeError):
    """NVRTC rejected a CUDA C++ source; ``log`` is all that NVRTC printed, and the message shows the first part."""

    def __init__(self, name: str, log: str):
        from ..diagnostics.messages import shown_log

        self.log = log.replace("\0", "")
        super().__init__(f"{shown_log(name)} does not compile:\n{shown_log(self.log)}")


@dataclass(frozen=True)
class Compiled:
    """A compiled translation unit: its code, NVRTC's log, the headers read, if they were traced, and the lowered names
    of the expressions that were asked for."""

    code: bytes = field(repr=False)
    log: str
    headers: tuple[str, ...]
    names: dict[str, str] = field(default_factory=dict)


def run_nvrtc(
    code: bytes, *, name: str, options: Sequence[str], output: str, traces: str = "", names: Sequence[str] = ()
) -> Compiled:
    """Compile a source called *name* with NVRTC's *options*, and lower the name expressions *names*. Raises
    `RuntimeError` if the code does not compile, or a name means nothing in it.

    With *traces*, an empty folder, NVRTC, 13 or later, reports which headers it reads. Only in a process that does
    nothing else: NVRTC 13.4 has been seen to corrupt memory when it does.
    """
    from cuda.bindings import nvrtc

    traced = [f"--fdevice-time-trace={os.path.join(traces, 'trace.json')}"] if traces else []
    with _program(code, name) as program:
        for each in names:
            _values(nvrtc.nvrtcAddNameExpression(program, each.encode()))
        given = [os.fsencode(option) for option in (*options, *traced)]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
        log = _read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        text = _REMARK.sub("", log.rstrip(b"\0").decode("utf-8", "backslashreplace")).replace("\0", "")
        if result:
            raise RuntimeError(f"{int(result)}: {result.name}, compilation log:\n\n{text}")
        get = f"nvrtcGet{output.upper()}"
        made = _read(getattr(nvrtc, f"{get}Size"), getattr(nvrtc, get), program)
        lowered = [_values(nvrtc.nvrtcGetLoweredName(program, each.encode()))[0] for each in names]
    headers = _traced_headers(traces) if traces else ()
    return Compiled(made, text, headers, dict(zip(names, map(os.fsdecode, lowered), strict=True)))


@contextlib.contextmanager
def _program(code: bytes, name: str) -> Any:
    from cuda.bindings import nvrtc

    (program,) = _values(nvrtc.nvrtcCreateProgram(code, os.fsencode(name), 0, [], []))
    try:
        yield program
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _values(returned: tuple[Any, ...]) -> list[Any]:
    result, *values = returned
    if result:
        raise RuntimeError(f"{int(result)}: {result.name}")
    return values


def _read(size: Callable[[Any], Any], read: Callable[[Any, bytes], Any], program: Any) -> bytes:
    data = bytes(_values(size(program))[0])
    _values(read(program, data))
    return data


def _traced_headers(folder: str) -> tuple[str, ...]:
    files = pathlib.Path(folder).iterdir()  # some versions add a suffix of their own
    events = (event for file in files for event in json.loads(file.read_bytes())["traceEvents"])
    headers = dict.fromkeys(
        event["args"]["detail"] for event in events if event.get("name") == "Processing Header File"
    )
    return tuple(path for path in headers if os.path.isfile(path))  # others are part of NVRTC


def answer(content: dict[str, Any], blobs: Sequence[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Answer as a child process: compile the source in *blobs* with the arguments ``run`` of `run_nvrtc`, and return
    ``log``, ``headers``, ``names`` and the code, or the log of the failure as ``error``. With ``to``, a path, the
    headers that it includes are precompiled after the answer: the file is there once it is whole.

    NVRTC is loaded from ``library``, and runs in ``folder``: the process may have started elsewhere.
    """
    if content["library"]:
        ctypes.CDLL(content["library"])
    if content["folder"]:
        os.chdir(content["folder"])
    _set_heap(content["precompiles"])
    if content["to"]:
        _to_precompile.append((content["to"], content["run"] | {"code": blobs[0]}))
        return {}, []
    try:
        compiled = run_nvrtc(blobs[0], **content["run"])
    except (RuntimeError, ValueError) as error:
        return {"error": f"{error}"}, []
    return {"log": compiled.log, "headers": compiled.headers, "names": compiled.names}, [compiled.code]


def _set_heap(wanted: bool) -> None:
    """Give NVRTC a heap that is large enough for precompiled headers, before it has a smaller one."""
    if _heaps or not wanted:
        return
    from cuda.bindings import nvrtc

    with contextlib.suppress(AttributeError, RuntimeError):  # NVRTC before 12.8
        _values(nvrtc.nvrtcSetPCHHeapSize(_HEAP))
    _heaps.append(_HEAP)


def after_answer() -> None:
    """Begin to precompile what was asked for."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    while _to_precompile:
        file, source = _to_precompile.pop()
        parent = os.getpid()
        if os.fork() == 0:
            try:
                _precompile(parent, file, source)
            finally:
                os._exit(0)


def _precompile(parent: int, file: str, source: dict[str, Any]) -> None:
    """Write a file of precompiled headers, in a fork of the process *parent*, with which it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.nice(19)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    if os.getppid() != parent or shutil.disk_usage(os.path.dirname(file)).free < _LEAST_FREE:
        return
    part = f"{file}.part"
    try:
        run_nvrtc(**source | {"options": [*source["options"], f"--create-pch={part}"]})
        os.rename(part, file)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)
