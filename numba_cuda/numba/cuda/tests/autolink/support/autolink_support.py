# SPDX-License-Identifier: BSD-2-Clause
"""Shared by the tests: objects that record how they are asked, and real code of every kind."""

from __future__ import annotations

import functools
import io
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from cuda.bindings import nvrtc
from cuda.core import Program, ProgramOptions
from elftools.elf.elffile import ELFFile
from numba import cuda
from numba.cuda import autolink

CC = (9, 0)


def adder(symbol: str, amount: int = 1) -> str:
    """CUDA C++ of a device function ``int32 symbol(int32)`` in Numba's own calling convention."""
    return f'extern "C" __device__ int {symbol}(int *out, int x) {{ *out = x + {amount}; return 0; }}'


class Linked:
    """A device function with a hook that records what it is asked: ``spy.function`` is what kernels call."""

    def __init__(self, symbol, answer=None, signature="int32(int32)", amount=1):
        self.asked = []
        self.targets = []
        self.answer = autolink.CUDASource(adder(symbol, amount)) if answer is None else answer
        self.function = cuda.declare_device(symbol, signature)
        self.function.__numba_cuda_link__ = self.hook

    def hook(self, *argtypes):
        self.asked.append(argtypes)
        self.targets.append(autolink.current_target())
        return self.answer() if callable(self.answer) else self.answer


def unload(kernel) -> None:
    """Unload the code of *kernel* alone. A reset of the context unloads that of every kernel of the process, which
    numba-cuda cannot launch again."""
    for overload in kernel.overloads.values():
        overload._codelibrary.get_cufunc().module.unload()
    cuda.current_context().deallocations.clear()


def without_place(error: Exception | str) -> str:
    """The message of *error* without its second line, the place, and the source below it."""
    return re.sub(r"\n  (?:called )?at: .*(?:\n {6}.*){0,2}", "", str(error), count=1)


def calling(function):
    """A kernel that calls *function* with an element of its array."""

    def kernel(x):
        x[0] = function(x[1])

    return kernel


def build(kernel, signature="void(int32[::1])", **options):
    """Build for `CC` without a GPU."""
    return autolink.build(kernel, signature, cc=options.pop("cc", CC), **options)


@functools.cache
def compiled(source: str, kind: str, arch: str = "sm_90") -> bytes:
    """*source* compiled by NVRTC to ``"ltoir"``, ``"cubin"`` (relocatable) or ``"ptx"``."""
    if kind == "ptx":
        return ptx(source, arch)
    options = ProgramOptions(
        arch=arch, relocatable_device_code=True, link_time_optimization=(kind == "ltoir") or None, name="test.cu"
    )
    return bytes(Program(source, "c++", options=options).compile(kind).code)


def ptx(source: str, arch: str = "sm_90") -> bytes:
    """*source* as PTX; straight from NVRTC, since `cuda.core` asks the driver for it."""

    def call(function, *args):
        result, *values = function(*args)
        assert result == nvrtc.nvrtcResult.NVRTC_SUCCESS, result
        return values[0] if values else None

    program = call(nvrtc.nvrtcCreateProgram, source.encode(), b"test.cu", 0, [], [])
    options = [b"-rdc=true", f"-arch={arch.replace('sm_', 'compute_')}".encode()]
    call(nvrtc.nvrtcCompileProgram, program, len(options), options)
    text = b" " * call(nvrtc.nvrtcGetPTXSize, program)
    call(nvrtc.nvrtcGetPTX, program, text)
    return text.rstrip(b"\0 ")


def have_nvcc() -> bool:
    return shutil.which("nvcc") is not None


@functools.cache
def from_nvcc(sources: tuple[str, ...], kind: str, arch: str = "sm_90") -> bytes:
    """*sources* as a ``"fatbin"``, an ``"object"`` or an ``"archive"``, made by nvcc. It takes a second, so the tests
    share what it makes of ``adder("add_one")``."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, source in enumerate(sources):
            file = Path(folder, f"part{number}.cu")
            file.write_text(source)
            files.append(str(file))
        flags = {"fatbin": ["-fatbin", "-rdc=true"], "object": ["-dc"], "archive": ["-lib", "-rdc=true"]}[kind]
        output = Path(folder, {"fatbin": "all.fatbin", "object": "all.o", "archive": "all.a"}[kind])
        subprocess.run(["nvcc", f"-arch={arch}", *flags, "-o", str(output), *files], check=True, capture_output=True)
        return output.read_bytes()


def elf(cubin: bytes) -> ELFFile:
    return ELFFile(io.BytesIO(cubin))


def symbols(cubin: bytes) -> set[str]:
    """The functions and variables of a cubin."""
    return {
        symbol.name
        for symbol in elf(cubin).get_section_by_name(".symtab").iter_symbols()
        if symbol.name and symbol["st_info"]["type"] != "STT_SECTION" and not symbol.name.startswith((".", "__"))
    }


def read_diagnosis(error: BaseException) -> str:
    """Return the text of an *error* with its diagnosis in one line: a long one goes on after the place of the call."""
    return re.sub(r" \.\.\.\n.*?\n  \.\.\. ", " ", str(error), count=1, flags=re.DOTALL)
