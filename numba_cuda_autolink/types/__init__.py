# SPDX-License-Identifier: BSD-2-Clause
"""The parameters of kernels and the variables of device code, as plain data.

==================  ==========================================================
``parameters``      what a kernel's parameters accept, and how they are passed
``variable_types``  what variables of device code are
==================  ==========================================================
"""
