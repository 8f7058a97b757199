# SPDX-License-Identifier: BSD-2-Clause
"""Rotate and reflect vectors with GLM, a header library of C++, called by name.

Get the headers from Debian's package, in any folder, without installing it:

    apt-get download libglm-dev && dpkg -x libglm-dev_*.deb glm
    python examples/glm_vectors.py glm/usr/include
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from _frontend import cuda
from _run import compare, run
from numba.cuda import autolink

# GLM includes headers of the host's C++ library, which NVRTC does not have: those of libcu++ take their places.
STANDARD_HEADERS = Path(__file__).resolve().parent / "glm_vectors"
SOURCE = """
#pragma nv_diag_suppress 20012
#include <glm/glm.hpp>
struct Vector { float x, y, z; };
"""


def headers():
    """Return the folder that has GLM; print how to get it and exit with 2 if it is not there."""
    folders = [*sys.argv[1:], "glm/usr/include", "/usr/include"]
    found = [folder for folder in folders if os.path.isfile(os.path.join(folder, "glm", "glm.hpp"))]
    if not found:
        print(f"This example needs GLM. Get the headers{str(__doc__).partition('Get the headers')[2]}")
        sys.exit(2)
    return found[0]


glm = autolink.cxx(
    SOURCE,
    include_paths=[headers(), STANDARD_HEADERS],
    defines={"GLM_FORCE_CUDA": 1, "CUDA_VERSION": 12000},
    options={"device_as_default_execution_space": True},
    namespace="glm",
)
smoothstep = glm.smoothstep
reflect = glm.expr("""[](float x, float y, float z) {
    vec3 r = reflect(vec3(x, y, z), normalize(vec3(1, 1, 0)));
    return Vector{r.x, r.y, r.z};
}""")


@smoothstep.python
def _(low, high, x):
    t = min(max((x - low) / (high - low), 0.0), 1.0)
    return t * t * (3 - 2 * t)


@reflect.python
def _(x, y, z):
    return -y, -x, z


@cuda.jit
def kernel(vectors, reflected, weights):
    i = cuda.grid(1)
    if i < weights.size:
        x, y, z = reflect(vectors[i, 0], vectors[i, 1], vectors[i, 2])
        reflected[i, 0], reflected[i, 1], reflected[i, 2] = x, y, z
        weights[i] = smoothstep(np.float32(0.25), np.float32(0.75), vectors[i, 0])


def launch():
    vectors = np.random.default_rng(1).random((500, 3), np.float32)
    reflected, weights = np.zeros_like(vectors), np.zeros(500, np.float32)
    kernel[4, 128](vectors, reflected, weights)
    t = np.clip((vectors[:, 0].astype(np.float64) - 0.25) / 0.5, 0, 1)
    expected = np.stack([-vectors[:, 1], -vectors[:, 0], vectors[:, 2]], 1)
    return all(
        [compare("reflect", reflected, expected, 1e-6), compare("smoothstep", weights, t * t * (3 - 2 * t), 1e-6)]
    )


def link():
    yield "kernel", autolink.build(kernel, "void(float32[:, ::1], float32[:, ::1], float32[::1])", cc=(9, 0))


if __name__ == "__main__":
    run(launch, link)
