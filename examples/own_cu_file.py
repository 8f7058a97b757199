# SPDX-License-Identifier: BSD-2-Clause
"""Call a function of your own ``.cu`` file from a Numba kernel, by its name.

own_cu_file/develop.cu includes a header in the same folder. Nothing is declared: the compiler tells what the function
takes and returns.

    python examples/own_cu_file.py
"""

from pathlib import Path

import numpy as np
from _frontend import cuda
from _run import compare, run
from numba.cuda import autolink

develop = autolink.cxx(Path(__file__).resolve().parent / "own_cu_file" / "develop.cu").develop


@cuda.jit
def expose(linear, shot):
    i = cuda.grid(1)
    if i < linear.size:
        shot[i] = develop(linear[i], 2)


@develop.python
def developed(linear, stops):
    """Do the same in Python, for the simulator and for the comparison."""
    x = np.minimum(2.0**stops * linear, 1.0)
    return np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)


def launch():
    linear, shot = np.linspace(0, 1, 1000, dtype=np.float32), np.zeros(1000, np.float32)
    expose[8, 128](linear, shot)
    return compare("two stops brighter", shot, developed(linear.astype(np.float64), 2), 1e-6)


def link():
    yield "expose", autolink.build(expose, "void(float32[::1], float32[::1])", cc=(9, 0))


if __name__ == "__main__":
    run(launch, link)
