# SPDX-License-Identifier: BSD-2-Clause
"""The fixtures of front ends."""

from front_ends import front_end  # noqa: F401
