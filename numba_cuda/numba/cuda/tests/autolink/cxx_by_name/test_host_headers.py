# SPDX-License-Identifier: BSD-2-Clause
"""Headers of the host's library, with the names of libcu++: ``host_headers=True``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from docs_runner import blocks_of
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.inputs.cuda_source import HOST_HEADERS

CC = (9, 0)
LIBRARY = """
namespace made_for_cpus {
struct Angle { double turns; };
inline std::ostream& operator<<(std::ostream& out, Angle a) { return out << a.turns; }
inline std::string name(Angle) { return "angle"; }
inline void show(Angle a, char* text) { snprintf(text, 9, "%f", a.turns); std::fprintf(stderr, "%s", text); }
void log(const std::vector<Angle>&, const std::map<std::string, int>&);
template <class T> T cells(T x) { return std::floor(std::abs(x)) + std::max(std::numeric_limits<T>::min(), T(1)); }
inline double sum(std::array<double, 3> a) { return std::get<0>(a) + a[1] + std::pow(a[2], 2); }
inline float length(std::complex<float> z) { return std::abs(z); }
inline int differ(const char* a) { return std::memcmp(a, "abd", 3); }
}
template <> class std::numeric_limits<made_for_cpus::Angle> {
public:
    static constexpr bool is_specialized = true;
    static constexpr int digits = 7;
};
template <> struct std::hash<made_for_cpus::Angle> { int operator()(made_for_cpus::Angle) const { return 3; } };
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library that includes all of the headers, some in quotes, and specialises templates of ``std``."""
    names = sorted(each for each in os.listdir(HOST_HEADERS) if not each.startswith("nca_"))
    assert len(names) > 80
    included = [f'#include "{each}"' if n % 2 else f"#include <{each}>" for n, each in enumerate(names)]
    folder = tmp_path_factory.mktemp("library")
    (folder / "made_for_cpus.hpp").write_text("\n".join(["#pragma once", *included, LIBRARY]))
    return autolink.cxx(
        "#include <made_for_cpus.hpp>", include_paths=[folder], namespace="made_for_cpus", host_headers=True
    )


def test_a_library_for_cpus_computes(library):
    last = library.expr("[] { return sum(std::array<double, 3>{1, 2, 3}); }")
    digits = library.expr("[] { return std::numeric_limits<Angle>::digits + std::hash<Angle>()(Angle{0}); }")

    def kernel(x, z):
        x[0] = library.cells(x[0])
        x[1] = last()
        x[2] = digits()
        x[3] = library.length(z[0])
        x[4] = library.differ("abc") < 0

    x, z = np.array([-2.5, 0, 0, 0, 0]), np.array([3 + 4j], np.complex64)
    autolink.build(kernel, "void(float64[::1], complex64[::1])", cc=CC).emulate[1, 1](x, z)
    np.testing.assert_array_equal(x, [3, 12, 10, 5, 1])


@pytest.mark.parametrize(
    ("header", "function", "expected"),
    [("algorithm", "std::max(x, 2.5f)", 2.5), ("cmath", "std::sqrt(x)", 1), ("utility", "std::move(x)", 1)],
)
def test_a_header_has_its_functions_without_the_others(header, function, expected):
    source = f"#include <{header}>\n__device__ float f(float x) {{ return {function}; }}"
    library = autolink.cxx(source, host_headers=True)

    def kernel(x):
        x[0] = library.f(x[0])

    x = np.ones(1, np.float32)
    autolink.build(kernel, "void(float32[::1])", cc=CC).emulate[1, 1](x)
    assert x[0] == expected


@pytest.mark.parametrize(
    ("header", "body", "reason"),
    [
        ("vector", "std::vector<int> v; return 1;", "device code has no std::vector: use cuda::std::array"),
        ("sstream", "std::ostringstream s; return 1;", "device code has no std::ostringstream: use printf"),
        (
            "utility",
            "return std::stable_partition(1);",
            "device code has no std::stable_partition: use algorithms of CUB",
        ),
    ],
)
def test_what_no_device_has_is_refused(header, body, reason):
    library = autolink.cxx(f"#include <{header}>", host_headers=True)
    with pytest.raises(autolink.CxxError, match=reason):
        library.expr(f"[] {{ {body} }}").signature(cc=CC)


@pytest.mark.skipif(not Path("/usr/include/eigen3").is_dir(), reason="Eigen (libeigen3-dev) is not installed")
def test_fixed_size_linear_algebra_of_eigen(tmp_path):
    page = Path(__file__).parents[6] / "docs" / "how_to_header_only.md"
    names: dict[str, Any] = {}
    exec(next(each.code for each in blocks_of(page.read_text()) if "def copy_eigen" in each.code), names)
    names["copy_eigen"]("/usr/include/eigen3", tmp_path / "eigen")
    eigen = autolink.cxx("#include <Eigen/Dense>", include_paths=[tmp_path / "eigen"], host_headers=True)
    of = "Eigen::Map<const Eigen::Matrix{}>(a){}"
    product = eigen.expr(
        "[](const float* a, const float* b, float* c) { Eigen::Map<Eigen::Matrix4f>{c} ="
        " Eigen::Map<const Eigen::Matrix4f>(a) * Eigen::Map<const Eigen::Matrix4f>(b); }"
    )
    inverse = eigen.expr(
        f"[](const double* a, double* c) {{ Eigen::Map<Eigen::Matrix3d>{{c}} = {of.format('3d', '.inverse()')}; }}"
    )
    dot = eigen.expr(
        "[](const double* a, const double* b) {"
        " return Eigen::Map<const Eigen::Vector3d>(a).dot(Eigen::Map<const Eigen::Vector3d>(b)); }"
    )

    def kernel(a, b, c, p, q, r):
        product(a, b, c)
        inverse(p, q)
        r[0] = dot(p[0], p[1])

    random = np.random.default_rng(1)
    a, b = random.random((2, 4, 4), dtype=np.float32)
    p, c, q, r = random.random((3, 3)), np.zeros((4, 4), np.float32), np.zeros((3, 3)), np.zeros(1)
    signature = (
        "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1])"
    )
    autolink.build(kernel, signature, cc=CC).emulate[1, 1](a, b, c, p, q, r)
    np.testing.assert_allclose(c, b @ a, rtol=1e-6)  # Eigen's matrices are in the order of Fortran
    np.testing.assert_allclose(q, np.linalg.inv(p), rtol=1e-9)
    np.testing.assert_allclose(r[0], p[0] @ p[1])
