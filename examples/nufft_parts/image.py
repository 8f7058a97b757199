# SPDX-License-Identifier: BSD-2-Clause
"""Reconstruct a picture, the Shepp-Logan head, from samples of its Fourier transform along radial lines.

The samples are exact: they come from the known transform of the ellipses, not from an image of them.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from .plan import Plan

# For each ellipse in the square from -1 to 1: the value that it adds, its half axes, centre and angle in degrees. This
# is the modified phantom of P. Toft, The Radon Transform, 1996.
ELLIPSES = [
    (1.0, 0.69, 0.92, 0.0, 0.0, 0),
    (-0.8, 0.6624, 0.874, 0.0, -0.0184, 0),
    (-0.2, 0.11, 0.31, 0.22, 0.0, -18),
    (-0.2, 0.16, 0.41, -0.22, 0.0, 18),
    (0.1, 0.21, 0.25, 0.0, 0.35, 0),
    (0.1, 0.046, 0.046, 0.0, 0.1, 0),
    (0.1, 0.046, 0.046, 0.0, -0.1, 0),
    (0.1, 0.046, 0.023, -0.08, -0.605, 0),
    (0.1, 0.023, 0.023, 0.0, -0.606, 0),
    (0.1, 0.023, 0.046, 0.06, -0.605, 0),
]


def phantom(size, finer=4):
    """Return the head in `size` by `size` pixels, row 0 at the bottom. A pixel is the mean of `finer`**2 points."""
    side = 2 * (np.arange(size * finer) + 0.5) / (size * finer) - 1 - 1 / size
    y, x = np.meshgrid(side, side, indexing="ij")
    image = np.zeros_like(x)
    for value, a, b, x0, y0, angle in ELLIPSES:
        c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        along, across = c * (x - x0) + s * (y - y0), c * (y - y0) - s * (x - x0)
        image += value * ((along / a) ** 2 + (across / b) ** 2 <= 1)
    return image.reshape(size, finer, size, finer).mean(axis=(1, 3))


def fourier_transform(k_x, k_y):
    """Return the head's Fourier transform, the integral of ``head(x, y) exp(-i (k_x x + k_y y))``."""
    total = np.zeros(k_x.shape, np.complex128)
    for value, a, b, x0, y0, angle in ELLIPSES:
        c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        q = np.hypot(a * (c * k_x + s * k_y), b * (c * k_y - s * k_x))
        total += value * 2 * np.pi * a * b * bessel_quotient(q) * np.exp(-1j * (k_x * x0 + k_y * y0))
    return total


def bessel_quotient(q):
    """Return ``J1(q) / q`` for ``q >= 0``, to about 1e-12, by Bessel's integral, or Hankel's expansion for large q."""
    result = np.empty_like(q)
    large = q > 25
    z = q[large]
    terms = np.cumprod([(4 - (2 * m - 1) ** 2) / (8 * m) for m in range(1, 20)])
    even = 1 + sum((-1) ** (m // 2) * terms[m - 1] / z**m for m in range(2, 20, 2))
    odd = sum((-1) ** (m // 2) * terms[m - 1] / z**m for m in range(1, 20, 2))
    phase = z - 0.75 * np.pi
    result[large] = np.sqrt(2 / (np.pi * z)) * (even * np.cos(phase) - odd * np.sin(phase)) / z
    # J1(q) / q is the mean of cos(q cos t) sin(t)**2 over a period, which equals the mean over a quarter of it.
    z = q[~large]
    t = (np.arange(40) + 0.5) * (np.pi / 80)
    result[~large] = sum(np.cos(z * np.cos(u)) * np.sin(u) ** 2 for u in t) / len(t)
    return result


def radial_samples(size):
    """Return the sampling points of a scan: `size` * pi / 2 lines through the centre, with 2 `size` samples on each.

    Returns ``k_y, k_x, weight``, with ``k_y`` and ``k_x`` in radians per pixel. A weight is a sample's area in the
    plane.
    """
    lines = round(size * np.pi / 2)
    angle = np.pi * np.arange(lines)[:, None] / lines
    radius = np.pi * (np.arange(2 * size) - size + 0.5) / size
    weight = np.broadcast_to(np.abs(radius), (lines, 2 * size)) * (np.pi / size) * (np.pi / lines)
    return (radius * np.sin(angle)).ravel(), (radius * np.cos(angle)).ravel(), weight.ravel()


def scan(size, k_y, k_x):
    """Return the values that a scan of the head measures, per pixel of an image of `size` by `size`."""
    return fourier_transform(k_x * size / 2, k_y * size / 2) * (size / 2) ** 2


def reconstruct(samples, weight, forward, adjoint, steps=4):
    """Return the image whose samples are nearest to `samples` with these weights, by conjugate gradients.

    `forward(image)` returns samples, by a transform of type 2. `adjoint(samples)` returns an image, by one of type 1.
    """
    image = np.zeros_like(adjoint(weight * samples))
    residual = adjoint(weight * samples)
    direction = residual.copy()
    power = np.vdot(residual, residual).real
    for _ in range(steps):
        image_of = adjoint(weight * forward(direction))
        length = power / np.vdot(direction, image_of).real
        image += length * direction
        residual -= length * image_of
        power, before = np.vdot(residual, residual).real, power
        direction = residual + power / before * direction
    return image.real


def reconstruct_head(size, eps=1e-5):
    """Return the head in `size` by `size` pixels, reconstructed from its exact radial samples by nonuniform FFTs."""
    k_y, k_x, weight = radial_samples(size)
    forward = Plan(2, (size, size), eps, sign=-1).set_points(k_y, k_x)
    adjoint = Plan(1, (size, size), eps, sign=+1).set_points(k_y, k_x)
    return reconstruct(scan(size, k_y, k_x), weight, forward.execute, adjoint.execute)


def write_png(path, image):
    """Save an array of values from 0 (black) to 1 (white), with its first row at the bottom."""
    levels = np.round(255 * np.clip(image[::-1], 0, 1)).astype(np.uint8)
    rows = np.pad(levels, ((0, 0), (1, 0)))  # each row begins with its filter type, 0 for none
    height, width = levels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")]
    framed = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(framed))


def likeness(image, size):
    """Return the correlation of an image with the head itself."""
    return float(np.corrcoef(image.ravel(), phantom(size).ravel())[0, 1])


def make_picture(path, size=256):
    """Reconstruct the head, save it, print its correlation with the head, and return whether that is high enough."""
    image = reconstruct_head(size)
    write_png(path, image)
    like = likeness(image, size)
    right = like > 0.99
    verdict = "ok" if right else "WRONG, expected more than 0.99"
    print(f"  {f'image of {size} x {size} from radial samples':<40} correlation {like:.4f}  {verdict}")
    print(f"  saved as {Path(path).resolve()}")
    return right
