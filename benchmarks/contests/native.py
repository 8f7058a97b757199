# SPDX-License-Identifier: BSD-2-Clause
"""Compile the kernels in CUDA C++ that the contests compare with."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cuda.core import Linker, LinkerOptions, ObjectCode, Program, ProgramOptions
from cuda.pathfinder import find_nvidia_header_directory

NATIVE = Path(__file__).resolve().parent.parent / "native"


def compiled_native(
    file: str, defines: Mapping[str, int], arch: str, include_paths: Sequence[Path] = ()
) -> tuple[ObjectCode, str]:
    """Return the code of a *file* of native/ for *arch*, and its compiler's name: nvcc, or NVRTC if there is none."""
    if shutil.which("nvcc") is not None:
        with contextlib.suppress(subprocess.CalledProcessError):
            return native_code(file, defines, arch, include_paths), "nvcc"
    return native_code(file, defines, arch, include_paths, "NVRTC"), "NVRTC"


def native_code(
    file: str,
    defines: Mapping[str, int],
    arch: str,
    include_paths: Sequence[Path] = (),
    compiler: str = "nvcc",
    lto: bool = False,
) -> ObjectCode:
    """Return the code of a *file* of native/ as one *compiler* makes it; with *lto*, from LTO-IR and by nvJitLink.

    Both compilers get the headers of CCCL that Numba's kernels are built with: its versions differ in registers.
    """
    cccl, cudart = (find_nvidia_header_directory(name) for name in ("cccl", "cudart"))
    macros = [(name, str(value)) for name, value in defines.items()]
    if compiler == "nvcc":
        number = arch.removeprefix("sm_")
        kind = ["-fatbin", "-rdc=true", f"-gencode=arch=compute_{number},code=lto_{number}"]
        flags = [f"-D{name}={value}" for name, value in macros] + [f"-I{path}" for path in (*include_paths, cccl)]
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder, "native")
            command = ["nvcc", *(kind if lto else ["-cubin", f"-arch={arch}"]), "-std=c++17", *flags]
            subprocess.run([*command, "-o", output, NATIVE / file], check=True, capture_output=True)
            code = (ObjectCode.from_fatbin if lto else ObjectCode.from_cubin)(output.read_bytes())
    else:
        options = ProgramOptions(
            arch=arch,
            include_path=[*map(str, include_paths), cccl, cudart],
            define_macro=macros,
            link_time_optimization=lto or None,
            relocatable_device_code=lto or None,
        )
        code = Program((NATIVE / file).read_text(), "c++", options=options).compile("ltoir" if lto else "cubin")
    if lto:
        code = Linker(code, options=LinkerOptions(arch=arch, link_time_optimization=True)).link("cubin")
    return code
