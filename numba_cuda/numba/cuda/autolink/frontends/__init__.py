# SPDX-License-Identifier: BSD-2-Clause
"""The front ends that this project extends: a package for each, with every seam between the two.

==============  ==============================================================================
``numba_cuda``  numba-cuda
``mlir``        numba-cuda-mlir; importing a module of the package imports that front end
==============  ==============================================================================
"""
