# SPDX-License-Identifier: BSD-2-Clause
"""Small nonuniform FFTs in Numba's simulator, compared with direct sums: one, several passes, two dimensions, edges.

The only argument is the folder of the examples.
"""

import sys

sys.path.insert(0, sys.argv[1])

import numpy as np
from nufft_parts import direct
from nufft_parts.plan import Plan

RNG = np.random.default_rng(7)
turn = 2 * np.pi
edges = np.array([-np.pi, np.pi, 0.0, -0.0, -1e-300, np.nextafter(np.pi, 4), turn, -turn, 3 * np.pi, -40.0, 1e4])
cases = {
    "two passes": ((51,), [RNG.uniform(-np.pi, np.pi, 15)], {"longest_fft": 16, "eps": 1e-12}),
    "edges": ((12,), [edges], {"eps": 1e-11}),
    "no more modes than a window": ((2, 1), RNG.uniform(-np.pi, np.pi, (2, 15)), {"eps": 1e-12}),
    "complex64": ((9,), [RNG.uniform(-np.pi, np.pi, 15)], {"dtype": np.complex64, "eps": 1e-5}),
}
for kind in 1, 2:
    for name, (modes, coordinates, options) in cases.items():
        plan = Plan(kind, modes, **options).set_points(*coordinates)
        data = RNG.standard_normal(len(coordinates[0]) if kind == 1 else modes).astype(plan.dtype)
        if kind == 1:
            expected = direct.type1(coordinates, data, plan.modes, plan.sign)
        else:
            expected = direct.type2(coordinates, data, plan.sign)
        for _ in range(2):  # the second run finds the grid as the first left it
            error = np.linalg.norm(plan.execute(data) - expected) / np.linalg.norm(expected)
            # A tolerance bounds the root mean square. The error of a few elements may be several times as large.
            assert error <= 3 * options["eps"], (name, kind, error)
print(2 * len(cases), "transforms are right")
