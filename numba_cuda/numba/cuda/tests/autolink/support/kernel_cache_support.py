# SPDX-License-Identifier: BSD-2-Clause
"""Shared by the tests of cached kernels: programs that run in one process after another, and other scripts that a
process of its own runs.

A program is a folder with the modules ``kernels`` and ``parts``. Each process looks for the kernel in the cache, and
builds and saves it if it is not there, as a launch would, but without a GPU. A kernel is ``loaded`` if it was found and
nothing was compiled or linked, ``linked again`` if other external code was linked to it, and ``built`` if it was not
found.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cache_support import fresh

# One process that has imported numba.cuda, and built a kernel, forks for each run, so that a run does not take seconds.
SERVER = r'''
import atexit, contextlib, gc, hashlib, importlib, io, json, os, sys, tempfile, traceback, warnings

import numba_cuda
from numba import cuda
from numba.cuda import autolink, codegen, config, dispatcher, types
from numba.cuda.autolink.compilation import context as target
from numba.cuda.autolink.kernel_cache import dispatcher_cache, stored_kernel
from numba.cuda.core import sigutils
from numba.cuda.cudadrv import nvvm
from numba.cuda.cudadrv.external_code import pipeline as link_run
from numba.cuda.cudadrv.external_code.link import checked_link
from numba.cuda.cudadrv.external_code.compile import nvrtc_processes
from numba.cuda.cudadrv.external_code.platform import cuda_libraries as toolkit
from numba.cuda.cudadrv.external_code.cache.store import reset_store

ran = []


def spy(module, name, tool):
    original = getattr(module, name)

    def run(*args, **kwargs):
        ran.append(tool)
        return original(*args, **kwargs)

    setattr(module, name, run)


spy(nvrtc_processes, "run_in_child", "NVRTC")
spy(nvvm, "compile_ir", "NVVM")
spy(checked_link, "link_here", "nvJitLink")


def kernel_of(found, wanted, cc):
    """What numba-cuda does for a launch, up to where it needs a GPU."""
    argtypes, _ = sigutils.normalize_signature(eval(wanted) if wanted.startswith("(") else wanted)
    with target.without_device(cc):
        dispatcher._Kernel.bind = lambda kernel: kernel._codelibrary.get_cubin(cc)
        kernel = found.compile(argtypes)
        code = bytes(kernel._codelibrary.get_cubin(cc).code)
    if not found._cache_hits[argtypes]:
        return kernel, "built", code
    return kernel, "linked again" if ran else "loaded", code


def run(folder, names, signature, cc, before):
    cc = tuple(cc)
    config.CACHE_DIR = os.path.join(folder, "numba")
    os.environ["NUMBA_CUDA_AUTOLINK_CACHE_DIR"] = os.path.join(folder, "cache")
    codegen.JITCUDACodegen.magic_tuple = lambda self: ((13, 0), cc)
    sys.path.insert(0, folder)
    log = sys.stderr = io.StringIO()
    exec(before, globals())
    results = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = importlib.import_module("kernels")
        for name in names:
            ran.clear()
            wanted = signature[name] if isinstance(signature, dict) else signature
            kernel, status, code = kernel_of(getattr(module, name), wanted, cc)
            library = kernel._codelibrary
            results.append(
                dict(
                    status=status,
                    cubin=hashlib.sha256(code).hexdigest(),
                    has_entry=library._entry_name.encode() in code,
                    cooperative=kernel.cooperative,
                    setup=[callback.__name__ for callback in library._setup_functions],
                    teardown=[callback.__name__ for callback in library._teardown_functions],
                    said=list(getattr(sys.modules.get("parts"), "said", ())),
                )
            )
    for result in results:
        result["log"] = log.getvalue()
        result["warnings"] = [str(each.message) for each in caught if "autolink" in str(each.message)]
    return results


def run_script(argv, environment, cwd, output):
    """What ``python *argv`` does. Numba is imported already; nothing is in memory of what was built."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, name in enumerate(output, 1):
        os.dup2(os.open(name, os.O_WRONLY), descriptor)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
    main = sys.modules["__main__"] = type(sys)("__main__")
    if argv[0] == "-c":
        code, main.__file__ = argv[1], "<string>"
        sys.argv, folder = ["-c", *argv[2:]], ""
    else:
        code, main.__file__ = open(argv[0]).read(), os.path.abspath(argv[0])
        sys.argv, folder = argv, os.path.dirname(main.__file__)
    sys.path.insert(0, folder)
    config.reload_config()
    reset_store()
    status = 0
    try:
        exec(compile(code, main.__file__, "exec"), vars(main))
    except SystemExit as error:
        status = error.code or 0
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__.tb_next)
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def answer(request):
    if "argv" in request:
        run_script(**request)
    try:
        return run(**request)
    except BaseException:
        return traceback.format_exc()


def warm_up(prelude):
    """Build a kernel, so that each run finds Numba, NVRTC and nvJitLink ready."""
    names = {"__file__": "parts.py", "__name__": "warm_up"}
    exec(prelude + "add = Add(7)\ndef kernel(x): x[0] = add(x[1])", names)
    magic = codegen.JITCUDACodegen.magic_tuple
    codegen.JITCUDACodegen.magic_tuple = lambda self: ((13, 0), (9, 0, "a"))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CUDA_AUTOLINK_CACHE_DIR"] = folder
        kernel_of(cuda.jit(names["kernel"]), "void(int32[::1])", (9, 0, "a"))
    codegen.JITCUDACodegen.magic_tuple = magic
    reset_store()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    cuda.jit(lambda: None).targetctx.refresh()
    with contextlib.redirect_stderr(io.StringIO()):
        warm_up(sys.argv[1])
    exec(sys.argv[2])
    out = sys.stdout
    for line in sys.stdin:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            with os.fdopen(writer, "w") as file, contextlib.redirect_stdout(sys.stderr):
                json.dump(answer(json.loads(line)), file)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            answered = file.read()
        _, status = os.waitpid(child, 0)
        out.write((answered or json.dumps(os.waitstatus_to_exitcode(status))) + "\n")
        out.flush()
'''

PRELUDE = """
import ctypes, enum, functools, os, threading
import numpy as np
from numba import cuda
from numba.cuda import autolink, types
said = []
def code(symbol, amount):
    return f'extern "C" __device__ int {symbol}(int x) {{ return x + {amount}; }}'
class Add(autolink.DeviceCallable):
    def __init__(self, amount, **others):
        self.amount = amount
        vars(self).update(others)
    def __numba_cuda_call__(self, x):
        return autolink.Extern("add", returns=types.int32)
    def __numba_cuda_link__(self, x):
        return autolink.CUDASource(code("add", self.amount))
"""
KERNEL = """
from numba import cuda
from parts import *
@cuda.jit(cache=True)
def kernel(x):
    x[0] = add(x[1])
"""


@dataclass(frozen=True)
class Run:
    """What happened to one kernel in one process."""

    status: str
    cubin: str
    has_entry: bool
    cooperative: bool
    setup: list[str]
    teardown: list[str]
    said: list[str]
    log: str
    warnings: list[str]


class Program:
    """A folder with a program, and processes that run it."""

    def __init__(self, folder: Path, servers: list[Any]):
        self.folder = folder
        self._servers = servers

    def write(self, parts: str = "", kernels: str = KERNEL) -> Program:
        """Write the modules. A file that stays as it is keeps its time."""
        for name, text in ("parts", PRELUDE + textwrap.dedent(parts)), ("kernels", textwrap.dedent(kernels)):
            file = self.folder / f"{name}.py"
            if not file.exists() or file.read_text() != text:
                file.write_text(text)
        return self

    def runs(self, *names: str, signature: Any = "void(int32[::1])", cc: Any = (9, 0, "a"), before: str = "") -> Any:
        """Run it in a new process, with a signature for all kernels, or a dictionary of them."""
        request = dict(folder=str(self.folder), names=names, signature=signature, cc=cc, before=before)
        found = ask(self._servers, request)
        assert isinstance(found, list), found
        return [Run(**each) for each in found]

    def run(self, **request: Any) -> Run:
        """Run it in a new process; what happened to ``kernel``."""
        (result,) = self.runs("kernel", **request)
        assert result.has_entry
        return result

    def files(self) -> list[Path]:
        """The entries of kernels with external code."""
        entries = fresh(self.folder / "cache").disk.entries()
        return sorted(Path(entry.path) for entry in entries if entry.kind == "kernel")

    def file(self) -> Path:
        """The only entry of a kernel with external code."""
        (path,) = self.files()
        return path

    def numba_files(self) -> list[Path]:
        """The files of numba-cuda's own cache."""
        return sorted(path for path in (self.folder / "numba").rglob("*") if path.is_file())


def ask(servers: list[Any], request: dict[str, Any]) -> Any:
    """Return the answer of the server whose turn it is."""
    server = servers[0]
    servers.reverse()
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())


def run_warm(servers: list[Any], *argv: Any, cwd: Any = "/", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``python *argv`` with more environment *variables*, in a process forked from one that has imported Numba."""
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        request = {"argv": list(map(str, argv)), "cwd": str(cwd), "output": [out.name, err.name]}
        status = ask(servers, {**request, "environment": {**os.environ, **variables}})
        return subprocess.CompletedProcess(argv, status, out.read(), err.read())


def start_servers(first: str = "") -> Iterator[list[Any]]:
    """Two, which order sets differently and take turns; ended when the generator is. Each runs the code *first*."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CUDA_AUTOLINK_LOG": "cache"}
    for name in ("NUMBA_CACHE_DIR", "NUMBA_CUDA_AUTOLINK_CACHE"):
        environment.pop(name, None)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SERVER, PRELUDE, first],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    yield processes
    for process in processes:
        process.stdin.close()
        process.wait()


def run_script(folder: Path, text: str, *arguments: str, CACHE: str = "") -> str:
    """Run a program in a process of its own; what it prints."""
    script = folder / "script.py"
    text = textwrap.dedent(PRELUDE) + textwrap.dedent(text)
    if not script.exists() or script.read_text() != text:  # plain kernels are found only if the file keeps its time
        script.write_text(text)
    environment = {**os.environ, "PYTHONHASHSEED": "random", "NUMBA_CACHE_DIR": CACHE, "NUMBA_CUDA_AUTOLINK_CACHE": "1"}
    if CACHE:
        environment["NUMBA_CUDA_AUTOLINK_CACHE_DIR"] = CACHE
    found = subprocess.run([sys.executable, str(script), *arguments], env=environment, capture_output=True, text=True)
    assert not found.returncode, found.stderr
    return found.stdout
