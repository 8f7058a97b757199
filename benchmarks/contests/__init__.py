# SPDX-License-Identifier: BSD-2-Clause
"""Compare kernels that call libraries with their native counterparts."""
