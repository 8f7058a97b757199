# SPDX-License-Identifier: BSD-2-Clause
"""What is installed, whether it works, and what is wrong, for the command ``doctor``: it needs no Numba."""
