# SPDX-License-Identifier: BSD-2-Clause
"""cuRAND's distributions of 32-bit integers, in Python. Uniform numbers have the same bits as on the GPU."""

from __future__ import annotations

import math

import numpy as np

_INVERSE = np.float32(2.0**-32)


def uniform(x):
    """A float32 above 0 and at most 1."""
    return np.float32(x) * _INVERSE + _INVERSE / np.float32(2)


def uniform_double(x):
    """A float64 above 0 and at most 1, with 32 random bits."""
    return np.float64(x) * 2.0**-32 + 2.0**-32


def uniform_double_of_two(x, y):
    """A float64 above 0 and at most 1, with 53 random bits."""
    return np.float64(int(x) ^ (int(y) << 21)) * 2.0**-53 + 2.0**-54


def normal_pair(x, y):
    """Two float32 of the standard normal distribution (Box-Muller)."""
    radius = math.sqrt(-2 * math.log(float(uniform(x))))
    angle = 2 * math.pi * (int(y) + 0.5) * 2.0**-32
    return np.float32(radius * math.sin(angle)), np.float32(radius * math.cos(angle))
