# SPDX-License-Identifier: BSD-2-Clause
"""Compare kernels that call libraries with their native counterparts.

=====================  ===============================================================================
``timing``             times of several launches that take turns, and lines of the table
``ffts``               examples/fft.py and cuFFTDx against cuFFT, and nvmath-python's own kernel
``block_sums``         examples/cub against CUB in CUDA C++
``operators``            reductions and sorts with operators in Python against operators in C++
``gemms``              examples/nvmath_gemm.py against nvmath-python's own method
``random_numbers``     examples/curand against cuRAND's host library
``nuffts``             examples/nufft.py against the direct sum, and cufinufft
``build_times``        first and later builds, against nvmath-python's own
=====================  ===============================================================================
"""
