# SPDX-License-Identifier: BSD-2-Clause
"""Registers device callables with the compiler: importing this module imports all that registers itself."""

from __future__ import annotations

from . import attributes, lowering, numba_types

__all__ = ["attributes", "lowering", "numba_types"]
