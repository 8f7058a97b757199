# SPDX-License-Identifier: BSD-2-Clause
"""Measure large builds and their reports: kernels with many objects, inputs and call sites, and many programs.

Run it with ``python benchmarks/scale.py``; no GPU is needed. Beside each figure are its baselines from the same run.

- Builds: a kernel that calls many objects, against numba-cuda alone with ``declare_device(..., link=)``; several
  programs that use CUB, compiled by two processes, against one. Each build runs in a fresh process with an empty cache.
- Reports: the build of the kernel, and as a part of it the link that the report describes; nothing of them is cached.
  Reports read the symbols of every input and make no use of earlier reports: each round has kernels of its own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CC = (9, 0)
LTOIR_INPUTS, CALL_SITES = 100, 1000
JOBS = "NUMBA_CUDA_AUTOLINK_JOBS"


def build_seconds(what, how, number, jobs=None):
    """Return the seconds that a fresh process with an empty cache takes to build *what*, in the way *how*."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {"NUMBA_CUDA_AUTOLINK_CACHE_DIR": folder, "NUMBA_CUDA_AUTOLINK": "0" if how == "alone" else "1"}
        variables |= {JOBS: jobs} if jobs else {}
        command = [sys.executable, str(Path(__file__).with_name("scale_build.py")), what, how, str(number)]
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])


def builds(rounds, objects, programs):
    """Print the table of builds: medians of *rounds*, in turns."""
    by_two, by_one = (("programs", "calls", programs, jobs) for jobs in ("2", "1"))
    cases: list[tuple] = [
        (f"{objects} objects (alone)", "<= 1.1 x", ("objects", "calls", objects), ("objects", "alone", objects)),
        (f"{programs} programs by two (by one)", "<= 0.62 x", by_two, by_one),
    ]
    print(f"{'seconds, medians (baseline)':34}{'build':>9}{'baseline':>10}{'ratio':>9}  goal")
    for title, goal, *runs in cases:
        pairs = [tuple(build_seconds(*run) for run in runs) for _ in range(rounds)]
        ours, baseline = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{title:34}{ours:9.3f}{baseline:10.3f}{ours / baseline:7.2f} x  {goal}", flush=True)


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
    parser.add_argument("--objects", type=int, default=1000, help="objects of one kernel; 0 leaves the builds out")
    parser.add_argument("--programs", type=int, default=6, help="programs with CUB")
    options = parser.parse_args()
    if options.objects:
        builds(options.rounds, options.objects, options.programs)
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
