# SPDX-License-Identifier: BSD-2-Clause
"""Headers of the host's library, with the names of libcu++: ``host_headers=True``."""

from __future__ import annotations

import os
import re
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from docs_runner import blocks_of
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.inputs.cuda_source import HOST_HEADERS
from repository import DOCS

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


@pytest.mark.parametrize("header", ["cmath", "math.h", "complex"])
def test_macros_of_mathematics(header):
    names = re.findall(r"\w+", "PI PI_2 PI_4 1_PI 2_PI 2_SQRTPI E LOG2E LOG10E LN2 LN10 SQRT2 SQRT1_2")
    values = ", ".join(f"M_{name}" for name in names)
    source = f"""#include <{header}>
        __device__ double value(int k) {{
            const double all[] = {{{values}, HUGE_VAL, HUGE_VALF, INFINITY}};
            return all[k];
        }}"""
    library = autolink.cxx(source, host_headers=True)

    def kernel(x):
        for k in range(x.size):
            x[k] = library.value(k)

    x = np.zeros(len(names) + 3)
    autolink.build(kernel, "void(float64[::1])", cc=CC).emulate[1, 1](x)
    pi = np.pi
    powers = np.e, np.log2(np.e), np.log10(np.e), np.log(2), np.log(10), 2**0.5, 0.5**0.5
    np.testing.assert_array_max_ulp(x[:-3], [pi, pi / 2, pi / 4, 1 / pi, 2 / pi, 2 / pi**0.5, *powers], maxulp=1)
    assert (x[-3:] == np.inf).all()


@pytest.mark.parametrize("host_headers", [False, True])
def test_a_macro_of_mathematics_without_its_header(host_headers):
    library = autolink.cxx("__device__ double f() { return M_PI; }", host_headers=host_headers)
    todo = (
        "include <cmath>, which defines" if host_headers else "pass host_headers=True and include <cmath>, which then"
    )
    with pytest.raises(autolink.CxxError, match=f"what to do: {todo}"):
        library.f.signature(cc=CC)


@pytest.mark.parametrize(
    ("header", "body", "reason"),
    [
        ("utility", "return std::stable_partition(1);", "use algorithms of CUB, or a loop"),
        ("thread", "std::future<int> f; return 1;", "std::future"),
    ],
)
def test_what_is_not_declared_is_refused(header, body, reason):
    library = autolink.cxx(f"#include <{header}>\n#include <future>", host_headers=True)
    with pytest.raises(autolink.CxxError, match=reason):
        library.expr(f"[] {{ {body} }}").signature(cc=CC)


FOR_CPUS = {
    "vector": """
        std::vector<int> v(3), w{1, 2}, u = v; v.push_back(x); v.emplace_back(4); v.insert(v.begin(), 1); v.resize(7);
        for (int each : v) x += each;
        return v.size() + v[0] + v.at(1) + v.back() + *v.data() + w.empty() + (u == w);""",
    "map": """
        std::map<int, float> m{{1, 2.f}}; m[3] = 4; m.insert({5, 6.f}); m.emplace(7, 8.f); m.erase(1);
        for (const auto& [key, value] : m) x += key + value;
        auto found = m.find(x);
        return found != m.end() ? found->second : m.count(1) + m.at(3);""",
    "unordered_map": "std::unordered_map<int, int> m; m[x] = 1; return m.at(x) + m.size();",
    "set": "std::set<int> s; s.insert(x); return s.count(x) + *s.begin();",
    "queue": "std::queue<int> q; q.push(x); int first = q.front(); q.pop(); return first + q.size();",
    "list": "std::list<int> l; l.push_front(x); for (int each : l) x += each; return x;",
    "string": """
        std::string s = "a"; s += "b"; s = s + std::to_string(x) + 'c';
        if (s == "abc" || s.find("b") == std::string::npos) return 1;
        return s.substr(1, 2).size() + s[0] + s.back();""",
    "cout": 'std::cout << std::setw(3) << std::hex << x << " " << 1.5 << std::endl; return x;',
    "ostringstream": "std::ostringstream s; s << x; std::string t = s.str(); std::cerr << t; return x;",
    "shared_ptr": "auto p = std::make_shared<int>(x); std::shared_ptr<int> q = p; return *q + p.use_count();",
    "function": "std::function<int(int)> f = [](int y) { return y; }; return f(x);",
    "sort": "std::vector<int> v{x, 1}; std::sort(v.begin(), v.end()); return v[0];",
    "mt19937": "std::mt19937 g(x); std::uniform_int_distribution<int> d(0, 3); return d(g) + std::random_device()();",
    "string_view": 'std::string_view v = "ab"; std::string s(v); std::string_view w = s; return w.size();',
    "mutex": "static std::mutex m; std::lock_guard<std::mutex> lock(m); return x;",
}
HEADERS = """algorithm functional iomanip iostream list map memory mutex queue random set sstream stdexcept string
    string_view unordered_map vector"""
INCLUDED = re.sub(r"(\w+)\s*", r"#include <\1>\n", HEADERS)
#: Those of the functions that need a header which older versions of libcu++ lack.
NEWER = {"mt19937": "random", "string_view": "string_view"}


def skip_without(header):
    """Skip the test where libcu++ has no *header*."""
    source = f"#include <cuda/std/version>\n#if !__has_include(<cuda/std/{header}>)\n#error none\n#endif\n"
    try:
        autolink.cxx(f"{source}__device__ int zero() {{ return 0; }}").zero.signature(cc=CC)
    except autolink.CxxError as e:
        assert "none" in str(e)
        pytest.skip(f"this libcu++ has no <cuda/std/{header}>")


@pytest.mark.parametrize("name", FOR_CPUS)
def test_functions_for_cpus_compile_and_only_a_call_is_refused(name):
    if name in NEWER:
        skip_without(NEWER[name])
    library = autolink.cxx(f"{INCLUDED}inline int f(int x) {{ {FOR_CPUS[name]} }}", host_headers=True)
    other = library.expr("[](int x) { return x + 1; }")

    def kernel(x):
        x[0] = other(x[0])

    def wrong(x):
        x[0] = library.f(x[0])

    autolink.build(kernel, "void(int32[::1])", cc=CC)
    with pytest.raises(autolink.LinkError, match=r"^the kernel's code uses std::\w+, which device code does not have"):
        autolink.build(wrong, "void(int32[::1])", cc=CC)


@pytest.mark.parametrize("name", ["sort", "stable_sort", "nth_element", "mt19937", "random_device"])
def test_what_is_declared_only_is_not_in_libcu(name):  # where it is, ours would hide it
    library = autolink.cxx(f"#include <algorithm>\n#include <random>\nusing cuda::std::{name};", host_headers=True)
    with pytest.raises(autolink.CxxError, match=f'namespace "cuda::std" has no member "{name}"'):
        library.expr("[] { return 1; }").signature(cc=CC)


def test_an_error_names_what_the_kernel_uses():
    library = autolink.cxx(f"{INCLUDED}inline int f(int x) {{ std::vector<int> v(x); return 1; }}", host_headers=True)

    def kernel(x):
        x[0] = library.f(x[0])

    with pytest.raises(autolink.LinkError) as failure:
        autolink.build(kernel, "void(int32[::1])", cc=CC)
    first, *others = str(failure.value).splitlines()
    assert first == "the kernel's code uses std::vector, which device code does not have"
    (todo,) = [line for line in others if "what to do:" in line]
    assert todo.startswith("  what to do: use cuda::std::array of <cuda/std/array>, or memory that the kernel passes")


@pytest.mark.parametrize(
    ("header", "body"), [("ostream", 'fprintf(stderr, "x"); return abs(x);'), ("string", "abort();")]
)
def test_a_header_includes_those_that_libraries_expect_it_to(header, body):
    source = f"#include <{header}>\ninline int f(int x) {{ {body} return x; }}\n__device__ int g() {{ return 1; }}"
    autolink.cxx(source, host_headers=True).g.signature(cc=CC)


CLASSES = """
struct Table { std::vector<int> values; std::string name; int size; };
class Wrong : public std::runtime_error {
public:
    explicit Wrong(const std::string& text) : std::runtime_error("wrong: " + text) {}
    const char* what() const noexcept override { return "wrong"; }
};
struct Plain : std::exception {};
constexpr int checked(int x) { return x > 0 ? x : throw std::invalid_argument("x"); }
static_assert(checked(3) == 3, "");
inline int root(int x) {
    if (x < 0) throw Wrong("got " + std::to_string(x));
    if (x > 99) throw "text";
    return x + 1;
}
"""


def test_what_is_thrown_stops_the_kernel():
    library = autolink.cxx(INCLUDED + CLASSES, host_headers=True)

    def kernel(x):
        x[0] = library.checked(library.root(x[0]))

    linked = autolink.build(kernel, "void(int32[::1])", cc=CC)
    x = np.full(1, 3, np.int32)
    linked.emulate[1, 1](x)
    assert x[0] == 4
    for wrong in -3, 100, -1:
        with pytest.raises(Exception, match=r"^Assertion `nothing is thrown` failed\n  at: .*\n      .*\bthrow "):
            linked.emulate[1, 1](np.full(1, wrong, np.int32))


def test_structs_with_containers_have_the_size_that_they_have_on_cpus():
    names = {"std::vector<int>": 24, "std::string": 32, "std::map<int, int>": 48, "std::unordered_map<int, int>": 56}
    names |= {"std::set<int>": 48, "std::list<int>": 24, "std::deque<int>": 80, "std::shared_ptr<int>": 16}
    names |= {"std::function<void()>": 32, "std::mutex": 40, "std::queue<int>": 80, "std::runtime_error": 16}
    asserted = "\n".join(f'static_assert(sizeof({name}) == {size}, "{name}");' for name, size in names.items())
    autolink.cxx(f"{INCLUDED}{asserted}\n__device__ int f() {{ return 1; }}", host_headers=True).f.signature(cc=CC)


@pytest.mark.parametrize(
    ("code", "options", "remedy"),
    [
        ("int f(int x) { try { return x; } catch (...) { return 0; } }", {"host_headers": True}, "leave out try and"),
        ("int f(int x) { if (x) throw 1; return x; }", {}, "use host_headers=True, with which throw stops the kernel"),
        ("int f(int x) throw() { return x; }", {"host_headers": True}, r"write noexcept for throw\(\); or, if"),
        ("#include <ostream>\nint f(int x) { return x; }", {}, r"; or where .*, host_headers=True; or put a file"),
        ("#include <regex>\nint f(int x) { return x; }", {"host_headers": True}, "#ifndef __CUDACC_RTC__ and #endif"),
    ],
)
def test_an_error_says_how_to_leave_code_to_the_host(code, options, remedy):
    source = f"#include <stdexcept>\n{code}" if options and "#" not in code else code
    with pytest.raises(autolink.CxxError, match=f"what to do: .*{remedy}"):
        autolink.cxx(source, **options).f.signature("int32", cc=CC)


def test_throw_can_stay_as_it_is():
    declared = "struct E : std::exception { const char* what() const throw() { return 0; } };"
    source = f"#include <stdexcept>\n{declared} int f() {{ return 1; }}"
    autolink.cxx(source, host_headers=True, defines={"throw": "throw"}).f.signature(cc=CC)


def test_macros_of_one_capital_letter_leave_the_headers_as_they_are(library):
    macros = dict.fromkeys(set(string.ascii_uppercase) - set("KT"), 1)  # which headers of CUDA use
    names = sorted(each for each in os.listdir(HOST_HEADERS) if not each.startswith("nca_"))
    source = "".join(f"#include <{each}>\n" for each in names) + "__device__ int f() { return A + Z; }"
    autolink.cxx(source, host_headers=True, defines=macros).f.signature(cc=CC)


def test_names_in_the_headers_that_are_not_the_standards_are_reserved():
    for path in Path(HOST_HEADERS).iterdir():
        code = re.sub(r"//[^\n]*", "", path.read_text())
        named = re.findall(r"\b(?:class|typename|class\.\.\.)\s+(\w+)\s*[,>=]", code)
        assert [each for each in named if not each.startswith("_Nca_")] == [], path.name


def test_an_error_in_an_installed_header_names_the_macro_that_is_at_fault():
    library = autolink.cxx(
        "#include <vector>\n__device__ int f() { return 1; }", host_headers=True, defines={"reserve": 1}
    )
    with pytest.raises(autolink.CxxError, match="what to do: rename the macro reserve in defines"):
        library.f.signature(cc=CC)


@pytest.mark.skipif(not Path("/usr/include/eigen3").is_dir(), reason="Eigen (libeigen3-dev) is not installed")
def test_fixed_size_linear_algebra_of_eigen(tmp_path):
    page = Path(__file__).parents[6] / "docs" / "how_to_host_headers.md"
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


@pytest.mark.parametrize("header", ["cstdint", "climits", "iostream", "algorithm"])
def test_headers_of_the_host_tell_the_order_of_bytes(header):
    source = f"#include <{header}>\nconstexpr bool is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;"
    source += "\nconstexpr bool is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;"
    library = autolink.cxx(source, host_headers=True)
    assert library.eval("is_little", cc=CC) and not library.eval("is_big", cc=CC)


def test_the_headers_that_the_page_says_are_not_there_are_not():
    text = (DOCS / "how_to_host_headers.md").read_text()
    named = re.findall(r"`<(\w+)>`", text[text.index("- the headers `<any>`") : text.index("which are not there")])
    assert len(named) > 10
    assert [each for each in named if Path(HOST_HEADERS, each).exists()] == []
    page = re.findall(r"`<(\w+)>`", text[text.index("a library finds `<cmath>`") : text.index("\n\n")])
    assert [each for each in page if not Path(HOST_HEADERS, each).exists()] == []


def test_an_error_shows_the_includes_that_lead_to_it_alone(tmp_path):
    (tmp_path / "first.h").write_text("UNKNOWN_INLINE int one() { return 1; }\n")
    (tmp_path / "second.h").write_text("#include <no_such_header.h>\n")
    source = '#include "first.h"\n#include "second.h"\n__device__ int f() { return 1; }'
    with pytest.raises(autolink.CxxError, match=r"first\.h:1") as error:
        autolink.cxx(source, include_paths=[tmp_path]).f.signature(cc=CC)
    assert "included:" not in str(error.value)
    (tmp_path / "first.h").write_text("")
    with pytest.raises(autolink.CxxError, match=r"included: the source → second\.h → no_such_header\.h"):
        autolink.cxx(source, include_paths=[tmp_path]).f.signature(cc=CC)
