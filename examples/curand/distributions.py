# SPDX-License-Identifier: BSD-2-Clause
"""Map 32-bit integers to cuRAND's distributions, in Python. Uniform numbers are bitwise equal to the GPU's."""

from __future__ import annotations

import math

import numpy as np

_INVERSE = np.float32(2.0**-32)


def uniform(x):
    """Return a float32 that is greater than 0 and at most 1."""
    return np.float32(x) * _INVERSE + _INVERSE / np.float32(2)


def uniform_double(x):
    """Return a float64 that is greater than 0 and at most 1, with 32 random bits."""
    return np.float64(x) * 2.0**-32 + 2.0**-32


def uniform_double_of_two(x, y):
    """Return a float64 that is greater than 0 and at most 1, with 53 random bits."""
    return np.float64(int(x) ^ (int(y) << 21)) * 2.0**-53 + 2.0**-54


def normal_pair(x, y):
    """Return two float32 numbers of the standard normal distribution (Box-Muller)."""
    radius = math.sqrt(-2 * math.log(float(uniform(x))))
    angle = 2 * math.pi * (int(y) + 0.5) * 2.0**-32
    return np.float32(radius * math.sin(angle)), np.float32(radius * math.cos(angle))
