# SPDX-License-Identifier: BSD-2-Clause
"""Run an example, with or without a GPU, and compare its results with NumPy's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from _frontend import chosen
from numba import cuda


def run(
    launch: Callable[[], bool], link: Callable[[], Iterable[tuple[str, Any]]], *, simulate: bool = True
) -> NoReturn:
    """Run an example and exit: with 0 if every result is right, else with 1.

    With a GPU, ``launch()`` runs the kernels on it and returns whether the results are right. Without one, ``link()``
    yields pairs of a title and a kernel that `autolink.build` made, and the example runs again in Numba's CUDA
    simulator, where the same kernels call the objects' Python ``__call__``; unless *simulate* is False.
    """
    if cuda.is_available():
        print("On the GPU, compared with NumPy:" if not simulated() else "In the simulator, compared with NumPy:")
        sys.exit(0 if launch() else 1)
    print("No GPU was found, so the kernels are linked for sm_90:")
    for title, kernel in link():
        show(title, kernel)
    if not simulate:
        sys.exit(0)
    sys.stdout.flush()
    if chosen() != "numba-cuda":
        print(f"{chosen()} has no simulator.")
        sys.exit(0)
    sys.exit(subprocess.call([sys.executable, *sys.argv], env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}))


def simulated() -> bool:
    """Return whether Numba's CUDA simulator is on."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0"


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
