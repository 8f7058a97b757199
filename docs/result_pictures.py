# SPDX-License-Identifier: BSD-2-Clause
"""Make the pictures of results in the gallery, docs/_static/result_*, from what the examples' kernels compute.

python docs/result_pictures.py            # write all of them; in Numba's simulator where there is no GPU
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from numba import cuda

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / "docs" / "_static"


def main(names: Iterable[str] = ()) -> None:
    """Write the pictures with these *names*, by default all."""
    if not cuda.is_available():  # the simulator must be chosen before Numba is imported
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"})
    sys.path.insert(0, str(PROJECT / "examples"))
    for name in names or PICTURES:
        PICTURES[name](FOLDER / name)


def own_cu_file(path: Path) -> None:
    """Draw a scene as a sensor sees it, and next to it as the kernel of own_cu_file.py develops it."""
    import numpy as np
    from nufft_parts.image import phantom, write_png
    from own_cu_file import expose

    scene = (0.25 * phantom(128)).astype(np.float32)
    shot = np.zeros_like(scene)
    expose[scene.size // 128, 128](scene.ravel(), shot.ravel())
    write_png(path, np.hstack([scene, shot]))


def nufft(path: Path) -> None:
    """Draw the image that nufft.py reconstructs. The simulator is too slow for it: without a GPU, the direct sums with
    which the example compares its results draw it smaller."""
    from _run import simulated
    from nufft_parts import direct, image

    size = 256 if not simulated() else 96
    if not simulated():
        image.write_png(path, image.reconstruct_head(size))
        return
    k_y, k_x, weight = image.radial_samples(size)

    def forward(of_image: Any) -> Any:
        return direct.type2([k_y, k_x], of_image, -1)

    def adjoint(samples: Any) -> Any:
        return direct.type1([k_y, k_x], samples, (size, size), +1)

    image.write_png(path, image.reconstruct(image.scan(size, k_y, k_x), weight, forward, adjoint))


def curand_monte_carlo(path: Path) -> None:
    """Draw points of the generators of curand_monte_carlo.py in two dimensions, and the circle that they measure."""
    import numpy as np
    from curand import direction_vectors
    from curand_monte_carlo import philox, sobol

    @cuda.jit
    def of_philox(points, seed):
        state = cuda.local.array(1, philox.state_type)
        philox.init(state, seed, 0)
        for i in range(points.size):
            points[i // 2, i % 2] = philox.uniform(state)

    @cuda.jit
    def of_sobol(points, directions):
        states = cuda.local.array(2, sobol.state_type)
        for d in range(2):
            sobol.init(states[d : d + 1], directions[d], 0)
        for i in range(points.size):
            points[i // 2, i % 2] = sobol.uniform(states[i % 2 : i % 2 + 1])

    drawn = {}
    for name, kernel, source in (("Philox", of_philox, np.uint64(7)), ("Sobol", of_sobol, direction_vectors(2))):
        drawn[name] = np.zeros((512, 2), np.float32)
        kernel[1, 1](drawn[name], source)
    path.write_text(scattered(drawn))


def scattered(series: dict[str, Any]) -> str:
    """Return the points of each of several *series* in a unit square of its own, with a quarter of a circle, as SVG."""
    side, left = 240, 10
    size = f"{len(series) * (side + 20)} {side + 40}"
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">']
    lines.append("<style>text { font: 13px sans-serif; fill: #1f2328 }</style>")
    lines.append('<rect width="100%" height="100%" fill="#ffffff"/>')
    for name, points in series.items():
        bottom, inside = 30 + side, (points**2).sum(axis=1) < 1
        area = f"{4 * inside.mean():.3f}"
        lines.append(f'<text x="{left}" y="20">{name}: {len(points)} points, \u03c0 \u2248 {area}</text>')
        lines.append(f'<rect x="{left}" y="30" width="{side}" height="{side}" fill="none" stroke="#d1d9e0"/>')
        arc = f"M {left} 30 A {side} {side} 0 0 1 {left + side} {bottom}"
        lines.append(f'<path d="{arc}" fill="none" stroke="#818b98"/>')
        for (x, y), within in zip(points, inside, strict=True):
            colour = "#0969da" if within else "#bf3989"
            lines.append(f'<circle cx="{left + side * x:.1f}" cy="{bottom - side * y:.1f}" r="1.8" fill="{colour}"/>')
        left += side + 20
    return "\n".join([*lines, "</svg>", ""])


PICTURES: dict[str, Callable[[Path], None]] = {
    "result_own_cu_file.png": own_cu_file,
    "result_nufft.png": nufft,
    "result_curand_monte_carlo.svg": curand_monte_carlo,
}

if __name__ == "__main__":
    main(sys.argv[1:])
