# SPDX-License-Identifier: BSD-2-Clause
"""Kernels for the emulator: texts of PTX around a body, arrays that they may access, and launches."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from numba_cuda_autolink.emulator import Checks, Kernel, Module, memory

HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
REGISTERS = "\n".join(
    f".reg .{type} %{name}<40>;"
    for name, type in (("p", "pred"), ("h", "b16"), ("r", "b32"), ("rd", "b64"), ("f", "f32"), ("fd", "f64"))
)


def kernel_text(body: str, *parameters: str, before: str = "", directives: str = "") -> str:
    """Return a module with the kernel ``k``, whose parameters ``p0``, ``p1``… are of the types *parameters*."""
    listed = ", ".join(f".param .{type} p{k}" for k, type in enumerate(parameters))
    return f"{HEAD}{before}\n.visible .entry k({listed}) {directives}\n{{\n{REGISTERS}\n{body}\nret;\n}}\n"


def kernel_of(text: str, **options) -> Kernel:
    """Return the only kernel of *text*."""
    (kernel,) = Module([text], **options).kernels.values()
    return kernel


@contextlib.contextmanager
def registered(*arrays: np.ndarray) -> Iterator[None]:
    """Let kernels access *arrays*."""
    for array in arrays:
        memory.register(array.ctypes.data, array.nbytes)
    try:
        yield
    finally:
        for array in arrays:
            memory.unregister(array.ctypes.data)


def launch(kernel: Kernel, grid: int, block: int, *arguments: np.ndarray | int, **options) -> None:
    """Launch with pointers to arrays, and integers of 32 bits."""
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    packed = b""
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            packed += bytes(-len(packed) % 8) + struct.pack("<Q", argument.ctypes.data)
        else:
            packed += struct.pack("<i", argument)
    with registered(*arrays):
        kernel.launch((grid, 1, 1), (block, 1, 1), packed, **options)


def run(body: str, block: int, *arrays: np.ndarray, grid: int = 1, checks: Checks | None = None, **options) -> None:
    """Run *body* in blocks of *block* threads; %rd0, %rd1… hold the addresses of *arrays*."""
    loads = "\n".join(f"ld.param.u64 %rd{k}, [p{k}];" for k in range(len(arrays)))
    text = kernel_text(loads + "\n" + body, *["u64"] * len(arrays), before=options.pop("before", ""))
    launch(kernel_of(text, checks=checks), grid, block, *arrays, **options)


def run_emulated(*argv: Any) -> subprocess.CompletedProcess[str]:
    """Run ``python *argv`` in a fresh process, whose CUDA driver is the emulated one from the start. Where NVIDIA's
    driver is installed, importing Numba loads that one, and the emulated one cannot come after it."""
    environment = {**os.environ, "NUMBA_CUDA_AUTOLINK_EMULATE": "1"}
    return subprocess.run([sys.executable, *map(str, argv)], capture_output=True, text=True, env=environment)
