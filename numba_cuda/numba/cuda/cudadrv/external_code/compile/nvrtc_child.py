# SPDX-License-Identifier: BSD-2-Clause
"""The script of a child process that calls NVRTC. Each first kernel waits for its start, so it imports little, and
nothing that is installed.

It also makes precompiled headers, in a fork of itself at the lowest priority: no request waits for it. It begins when
no request has come for a moment, or one more has been answered: what follows a compile at once has the cores for
itself. Such files are valid only where NVRTC's heap has the same address, as in a fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
import importlib.util
import json
import os
import re
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

_HEAP = 768 << 20  # bytes of addresses: the headers of CUB take 300 MB, most of them never touched
_MOMENT = 1.0  # seconds without a request, before headers are precompiled
_LEAST_FREE = 2 << 30  # bytes on the disk on which precompiled headers are written
_REMARK = re.compile(r'(?m)^".*": (?:using|creating) precompiled header file "[^"\n]*"\n')
_PR_SET_PDEATHSIG = 1
_USE, LOOKUPS = "--use-pch=", ".lookups"  # an option, and the suffix of the file with what is in the one it names

# Files of precompiled headers, the library, and what is to be in them: asked for in a request, and before it.
_asked: list[tuple[str, str, dict[str, Any]]] = []
_due: list[tuple[str, str, dict[str, Any]]] = []
_lookups: dict[str, Any] = {}  # by library, what notes its lookups, or why nothing can
_heaps: list[int] = []  # the size of NVRTC's heap for precompiled headers, once it is set


def run_nvrtc(
    library: str,
    code: bytes,
    *,
    name: str,
    options: Sequence[str],
    output: str,
    names: Sequence[str] = (),
) -> tuple[bytes, str, dict[str, str]]:
    """Compile a source called *name* with NVRTC's *options*, and lower the name expressions *names*. Return the code,
    NVRTC's log and the lowered names. Raises `RuntimeError` if the code does not compile, or a name means nothing in
    it, and `OSError` if the *library* cannot be loaded."""
    nvrtc = _loaded(library)
    with _program(nvrtc, code, name) as program:
        for each in names:
            _call(nvrtc, "nvrtcAddNameExpression", program, each.encode())
        given = [os.fsencode(option) for option in options]
        result = nvrtc.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
        log = _read(nvrtc, "nvrtcGetProgramLog", program)
        text = _REMARK.sub("", log.rstrip(b"\0").decode("utf-8", "backslashreplace")).replace("\0", "")
        if result:
            raise RuntimeError(f"{_error(nvrtc, result)}, compilation log:\n\n{text}")
        made = _read(nvrtc, f"nvrtcGet{output.upper()}", program)
        lowered = {each: _lowered(nvrtc, program, each) for each in names}
    return made, text, lowered


@functools.cache
def _loaded(library: str) -> ctypes.CDLL:
    """Return the *library*. Its built-ins beside it are loaded first: that of CUDA 13.0's wheel does not look there."""
    folder = os.path.dirname(library)
    for builtins in glob.glob(os.path.join(glob.escape(folder), "libnvrtc-builtins.so.*")) if folder else ():
        with contextlib.suppress(OSError):  # NVRTC says what it misses
            ctypes.CDLL(builtins)
    return ctypes.CDLL(library)


@contextlib.contextmanager
def _program(nvrtc: ctypes.CDLL, code: bytes, name: str) -> Iterator[ctypes.c_void_p]:
    program = ctypes.c_void_p()
    _call(nvrtc, "nvrtcCreateProgram", ctypes.byref(program), code, os.fsencode(name), 0, None, None)
    try:
        yield program
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _call(nvrtc: ctypes.CDLL, function: str, *arguments: Any) -> None:
    if result := getattr(nvrtc, function)(*arguments):
        raise RuntimeError(_error(nvrtc, result))


def _error(nvrtc: ctypes.CDLL, result: int) -> str:
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    return f"{result}: {nvrtc.nvrtcGetErrorString(result).decode()}"


def _read(nvrtc: ctypes.CDLL, function: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _call(nvrtc, f"{function}Size", program, ctypes.byref(size))
    data = ctypes.create_string_buffer(size.value)
    _call(nvrtc, function, program, data)
    return data.raw


def _lowered(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, name: str) -> str:
    found = ctypes.c_char_p()
    _call(nvrtc, "nvrtcGetLoweredName", program, name.encode(), ctypes.byref(found))
    return os.fsdecode(found.value or b"")


def answer(content: dict[str, Any], blobs: Sequence[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Answer as a child process: compile the source in *blobs* with the arguments ``run`` of `run_nvrtc`, and return
    ``log``, ``names``, ``lookups``, and the code with the texts that these number, or the log of the failure as
    ``error``. With ``to``, a path, the headers that it includes are precompiled after the answer: the file is there
    once it is whole.

    NVRTC is loaded from ``library``, and runs in ``folder``: the process may have started elsewhere. Below ``packages``
    are headers that are not the user's own.
    """
    library, run = content["library"], content["run"]
    if content["folder"]:
        os.chdir(content["folder"])
    if content["precompiles"]:
        _set_heap(library)
    if content["to"]:
        _asked.append((content["to"], library, run | {"code": blobs[0]}))
        return {}, []
    lookups = None
    try:
        lookups = _begin_lookups(library, content["packages"], _precompiled(run))
        code, log, names = run_nvrtc(library, blobs[0], **run)
    except (OSError, RuntimeError, ValueError) as error:
        return {"error": getattr(lookups, "refused", "") or f"{error}"}, []
    looked_up, texts = _report(lookups, run)
    if refused := getattr(lookups, "refused", ""):
        return {"error": refused}, []
    return {"log": log, "names": names, "lookups": looked_up}, [code, *texts]


def _precompiled(run: dict[str, Any]) -> list[str]:
    return [option.removeprefix(_USE) for option in run["options"] if option.startswith(_USE)]


def _begin_lookups(library: str, packages: Sequence[str], others: Sequence[str] = ()) -> Any:
    """Have what NVRTC looks up noted; return its `nvrtc_lookups.Lookups`, or why it cannot be noted."""
    if library not in _lookups:
        try:
            slots = _load("import_slots")
            noting = _load("nvrtc_lookups").Lookups
            _lookups[library] = noting(_loaded(library), slots.find_imports, slots.replace_imports)
        except (AttributeError, KeyError, OSError, ValueError) as error:
            _lookups[library] = f"{error}"
    lookups = _lookups[library]
    if not isinstance(lookups, str):
        lookups.begin(packages, others)
    return lookups


def _load(module: str) -> Any:
    """Load a *module* next to this one, which is not in a package here."""
    path = os.path.join(os.path.dirname(__file__), f"{module}.py")
    spec = importlib.util.spec_from_file_location(f"numba_cuda_autolink_{module}", path)
    assert spec is not None and spec.loader is not None
    loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def _report(lookups: Any, run: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
    """Return what a compile looked up: the file of precompiled headers that it used stands for what that read."""
    try:
        if isinstance(lookups, str):
            raise ValueError(lookups)
        for path in _precompiled(run):
            with open(f"{path}{LOOKUPS}", encoding="utf-8") as file:
                lookups.unite(json.load(file))
        report: tuple[dict[str, Any], list[bytes]] = lookups.report(run["name"])
    except (OSError, ValueError) as error:
        return {"unknown": ("NVRTC", f"what it reads cannot be noted: {error}")}, []
    return report


def _set_heap(library: str) -> None:
    """Give NVRTC a heap that is large enough for precompiled headers, before it has a smaller one."""
    if _heaps:
        return
    with contextlib.suppress(AttributeError, OSError, RuntimeError):  # NVRTC before 12.8
        _call(_loaded(library), "nvrtcSetPCHHeapSize", ctypes.c_size_t(_HEAP))
    _heaps.append(_HEAP)


def after_answer(is_idle: Callable[[float], bool]) -> None:
    """Begin to precompile what was asked for: at once if that was before this request, else if none follows it."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    while _due:
        _begin(*_due.pop())
    _due.extend(_asked)
    _asked.clear()
    while _due and is_idle(_MOMENT):
        _begin(*_due.pop())


def _begin(file: str, library: str, source: dict[str, Any]) -> None:
    parent = os.getpid()
    if os.fork() == 0:
        try:
            _precompile(parent, file, library, source)
        finally:
            os._exit(0)


def _precompile(parent: int, file: str, library: str, source: dict[str, Any]) -> None:
    """Write a file of precompiled headers, in a fork of the process *parent*, with which it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.nice(19)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    if os.getppid() != parent or _free_space(os.path.dirname(file)) < _LEAST_FREE:
        return
    part = f"{file}.part"
    try:
        lookups = _begin_lookups(library, ())
        run_nvrtc(library, **source | {"options": [*source["options"], f"--create-pch={part}"]})
        if not isinstance(lookups, str):
            with open(f"{file}{LOOKUPS}", "w", encoding="utf-8") as record:
                json.dump(lookups.report(source["name"])[0], record)
            os.rename(part, file)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def _free_space(folder: str) -> int:
    status = os.statvfs(folder)
    return status.f_frsize * status.f_bavail
