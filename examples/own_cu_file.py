# SPDX-License-Identifier: BSD-2-Clause
"""Call your own ``.cu`` file from a Numba kernel.

own_cu_file/develop.cu includes a header in the same folder and expects two macros. `Develop` provides the include path,
the macros and a compile option. One kernel calls two `Develop` objects with different exposures.

    python examples/own_cu_file.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from _run import compare, run
from numba import cuda
from numba.cuda import autolink

FOLDER = Path(__file__).resolve().parent / "own_cu_file"


class Develop(autolink.DeviceCallable):
    """Convert linear light to sRGB, with an exposure of a whole number of stops. Each stop doubles the light."""

    def __init__(self, stops):
        self.stops = stops
        self.symbol = f"develop_{stops}"

    def __numba_cuda_call__(self, linear):
        return autolink.Extern(self.symbol, returns=np.float32, args={"linear": np.float32})

    def __numba_cuda_link__(self, linear):
        return autolink.CUDASource(
            (FOLDER / "develop.cu").read_text(),
            name="develop.cu",
            include_paths=[FOLDER],
            defines={"NAME": self.symbol, "STOPS": self.stops},
            options={"use_fast_math": True},
        )

    def __call__(self, linear):
        x = min(2.0**self.stops * linear, 1.0)
        return 12.92 * x if x <= 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055


as_shot = Develop(stops=0)
brighter = Develop(stops=2)


@cuda.jit
def develop(linear, shot, bright):
    i = cuda.grid(1)
    if i < linear.size:
        shot[i] = as_shot(linear[i])
        bright[i] = brighter(linear[i])


def launch():
    linear = np.linspace(0, 1, 1000, dtype=np.float32)
    shot, bright = np.zeros_like(linear), np.zeros_like(linear)
    develop[8, 128](linear, shot, bright)

    def expected(exposure):
        x = np.minimum(exposure * linear.astype(np.float64), 1)
        return np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)

    return all([compare("as shot", shot, expected(1), 1e-6), compare("two stops brighter", bright, expected(4), 1e-6)])


def link():
    yield "develop", autolink.build(develop, "void(float32[::1], float32[::1], float32[::1])", cc=(9, 0))


if __name__ == "__main__":
    run(launch, link)
