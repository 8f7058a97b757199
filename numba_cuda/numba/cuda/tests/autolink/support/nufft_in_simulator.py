# SPDX-License-Identifier: BSD-2-Clause
"""Small nonuniform FFTs in Numba's simulator, whose errors are printed as JSON lines for test_nufft.py.

The first argument is the folder of the examples; ``--thorough`` after it adds the cases that take seconds each.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import numpy as np
from nufft import nufft1d1, nufft1d2, nufft2d1, nufft2d2
from nufft_parts import direct
from nufft_parts.plan import Plan

RNG = np.random.default_rng(7)
THOROUGH = sys.argv[2:] == ["--thorough"]
SHORT = ("one dimension, sign -1", "two passes, odd", "edges", "no more modes than a window")


def vector(shape, dtype=np.complex128):
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


def report(name, result, expected, eps):
    error = float(np.linalg.norm(np.asarray(result) - expected) / np.linalg.norm(expected))
    print(json.dumps([name, error, eps]), flush=True)


# A tolerance bounds the root mean square. The error of a few elements may be several times as large.
SOME = 3


def check(name, kind, modes, coordinates, eps=1e-9, times=1, **options):
    data = vector(len(coordinates[0]) if kind == 1 else modes)  # always drawn: both forms have the same numbers
    if not THOROUGH and name not in SHORT:
        return
    plan = Plan(kind, modes, eps, **options).set_points(*coordinates)
    data = data.astype(plan.dtype)
    for _ in range(times):  # later runs find the grid as the first left it
        result = plan.execute(data)
    if kind == 1:
        expected = direct.type1(coordinates, data, plan.modes, plan.sign)
    else:
        expected = direct.type2(coordinates, data, plan.sign)
    report(f"{name}, type {kind}", result, expected, SOME * eps if np.prod(modes) < 10 else eps)


def uniform(dimensions, points=15):
    return list(RNG.uniform(-np.pi, np.pi, (dimensions, points)))


turn = 2 * np.pi
edges = np.array([-np.pi, np.pi, 0.0, -0.0, -1e-300, np.nextafter(np.pi, 4), turn, -turn, 3 * np.pi, -40.0, 1e4])
for kind in 1, 2:
    for sign in 1, -1:
        check(f"one dimension, sign {sign:+d}", kind, (11,), uniform(1), sign=sign, times=2)
    for modes in (1,), (2,), (3,):
        check(f"{modes[0]} modes", kind, modes, uniform(1))
    check("two passes, 16 x 8", kind, (64,), uniform(1), longest_fft=16, times=2)
    check("two passes, odd", kind, (51,), uniform(1), sign=-1, longest_fft=16, eps=1e-12)
    check("many bins", kind, (500 if kind == 1 else 400,), uniform(1, 100), longest_fft=32, eps=1e-3)
    check("many points in one bin", kind, (5,), uniform(1, 140), dtype=np.complex64, eps=1e-4)
    check("edges", kind, (12,), [edges], eps=1e-11)
    check("no more modes than a window", kind, (2, 1), uniform(2), eps=1e-12)
    check("two dimensions, not square", kind, (9, 4), uniform(2), sign=1, times=2)
    check("two dimensions, bins both ways", kind, (17, 10), uniform(2, 25), sign=-1, eps=1e-12)
    check("two dimensions, edges", kind, (6, 5), [edges, edges[::-1].copy()], eps=1e-11)
    check("two dimensions, complex64", kind, (6, 5), uniform(2), dtype=np.complex64, eps=1e-5)

x, y = uniform(2)
c, f, g = vector(15), vector(7), vector((3, 4), np.complex64)
report("nufft1d1", nufft1d1(x, c, 7, eps=1e-8), direct.type1([x], c, (7,), 1), 1e-8)
report("nufft1d2", nufft1d2(x, f, eps=1e-8), direct.type2([x], f, -1), 1e-8)
report("nufft2d1", nufft2d1(x, y, c, (3, 4), sign=-1), direct.type1([x, y], c, (3, 4), -1), SOME * 1e-6)
values = nufft2d2(x.astype(np.float32), y, g, eps=1e-5)
report("nufft2d2", values, direct.type2([x.astype(np.float32), y], g, -1), SOME * 1e-5)
report("dtype follows the data", [values.dtype == np.complex64], [1.0], 0)

report("no points, type 1", Plan(1, 7).set_points(x[:0]).execute(c[:0]) + 1, np.ones(7), 0)
report("no points, type 2", [1.0 + Plan(2, 7).set_points(x[:0]).execute(f).size], [1.0], 0)
