# SPDX-License-Identifier: BSD-2-Clause
"""``@cuda.jit(cache=True)`` for kernels with external code."""
