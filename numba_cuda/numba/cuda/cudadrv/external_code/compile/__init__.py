# SPDX-License-Identifier: BSD-2-Clause
"""Compile, once, what is not linked as it is: CUDA C++ with NVRTC, LLVM bitcode with NVVM."""
