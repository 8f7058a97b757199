# SPDX-License-Identifier: BSD-2-Clause
"""Run an example, with or without a GPU, and compare its results with NumPy's."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from _frontend import chosen
from numba import cuda

EMULATOR = "numba-cuda-autolink's emulator"


def run(launch: Callable[[], bool], link: Callable[[], Iterable[tuple[str, Any]]]) -> NoReturn:
    """Run an example and exit: with 0 if every result is right, else with 1.

    ``launch()`` runs the kernels and returns whether the results are right. Without a GPU, ``link()`` yields pairs of a
    title and a kernel that `autolink.build` made, and the kernels, with the C++ that they link, run in the emulator.
    """
    if cuda.is_available():
        where = "In the simulator" if simulated() else "In the emulator" if on_cpu() else "On the GPU"
        print(f"{where}, compared with NumPy:", flush=True)
        sys.exit(0 if launch() else 1)
    print("No GPU was found, so the kernels are linked for sm_90:")
    for title, kernel in link():
        show(title, kernel)
    if chosen() != "numba-cuda":
        print(f"The emulator does not run kernels of {chosen()}.")
        sys.exit(0)
    from numba.cuda import autolink

    from numba_cuda_autolink import LaunchError

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(autolink.emulated())
        except LaunchError:  # NVIDIA's driver is installed, and was loaded to look for a GPU
            sys.stdout.flush()
            os.environ["NUMBA_CUDA_AUTOLINK_EMULATE"] = "1"
            os.execv(sys.executable, [sys.executable, *sys.argv])
        print("The linked kernels in the emulator, compared with NumPy:", flush=True)
        sys.exit(0 if launch() else 1)


def simulated() -> bool:
    """Return whether Numba's CUDA simulator is on, which runs the objects' Python ``__call__``."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0"


def on_cpu() -> bool:
    """Return whether kernels run on the CPU, in the emulator or in the simulator."""
    return simulated() or cuda.get_current_device().name == EMULATOR


def show(title: str, kernel: Any) -> None:
    """Print the inputs and the result of linking a kernel."""
    print(f"  {title}")
    for site in kernel.call_sites:
        print(f"    calls {site.callee.name} on line {site.line}")
    for planned in kernel.inputs:
        print(f"    links {planned.input.kind} {planned.input.name!r} of {len(planned.input.code)} bytes")
    functions = {name: size for name, size in function_sizes(kernel.code).items() if name != kernel.entry_name}
    print(f"    gives a cubin of {len(kernel.code)} bytes", end=" ")
    print(f"with the functions {sorted(functions)}" if functions else "with the external code inlined")


def function_sizes(cubin: bytes) -> dict[str, int]:
    """Return the functions of a cubin and the bytes of their machine code."""
    from numba.cuda.cudadrv.external_code.formats.elf import FUNCTION, elf_symbols, read_elf

    symbols = elf_symbols(cubin, read_elf(cubin))
    return {symbol.name: symbol.size for symbol in symbols if symbol.type == FUNCTION and symbol.size}


def relative_error(result: Any, expected: Any) -> float:
    """Return the relative error of *result* in the 2-norm."""
    return float((abs(result - expected) ** 2).sum() / (abs(expected) ** 2).sum()) ** 0.5


def compare(title: str, result: Any, expected: Any, tolerance: float) -> bool:
    """Print the relative error of *result*, and return whether it is within *tolerance*."""
    error = relative_error(result, expected)
    right = error <= tolerance
    print(f"  {title:<40} {error:.1e}  {'ok' if right else f'WRONG, expected at most {tolerance:.0e}'}")
    return right
