# SPDX-License-Identifier: BSD-2-Clause
"""Measure reports of kernels with many inputs and many call sites.

Run it with ``python benchmarks/scale.py``; no GPU is needed. Beside each figure are its baselines from the same run:
the build of the kernel, and as a part of it the link that the report describes; nothing of them is cached. Reports read
the symbols of every input and make no use of earlier reports: each round has kernels of its own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time

CC = (9, 0)
LTOIR_INPUTS, CALL_SITES = 100, 1000


def make_kernel(functions):
    """Return a kernel that calls each of *functions* once, one after the other."""
    names = {f"f{number}": function for number, function in enumerate(functions)}
    body = "".join(f"    y = f{number}(y)\n" for number in range(len(functions)))
    exec(f"def kernel(x):\n    y = x[0]\n{body}    x[0] = y\n", names)
    return names["kernel"]


def ltoir_functions(prefix, number):
    """Return functions with an LTO-IR input each."""
    from cuda.core import Program, ProgramOptions
    from numba import cuda

    options = ProgramOptions(arch=f"sm_{CC[0]}{CC[1]}", link_time_optimization=True, relocatable_device_code=True)
    functions = []
    for index in range(number):
        text = f'extern "C" __device__ int {prefix}_{index}(int *out, int x) {{ *out = x * {index}; return 0; }}'
        code = cuda.LTOIR(Program(text, "c++", options).compile("ltoir").code, name=f"{prefix}_{index}.ltoir")
        functions.append(cuda.declare_device(f"{prefix}_{index}", "int32(int32)", link=code))
    return functions


def source_functions(prefix, number):
    """Return functions with a CUDA C++ source each, compiled as one translation unit."""
    from numba import cuda
    from numba.cuda import autolink

    functions = []
    for index in range(number):
        text = f'extern "C" __device__ int {prefix}_{index}(int *out, int x) {{ *out = x * {index}; return 0; }}'
        code = autolink.CUDASource(text, name=f"{prefix}_{index}.cu", unit=prefix)
        function = cuda.declare_device(f"{prefix}_{index}", "int32(int32)")
        function.__numba_cuda_link__ = lambda x, code=code: code
        functions.append(function)
    return functions


def seconds(function):
    """Return how long *function* takes, and its result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def measured(functions):
    """Return the seconds to build a kernel that calls *functions*, of these those of its link, the seconds to report it
    and to write the report as HTML, and the number of linked inputs."""
    from numba.cuda import autolink

    build, built = seconds(lambda: autolink.build(make_kernel(functions), "void(int32[::1])", cc=CC))
    report, text = seconds(lambda: built.report)
    html, _ = seconds(text.to_html)
    link = text.builds[0].link
    return build, link.seconds, report, html, len(link.inputs) - 1


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inputs", type=int, default=LTOIR_INPUTS, help="LTO-IR inputs of the first kernel")
    parser.add_argument(
        "--calls", type=int, default=CALL_SITES, help="call sites of the second kernel; 0 leaves it out"
    )
    options = parser.parse_args()
    cases = {f"{options.inputs} LTO-IR inputs": lambda name: ltoir_functions(name, options.inputs)}
    if options.calls:
        cases[f"{options.calls} call sites"] = lambda name: source_functions(name, options.calls)
    print(f"{'seconds, medians':28}{'build':>9}{'its link':>9}{'report':>9}{'HTML':>9}{'inputs':>9}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CUDA_AUTOLINK_CACHE_DIR"] = folder
        for number, (title, make) in enumerate(cases.items()):
            rounds = [measured(make(f"scale_{number}_{index}")) for index in range(options.rounds)]
            *medians, inputs = map(statistics.median, zip(*rounds, strict=True))
            print(f"{title:28}{''.join(f'{each:9.3f}' for each in medians)}{inputs:9.0f}")


if __name__ == "__main__":
    main()
