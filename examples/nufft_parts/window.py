# SPDX-License-Identifier: BSD-2-Clause
"""The window function, which spreads a nonuniform point on the fine grid.

It is the Kaiser-Bessel window, ``I0(beta sqrt(1 - (2 t / width)^2)) / I0(beta)`` for ``|t| <= width / 2``, in units of
the fine grid's spacing. A point spreads to `width` grid points. Dividing the modes by the window's Fourier transform
undoes the spreading, up to aliasing, which shrinks tenfold with each unit of width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

WIDEST = 16


@dataclass(frozen=True)
class Window:
    """A window of `width` grid points for modes up to `ratio` of the fine grid's size, at most one half."""

    width: int
    ratio: float

    @property
    def beta(self) -> float:
        """The shape parameter with the least aliasing, to a few percent of the error. It was determined empirically."""
        return np.pi * (max((self.width * (1 - self.ratio / 2)) ** 2 - 0.6, 1.0)) ** 0.5

    def __call__(self, t):
        inside = np.clip(1 - (2 * np.asarray(t) / self.width) ** 2, 0, None)
        return np.i0(self.beta * np.sqrt(inside)) / np.i0(self.beta)

    def transform(self, frequency):
        """Return the Fourier transform, the integral of ``window(t) cos(2 pi frequency t)``.

        *frequency* is in cycles per grid point.
        """
        root = np.sqrt(self.beta**2 - (np.pi * self.width * np.asarray(frequency)) ** 2 + 0j)
        quotient = np.divide(np.sinh(root), root, out=np.ones_like(root), where=root != 0)
        return self.width * quotient.real / np.i0(self.beta)

    def aliasing(self, modes: int, size: int) -> float:
        """Return the root mean square, over modes, of the aliasing from random points, relative to the mode."""
        frequency = frequencies(modes)[:: 1 + modes // 500] / size
        period = np.arange(1, 9)[:, None]
        aliases = self.transform(frequency - period) ** 2 + self.transform(frequency + period) ** 2
        return float(np.sqrt(np.mean(aliases.sum(axis=0) / self.transform(frequency) ** 2)))

    def polynomials(self, eps: float) -> np.ndarray:
        """Return the window as one polynomial for each grid point that it covers, of the lowest degree for error `eps`.

        ``[d, i]`` is the coefficient of ``z**(degree - d)`` at grid point ``i``, which is at
        ``t = i + (z + 1) / 2 - width / 2``, for ``-1 <= z <= 1``.
        """
        z = np.linspace(-1, 1, 101)
        pieces = [lambda z, i=i: self(i + (z + 1) / 2 - self.width / 2) for i in range(self.width)]
        for degree in range(2, 21):
            fits = [Chebyshev.interpolate(piece, degree).convert(kind=Polynomial) for piece in pieces]
            if max(abs(fit(z) - piece(z)).max() for fit, piece in zip(fits, pieces, strict=True)) <= eps:
                break
        return np.array([np.pad(fit.coef, (0, degree + 1 - len(fit.coef))) for fit in fits]).T[::-1].copy()


def frequencies(modes: int) -> np.ndarray:
    """Return the frequencies of `modes` modes in the order of arrays: ``-(modes // 2), ...``."""
    return np.arange(modes) - modes // 2


def window_for(eps: float, modes: tuple[int, ...], sizes: tuple[int, ...]) -> Window:
    """Return the narrowest window that keeps aliasing below `eps`, for these modes on a fine grid of these sizes."""
    dimensions = list(zip(modes, sizes, strict=True))
    ratio = max(n / size for n, size in dimensions)
    for width in range(2, WIDEST + 1):
        window = Window(width, ratio)
        if sum(window.aliasing(n, size) ** 2 for n, size in dimensions) ** 0.5 <= 0.8 * eps:
            break
    return window


def deconvolution(window: Window, modes: int, size: int) -> np.ndarray:
    """Return the factor for each mode that undoes the window on a fine grid of `size` points."""
    return 1 / window.transform(frequencies(modes) / size)
