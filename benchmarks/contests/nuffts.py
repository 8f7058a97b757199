# SPDX-License-Identifier: BSD-2-Clause
"""Measure the nonuniform FFTs of examples/nufft.py: errors against the direct sum, and times against cufinufft."""

from __future__ import annotations

import importlib.util

import nufft
import numpy as np
from numba import cuda

from contests.timing import in_turn

POINTS = 10_000_000
CASES = [
    (kind, modes, eps, dtype)
    for modes in ((1_000_000,), (1000, 1000))
    for kind in (1, 2)
    for eps, dtype in ((1e-5, np.complex64), (1e-6, np.complex128), (1e-12, np.complex128))
]


def run():
    has_native = importlib.util.find_spec("cufinufft") is not None
    if not has_native:
        print("cufinufft is not installed: nonuniform FFTs are compared only with the direct sum")
    for kind, modes, eps, dtype in CASES:
        case = nufft.make_case(kind, modes, POINTS, eps, dtype)
        launches = {"ours": case}
        if has_native:
            launches["cufinufft"], result = native(case, kind, modes, eps, dtype)
        seconds = in_turn(launches, rounds=7, repeat=1, queued=False)  # cufinufft may wait for the device
        error = case.error()
        text = f"NUFFT type {kind}, {'x'.join(map(str, modes))}, {np.dtype(dtype)}, {eps:.0e}"
        shown = f"{text:52}{POINTS / seconds['ours'] / 1e6:7.0f} Mpt/s, error {error:.1e}"
        if has_native:
            case.result.copy_to_device(result.get())
            shown += f"; cufinufft{POINTS / seconds['cufinufft'] / 1e6:7.0f} Mpt/s, error {case.error():.1e}"
            shown += f", time {(seconds['ours'] / seconds['cufinufft'] - 1) * 100:+.0f} %"
        print(shown, flush=True)


def native(case, kind, modes, eps, dtype):
    """Return a launch of cufinufft on the same data, and its result."""
    import cufinufft
    import cupy as cp

    real = np.float32 if dtype == np.complex64 else np.float64
    points = [cp.asarray(x.astype(real)) for x in case.points]
    plan = cufinufft.Plan(kind, modes, eps=eps, isign=case.plan.sign, dtype=np.dtype(dtype).name)
    plan.setpts(*points)
    data = cp.asarray(case.data)
    result = cp.zeros(case.result.shape, dtype)
    return (lambda: plan.execute(data, result)), result


if __name__ == "__main__":
    print(cuda.get_current_device().name)
    run()
