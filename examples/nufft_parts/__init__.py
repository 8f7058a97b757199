# SPDX-License-Identifier: BSD-2-Clause
"""The parts of examples/nufft.py.

=============  ====================================================================================
``window``     the window function that spreads points: its width, polynomials and Fourier transform
``points``     nonuniform points: their positions on the fine grid, sorted into bins
``spread``     kernels between points and fine grid, with one tile per bin
``transform``  the FFT of the fine grid: passes that call an FFT object between fused loads and stores
``plan``       `Plan`, which combines these
``direct``     the direct sums, for comparison
``image``      a phantom, its exact radial samples, its reconstruction, and a PNG file
=============  ====================================================================================
"""
