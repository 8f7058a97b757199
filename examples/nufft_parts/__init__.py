# SPDX-License-Identifier: BSD-2-Clause
"""The parts of examples/nufft.py.

=============  ====================================================================================
``window``     the function that points are spread with: its width, polynomials and Fourier transform
``points``     nonuniform points: where they lie on the fine grid, sorted into bins
``spread``     kernels between points and fine grid, one block to a bin
``transform``  the FFT of the fine grid: passes of a called FFT object between fused loads and stores
``plan``       `Plan`, which puts these together
``direct``     the sums themselves, to compare with
``image``      a phantom, its exact radial samples, its reconstruction, and a PNG file
=============  ====================================================================================
"""
