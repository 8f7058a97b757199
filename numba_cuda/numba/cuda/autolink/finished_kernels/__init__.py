# SPDX-License-Identifier: BSD-2-Clause
"""Write finished kernels for other programs.

============  =================================================================
``saving``    files of finished kernels, which `numba_cuda_autolink.load` reads
``c_header``  a finished kernel as a header for C and C++ programs
============  =================================================================
"""
