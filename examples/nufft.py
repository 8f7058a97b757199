# SPDX-License-Identifier: BSD-2-Clause
"""Compute nonuniform FFTs of types 1 and 2, in one and two dimensions, with Python kernels that call an FFT object.

    plan = Plan(1, (n0, n1), eps=1e-6).set_points(x, y)
    f = plan.execute(c)  # f[k0, k1] = sum over j of c[j] exp(i (k0 x[j] + k1 y[j]))

The functions ``nufft1d1``, ``nufft1d2``, ``nufft2d1`` and ``nufft2d2`` do the same in one call. For type 1, points are
spread to a fine grid, which is transformed and truncated to the requested modes. For type 2, modes are padded,
transformed and interpolated. Sorting, spreading and interpolation are Python. The FFT is the block FFT of fft.py; the
kernel that calls it also pads, scales and truncates in its loads and stores, so only transforms read and write the
grid. Kernels pass no ``link=``. The parts are in nufft_parts/.

    python examples/nufft.py [--picture FILE]

compares the results with the direct sums, for tolerances from 1e-3 to 1e-12. On a GPU it also reconstructs an image
from samples of its Fourier transform along radial lines, as a scanner measures them, and saves it as a PNG file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _frontend import NAMES, cuda
from _run import compare, run, simulated
from nufft_parts import direct
from nufft_parts.image import make_picture
from nufft_parts.plan import Plan
from numba.cuda import autolink

__all__ = ["Case", "Plan", "make_case", "nufft1d1", "nufft1d2", "nufft2d1", "nufft2d2"]


def nufft1d1(x, c, modes, **options):
    """Type 1 in one dimension: compute modes from the values `c` at `x`. The options are those of `Plan`."""
    return _plan(1, modes, 1, c, options).set_points(x).execute(c)


def nufft1d2(x, f, **options):
    """Type 2 in one dimension: compute values at `x` from the modes `f`. The options are those of `Plan`."""
    return _plan(2, f.shape, 1, f, options).set_points(x).execute(f)


def nufft2d1(x, y, c, modes, **options):
    """Type 1 in two dimensions: compute modes from the values `c` at `x`, `y`. The options are those of `Plan`."""
    return _plan(1, modes, 2, c, options).set_points(x, y).execute(c)


def nufft2d2(x, y, f, **options):
    """Type 2 in two dimensions: compute values at `x`, `y` from the modes `f`. The options are those of `Plan`."""
    return _plan(2, f.shape, 2, f, options).set_points(x, y).execute(f)


def _plan(kind, modes, dimensions, data, options):
    plan = Plan(kind, modes, **{"dtype": np.complex64 if data.dtype == np.complex64 else np.complex128, **options})
    if len(plan.modes) != dimensions:
        raise ValueError(f"modes: got {modes!r}, expected {dimensions} of them")
    return plan


@dataclass
class Case:
    """A transform of random data, which can run on the device repeatedly.

    A call executes the plan from `data` into `result`, both on the device, and returns without waiting.
    """

    plan: Plan
    points: list[np.ndarray]
    data: Any
    result: Any

    def __call__(self):
        return self.plan.execute(self.data, out=self.result)

    def error(self, most=1000):
        """Return the relative error of `result` against the direct sum, over at most `most` elements."""
        result, data, sign = self.result.copy_to_host(), self.data.copy_to_host(), self.plan.sign
        rng = np.random.default_rng(0)
        most = min(most, max(10, 10**7 // max(self.points[0].size, *data.shape)))
        chosen = [rng.choice(n, min(n, most), replace=False) for n in result.shape]
        if self.plan.kind == 1:
            expected = direct.type1(self.points, data, self.plan.modes, sign, chosen)
        else:
            expected = direct.type2([x[chosen[0]] for x in self.points], data, sign)
        found = result[np.ix_(*chosen)]
        return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def make_case(kind, modes, points, eps=1e-6, dtype: type[np.complexfloating] = np.complex128, seed=0, **options):
    """Return a `Case` of `points` points, uniformly distributed over the period."""
    plan = Plan(kind, modes, eps=eps, dtype=dtype, **options)
    rng = np.random.default_rng(seed)
    coordinates = [rng.uniform(-np.pi, np.pi, points) for _ in plan.modes]
    shapes = [(points,), plan.modes] if kind == 1 else [plan.modes, (points,)]
    data = (rng.standard_normal(shapes[0]) + 1j * rng.standard_normal(shapes[0])).astype(dtype)
    plan.set_points(*coordinates)
    return Case(plan, coordinates, cuda.to_device(data), cuda.device_array(shapes[1], dtype))


CASES = {  # modes, points, the longest FFT
    "on the GPU": [((1000,), 10_000, 4096), ((100_000,), 100_000, 4096), ((250, 121), 20_000, 4096)],
    "in the simulator": [((9,), 20, 4096), ((40,), 20, 16), ((8, 5), 20, 4096)],
}
TOLERANCES = [1e-3, 1e-6, 1e-9, 1e-12]


def launch(picture):
    right = True
    for modes, points, longest_fft in CASES["in the simulator" if simulated() else "on the GPU"]:
        for kind in 1, 2:
            for eps in TOLERANCES if not simulated() else TOLERANCES[::3]:
                dtype = np.complex64 if eps >= 1e-5 else np.complex128
                case = make_case(kind, modes, points, eps, dtype, longest_fft=longest_fft)
                case()
                title = f"type {kind}, {' x '.join(map(str, modes))} modes, {np.dtype(dtype)}"
                right &= compare_error(f"{title}, {eps:.0e}", case.error(), eps)
    if simulated():
        print("  No picture: the image needs a GPU.")
        return right
    return make_picture(picture) and right


def compare_error(title, error, eps):
    """Print the relative error, and return whether it is within the requested tolerance."""
    return compare(title, np.array([1 + error]), np.ones(1), eps)


def link():
    for kind, modes in (1, (100_000,)), (2, (500, 300)):
        plan = Plan(kind, modes, eps=1e-6, dtype=np.complex64)
        for title, kernel, signature in plan.kernels():
            if "FFT" in title:
                yield (
                    f"type {kind}, {' x '.join(map(str, modes))} modes: {title}",
                    autolink.build(kernel, signature, cc=(9, 0)),
                )


def parse():
    parser = argparse.ArgumentParser(description="Compute nonuniform FFTs with an FFT object, and an image with them.")
    parser.add_argument(
        "--picture",
        metavar="FILE",
        default=Path(tempfile.gettempdir()) / "nufft.png",
        help="the file for the image (default: %(default)s)",
    )
    parser.add_argument("--frontend", choices=NAMES, default=NAMES[0], help="what compiles the kernels")
    return parser.parse_args(sys.argv[1:])


if __name__ == "__main__":
    arguments = parse()
    run(lambda: launch(arguments.picture), link)
