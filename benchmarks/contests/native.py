# SPDX-License-Identifier: BSD-2-Clause
"""Compile the kernels in CUDA C++ that the contests compare with."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cuda.core import ObjectCode, Program, ProgramOptions
from cuda.pathfinder import find_nvidia_header_directory

NATIVE = Path(__file__).resolve().parent.parent / "native"


def compiled_native(
    file: str, defines: Mapping[str, int], arch: str, include_paths: Sequence[Path] = ()
) -> tuple[ObjectCode, str]:
    """Return the code of a *file* of native/ for *arch*, and its compiler's name: nvcc, or NVRTC if there is none."""
    if shutil.which("nvcc") is not None:
        with tempfile.TemporaryDirectory() as folder:
            flags = [
                *(f"-D{name}={value}" for name, value in defines.items()),
                *(f"-I{path}" for path in include_paths),
            ]
            output = Path(folder, "native.cubin")
            command = ["nvcc", "-cubin", f"-arch={arch}", "-std=c++17", *flags, "-o", str(output), str(NATIVE / file)]
            if subprocess.run(command, capture_output=True).returncode == 0:
                return ObjectCode.from_cubin(output.read_bytes()), "nvcc"
    headers = [find_nvidia_header_directory(name) for name in ("cccl", "cudart")]
    options = ProgramOptions(
        arch=arch,
        include_path=[*map(str, include_paths), *headers],
        define_macro=[(name, str(value)) for name, value in defines.items()],
    )
    return Program((NATIVE / file).read_text(), "c++", options=options).compile("cubin"), "NVRTC"
