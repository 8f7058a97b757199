# SPDX-License-Identifier: BSD-2-Clause
"""numba-cuda, the first front end."""
