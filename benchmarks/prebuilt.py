# SPDX-License-Identifier: BSD-2-Clause
"""Measure the cost of linking each kind of code that a wheel can ship, and of the source, which NVRTC compiles first.

``python benchmarks/prebuilt.py`` builds the wheel of ``examples/wheel_template`` and a kernel that calls both of its
functions, for sm_90, with each kind of code in turn. No GPU is needed. Times are medians, with nothing cached. The
baseline is the same kernel with the functions in Python.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["NUMBA_CUDA_AUTOLINK_CACHE"] = "0"

from numba import cuda, types
from numba.cuda import autolink

TEMPLATE = Path(__file__).resolve().parent.parent / "examples" / "wheel_template"
KINDS = ("cubin", "LTO-IR", "PTX", "source")
CC = (9, 0)


class Functions:
    """The functions of the template, with code of one kind."""

    def __init__(self, code: autolink.Prebuilt):
        self.smooth_step = Function(code, "_ZN14sample_library11smooth_stepEfff", types.float32, [types.float32] * 3)
        self.polynomial = Function(
            code, "_ZN14sample_library10polynomialEPKdid", types.float64, [None, types.int32, types.float64]
        )


class Function(autolink.DeviceCallable):
    """One of the template's functions."""

    def __init__(self, code: autolink.Prebuilt, symbol: str, returns: Any, parameters: list[Any]):
        self.code, self.symbol, self.returns, self.parameters = code, symbol, returns, parameters

    def __numba_cuda_call__(self, *args: Any) -> autolink.Extern:
        converted = {f"args_{number}": parameter for number, parameter in enumerate(self.parameters)}
        return autolink.Extern(self.symbol, returns=self.returns, args=converted)

    def __numba_cuda_link__(self, *args: Any) -> Any:
        return self.code.code()


class InPython:
    """The same functions as device functions."""

    @staticmethod
    @cuda.jit(device=True)
    def smooth_step(lower, upper, x):
        t = min(max((x - lower) / (upper - lower), types.float32(0)), types.float32(1))
        return t * t * (types.float32(3) - types.float32(2) * t)

    @staticmethod
    @cuda.jit(device=True)
    def polynomial(coefficients, count, x):
        value = 0.0
        for i in range(count):
            value = value * x + coefficients[i]
        return value


def kernel_with(smooth_step: Any, polynomial: Any) -> Callable[..., None]:
    """Return a new kernel that calls these functions."""

    def kernel(x, coefficients):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = polynomial(coefficients, coefficients.size, smooth_step(0.0, 1.0, x[i]))

    return kernel


def measure(functions: Any, rounds: int) -> list[str]:
    """Return the cells of a row of the table. The first round is not counted, because it loads libraries."""
    times = []
    for _ in range(rounds + 1):
        autolink.cache.clear()  # the cache in memory
        start = time.perf_counter()
        kernel = kernel_with(functions.smooth_step, functions.polynomial)
        linked = autolink.build(kernel, "void(float64[::1], float64[::1])", cc=CC)
        total = time.perf_counter() - start
        build = linked.report.builds[0]
        sources = {
            code.sha256: code.compiled.seconds for call in build.calls for code in call.returned if code.compiled
        }
        times.append((sum(sources.values()), build.link.seconds or 0.0, total))
    compiling, linking, whole = (statistics.median(column) * 1e3 for column in zip(*times[1:], strict=True))
    return [
        f"{compiling:.0f} ms" if compiling else "-",
        f"{linking:.0f} ms" if linking else "-",
        f"{whole:.0f} ms",
        f"{build.result.size / 1e3:.1f} KB",
        str(build.result.registers),
    ]


def device_code_in_wheel(folder: Path, wheel: Path | None) -> Path:
    """Return the folder of device code from a wheel of the template: *wheel*, or one that is built now."""
    if wheel is None:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
        subprocess.run([*command, str(TEMPLATE)], check=True)
        (wheel,) = folder.glob("*.whl")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e3:.0f} KB")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder / "sample_library" / "device_code"


def of_kind(code: Path, kind: str) -> autolink.Prebuilt:
    """Return a `Prebuilt` with the files of one kind only."""
    prebuilt = autolink.Prebuilt(code, include_paths=[code.parent])
    prebuilt.files = tuple(file for file in prebuilt.files if file.kind == kind)
    return prebuilt


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--wheel", type=Path, help="a wheel of the template that is already built")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        code = device_code_in_wheel(Path(folder), arguments.wheel)
        print(row("what is linked", ["compiled in", "linked in", "all of it", "cubin", "registers"]))
        rows: dict[str, Any] = {kind: Functions(of_kind(code, kind)) for kind in KINDS}
        for name, functions in {**rows, "nothing: in Python": InPython}.items():
            print(row(name, measure(functions, arguments.rounds)))


def row(name: str, cells: list[str]) -> str:
    """Return a line of the table."""
    return f"{name:20}" + "".join(f"{cell:>13}" for cell in cells)


if __name__ == "__main__":
    main()
