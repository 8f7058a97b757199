# SPDX-License-Identifier: BSD-2-Clause
"""The parameters of kernels and the variables of device code, as plain data."""
