# SPDX-License-Identifier: BSD-2-Clause
"""Call a function of your own ``.cu`` file from a Numba kernel, by its name.

own_cu_file/develop.cu includes a header in the same folder. Nothing is declared: the compiler tells what the function
takes and returns.

    python examples/own_cu_file.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from _frontend import cuda
from _run import compare, run
from numba.cuda import autolink

file = Path(__file__).resolve().parent / "own_cu_file" / "develop.cu"
develop = autolink.cxx(file, options={"use_fast_math": True}).develop


@cuda.jit
def expose(linear, shot, bright):
    i = cuda.grid(1)
    if i < linear.size:
        shot[i] = develop(linear[i], 0)
        bright[i] = develop(linear[i], 2)


@develop.python
def developed(linear, stops):
    """Do the same in Python, for the simulator."""
    x = min(2.0**stops * linear, 1.0)
    return 12.92 * x if x <= 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055


def launch():
    linear = np.linspace(0, 1, 1000, dtype=np.float32)
    shot, bright = np.zeros_like(linear), np.zeros_like(linear)
    expose[8, 128](linear, shot, bright)

    def expected(exposure):
        x = np.minimum(exposure * linear.astype(np.float64), 1)
        return np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)

    return all([compare("as shot", shot, expected(1), 1e-6), compare("two stops brighter", bright, expected(4), 1e-6)])


def link():
    yield "expose", autolink.build(expose, "void(float32[::1], float32[::1], float32[::1])", cc=(9, 0))


if __name__ == "__main__":
    run(launch, link)
