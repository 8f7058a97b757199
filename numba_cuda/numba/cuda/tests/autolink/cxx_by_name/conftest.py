# SPDX-License-Identifier: BSD-2-Clause
"""The fixtures of front ends."""

from front_ends import cuda, front_end  # noqa: F401
