# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the reports."""

from front_ends import front_end  # noqa: F401
