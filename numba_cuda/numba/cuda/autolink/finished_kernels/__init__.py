# SPDX-License-Identifier: BSD-2-Clause
"""Write finished kernels for other programs."""
