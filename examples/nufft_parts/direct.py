# SPDX-License-Identifier: BSD-2-Clause
"""Compute the direct sums on the host. The transforms are compared with them."""

from __future__ import annotations

import numpy as np

from .window import frequencies


def roots(x, k, sign):
    """Return ``exp(sign i k x)`` for every x and k. Phases are reduced to one turn in extended precision."""
    turn = 2 * np.arccos(np.longdouble(-1))
    phase = np.outer(np.asarray(x, np.longdouble), k)
    return np.exp(sign * 1j * (phase - turn * np.round(phase / turn)).astype(np.float64))


def type1(coordinates, c, modes, sign, chosen=None):
    """Return modes from values at points. `chosen` has the array indices of the modes to compute in each dimension."""
    every = [np.arange(n) for n in modes] if chosen is None else chosen
    factors = [roots(x, frequencies(n)[k], sign) for x, n, k in zip(coordinates, modes, every, strict=True)]
    factors[0] *= np.asarray(c, np.complex128)[:, None]
    return factors[0].sum(axis=0) if len(modes) == 1 else factors[0].T @ factors[1]


def type2(coordinates, f, sign):
    """Return values at points from modes."""
    f = np.asarray(f, np.complex128)
    factors = [roots(x, frequencies(n), sign) for x, n in zip(coordinates, f.shape, strict=True)]
    return factors[0] @ f if f.ndim == 1 else ((factors[0] @ f) * factors[1]).sum(axis=1)
