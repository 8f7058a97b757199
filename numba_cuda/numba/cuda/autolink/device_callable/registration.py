# SPDX-License-Identifier: BSD-2-Clause
"""Registers device callables with the compiler by importing the modules that register themselves."""

from __future__ import annotations

from . import attributes, lowering, numba_types

__all__ = ["attributes", "lowering", "numba_types"]
