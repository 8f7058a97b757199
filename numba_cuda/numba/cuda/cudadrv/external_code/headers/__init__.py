# SPDX-License-Identifier: BSD-2-Clause
"""The headers that a compile of CUDA C++ has looked up, and whether they have changed."""
