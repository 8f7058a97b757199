# SPDX-License-Identifier: BSD-2-Clause
"""The front ends that this project extends: one module for each, with every seam between the two.

==============  ========================================================================================
``numba_cuda``  every seam with numba-cuda: listed, checked before any is touched, undoable
==============  ========================================================================================
"""
