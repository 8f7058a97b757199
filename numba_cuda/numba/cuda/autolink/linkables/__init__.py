# SPDX-License-Identifier: BSD-2-Clause
"""What a hook may return besides numba-cuda's own classes, and the protocols that describe hooks."""
