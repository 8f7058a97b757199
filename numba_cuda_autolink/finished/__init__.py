# SPDX-License-Identifier: BSD-2-Clause
"""Files of finished kernels, and the kernels and variables in them."""
