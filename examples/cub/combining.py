# SPDX-License-Identifier: BSD-2-Clause
"""Compute reductions and scans with NumPy, for the simulator."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from .operators import in_numpy


def reduced(values, op):
    """Return the reduction of *values*, in order."""
    known = in_numpy(op)
    result = functools.reduce(op, values) if known is None else known.reduce(values, dtype=values.dtype)
    return values.dtype.type(result)


def scanned(values, op, initial=None):
    """Return the inclusive scan of *values*. With *initial*, return the exclusive scan that begins with it."""
    if initial is not None:
        values = np.concatenate([np.array([initial], values.dtype), values[:-1]])
    known = in_numpy(op)
    if known is not None:
        return known.accumulate(values, dtype=values.dtype)
    return np.array(list(itertools.accumulate(values, op)), values.dtype)
