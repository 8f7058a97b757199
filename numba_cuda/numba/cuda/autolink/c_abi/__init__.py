# SPDX-License-Identifier: BSD-2-Clause
"""The C ABI: how C sees the values of kernels, and the C functions that calls stand for."""
