# SPDX-License-Identifier: BSD-2-Clause
"""The fixtures of front ends."""

from front_ends import mlir  # noqa: F401
