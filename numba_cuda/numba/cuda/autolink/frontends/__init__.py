# SPDX-License-Identifier: BSD-2-Clause
"""The front ends that this project extends: one module for each, with every seam between the two.

===================  ===================================================================================
``contract``         what a front end must provide, and what its seams must keep true
``seams``            seams: listed, checked before any is touched, undoable
``forked_process``   an error where a forked process could only wait for a lock of its parent
``emulated_driver``  every seam between numba-cuda and the driver that runs kernels on the CPU
``numba_cuda``       every seam with numba-cuda
``numba_cuda_mlir``  every seam with numba-cuda-mlir; importing the module imports that front end
===================  ===================================================================================
"""
