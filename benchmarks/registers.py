# SPDX-License-Identifier: BSD-2-Clause
"""Compare the registers of kernels that pass C++ a Python function with those of the same kernels in CUDA C++.

    python benchmarks/registers.py

Each kernel in C++ is compiled for sm_90 by nvcc and by NVRTC, each with link-time optimisation and without, with the
same headers of CCCL as the kernel in Python. Each cell has the registers per thread and the number of machine
instructions. It needs nvcc (``pip install nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm``, and its ``bin`` on the path),
and no GPU.
"""

import importlib
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

INSTRUCTION = 16  # bytes
COLUMNS = {
    "nvcc": ("nvcc", False),
    "nvcc, LTO": ("nvcc", True),
    "NVRTC": ("NVRTC", False),
    "NVRTC, LTO": ("NVRTC", True),
}


def cases():
    """Yield a title, the kernel and its signature, and what it is in CUDA C++: file, name, macros, include paths."""
    lambdas = importlib.import_module("contests.lambdas")
    for kernel in lambdas.make_folds(), lambdas.make_roots():
        native = ("lambdas.cu", kernel.py_func.__name__, {"COUNT": lambdas.COUNT}, [HERE / "native"])
        yield f"{native[1]} with a lambda", kernel, lambdas.SIGNATURE, native
    operators, window = importlib.import_module("contests.operators"), importlib.import_module("nufft_window")
    for make, signature, shapes in (
        (operators.make_saturating_sums, operators.SUMS_SIGNATURE, [(128, 16), (256, 16), (512, 4)]),
        (operators.make_sorted_tiles, operators.SORT_SIGNATURE, [(128, 8), (256, 8), (512, 4)]),
    ):
        for threads, items in shapes:
            kernel = make(threads, items)
            name, macros = kernel.py_func.__name__, {"THREADS": threads, "ITEMS": items}
            yield f"{name}, {threads} x {items}", kernel, signature, ("operators.cu", name, macros, ())
    for width in 4, 7:
        macros = {"WIDTH": width, "SIZE_0": 1024, "SIZE_1": 1024}
        for kind in "formula", "table":
            function, _ = window.window_case(kind, width, np.float32)
            for kernel in window.make_kernels(window.WindowSums((1024, 1024), width, function)):
                name = kernel.py_func.__name__
                signature = window.signature(name, kind, np.float32)
                native = ("nufft_window.cu", f"{name}_{kind}", macros, [window.FOLDER])
                yield f"{name}_{kind}, width {width}", kernel, signature, native


def cell(code, name):
    from _run import function_sizes
    from numba.cuda.cudadrv.external_code.formats.cubin import resources

    return f"{resources(code, name)['registers']} / {function_sizes(code)[name] // INSTRUCTION}"


def main():
    from contests.native import native_code
    from numba.cuda import autolink

    print(f"{'registers / instructions':<32}" + "".join(f"{column:>14}" for column in ("Python", *COLUMNS)))
    for title, kernel, signature, (file, name, macros, paths) in cases():
        linked = autolink.build(kernel, signature, cc=(9, 0))
        cells = [cell(linked.code, linked.entry_name)]
        cells += [cell(native_code(file, macros, "sm_90", paths, *how).code, name) for how in COLUMNS.values()]
        print(f"{title:<32}" + "".join(f"{each:>14}" for each in cells), flush=True)


if __name__ == "__main__":
    main()
