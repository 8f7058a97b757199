# SPDX-License-Identifier: BSD-2-Clause
"""Evaluate special functions of Boost.Math, a header library of C++, called by name.

Get the headers, of Boost 1.87 or later, in any folder:

    git clone --depth 1 https://github.com/boostorg/math boost_math
    python examples/boost_math.py boost_math/include
"""

from __future__ import annotations

import os
import sys

import numpy as np
from _frontend import cuda
from _run import compare, run
from numba.cuda import autolink


def headers():
    """Return the folder that has Boost.Math; print how to get it and exit with 2 if it is not there."""
    folders = [*sys.argv[1:], "boost_math/include"]
    found = [folder for folder in folders if os.path.isdir(os.path.join(folder, "boost", "math"))]
    if not found:
        print(f"This example needs Boost.Math. Get the headers{str(__doc__).partition('Get the headers')[2]}")
        sys.exit(2)
    return found[0]


math = autolink.cxx(
    """
    #include <boost/math/special_functions/gamma.hpp>
    #include <boost/math/special_functions/bessel.hpp>
    """,
    include_paths=[headers()],
    defines={"BOOST_MATH_STANDALONE": 1, "BOOST_MATH_ENABLE_NVRTC": 1},
    namespace="boost::math",
)
gamma_q, bessel = math.gamma_q, math.cyl_bessel_j


@cuda.jit
def kernel(x, survival, waves):
    i = cuda.grid(1)
    if i < x.size:
        survival[i] = gamma_q(1.0, x[i] / 2)  # of the chi-squared distribution with two degrees of freedom
        waves[i] = bessel(0.5, x[i])


def launch():
    x = np.linspace(0.01, 30, 2000)
    survival, waves = np.zeros_like(x), np.zeros_like(x)
    kernel[16, 128](x, survival, waves)
    closed = np.sqrt(2 / (np.pi * x)) * np.sin(x)
    return all([compare("gamma_q", survival, np.exp(-x / 2), 1e-13), compare("cyl_bessel_j", waves, closed, 1e-13)])


def link():
    yield "kernel", autolink.build(kernel, "void(float64[::1], float64[::1], float64[::1])", cc=(9, 0))


if __name__ == "__main__":
    run(launch, link)
