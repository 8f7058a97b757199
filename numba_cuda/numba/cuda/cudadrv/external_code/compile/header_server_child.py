# SPDX-License-Identifier: BSD-2-Clause
"""The child process of ``header_server``: precompile headers once, and compile with them in a fork for each unit.

To fork takes a while, as the end of a fork does, which frees a copy of the headers: neither delays a reply.

NVRTC maps precompiled headers to the address at which they were made, which is free only in the process that made them
and in its forks. It imports nothing of this package or of Numba.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

# Templates are instantiated in the same order as without precompiled headers, so that the code is the same.
_SAME_CODE = {"instantiate_templates_in_pch": False}
_SIZE = 8  # bytes of a number that says how many follow


class _Server:
    path = ""  # of the precompiled headers, whose file has no other name
    fork: _Fork | None = None  # which waits for a unit
    ended: _Fork | None = None  # which has compiled one


def precompile(code: str, name: str, options: dict[str, Any], folder: str, heap: int) -> dict[str, Any]:
    """Precompile the headers that *code* includes, in *folder*, which is removed. NVRTC may use *heap* bytes for them.
    Return ``is_ready``: whether that succeeded, with nothing to say of the headers."""
    from cuda.bindings import nvrtc

    path = os.path.join(folder, "headers.pch")
    given = _nvrtc().program_options(name, {**options, **_SAME_CODE, "create_pch": path})
    flags = given.as_bytes("nvrtc")
    try:
        results = [nvrtc.nvrtcSetPCHHeapSize(heap)[0]]
        result, program = nvrtc.nvrtcCreateProgram(code.encode(), name.encode(), 0, [], [])
        results += [result, *nvrtc.nvrtcCompileProgram(program, len(flags), flags)]
        results += nvrtc.nvrtcGetPCHCreateStatus(program)
        result, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        results += [result, *nvrtc.nvrtcGetProgramLog(program, log)]
        messages = log.decode(errors="replace").strip("\0\n ").splitlines()
        is_quiet = len(messages) == 1 and messages[0].endswith(f'creating precompiled header file "{path}"')
        if not is_quiet or any(result != nvrtc.nvrtcResult.NVRTC_SUCCESS for result in results):
            return {"is_ready": False}
        _Server.path = f"/proc/self/fd/{os.open(path, os.O_RDONLY)}"  # for as long as this process runs
        _Server.fork = _Fork()
        return {"is_ready": True}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Fork:
    """A fork of this process that waits for a unit to compile, so that the time to fork is not that of a request."""

    def __init__(self) -> None:
        units, self._unit = os.pipe()
        self._made, made = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._unit)
            try:
                with os.fdopen(units, "rb") as pipe:
                    unit = pipe.read()
                if unit:  # else the server has ended
                    data = _compiled(json.loads(unit))
                    os.write(made, len(data).to_bytes(_SIZE, "little"))
                    with os.fdopen(made, "wb") as pipe:
                        pipe.write(data)
            finally:
                os._exit(0)
        os.close(units)
        os.close(made)

    def send(self, content: dict[str, Any]) -> None:
        """Send the unit to compile."""
        with os.fdopen(self._unit, "wb") as pipe:
            pipe.write(json.dumps(content).encode())

    def received(self) -> bytes:
        """Return what `_compiled` returned, before the fork has ended; nothing if it failed."""
        with os.fdopen(self._made, "rb") as pipe:
            size = int.from_bytes(pipe.read(_SIZE), "little")
            data = pipe.read(size)
        return data if len(data) == size else b""

    def wait(self) -> None:
        """Wait until it has ended."""
        os.waitpid(self._pid, 0)


def compile_in_fork(content: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
    """Compile a unit, given as for `nvrtc.run_nvrtc`, in a fork. Return ``names`` and the code, or nothing at all if it
    does not compile, NVRTC says anything of it, or the precompiled headers were not used."""
    assert _Server.fork is not None
    if _Server.ended is not None:
        _Server.ended.wait()
    fork = _Server.ended = _Server.fork
    fork.send(content)
    _Server.fork = _Fork()  # while that one compiles
    names, _, made = fork.received().partition(b"\n")
    return ({"names": json.loads(names)}, [made]) if names else ({}, [])


def _compiled(content: dict[str, Any]) -> bytes:
    nvrtc = _nvrtc()
    options = {**content.pop("options"), **_SAME_CODE, "use_pch": _Server.path}
    try:
        compiled = nvrtc.run_nvrtc(**content, options=options)
    except nvrtc.CompileError:
        return b""
    used = f'using precompiled header file "{_Server.path}"'
    messages = compiled.log.strip().splitlines()
    if len(messages) != 1 or not messages[0].endswith(used):
        return b""
    return json.dumps(compiled.names).encode() + b"\n" + compiled.code


def _nvrtc() -> Any:
    """Return the module ``nvrtc`` next to this file."""
    name = "numba_cuda_autolink_nvrtc"
    if name not in sys.modules:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nvrtc.py")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def answer(content: dict[str, Any], blobs: Sequence[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Answer a request: to ``precompile`` headers, or to ``compile`` with them."""
    if "precompile" in content:
        return precompile(**content["precompile"]), []
    return compile_in_fork(content["compile"])
