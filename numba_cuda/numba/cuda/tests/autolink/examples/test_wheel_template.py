# SPDX-License-Identifier: BSD-2-Clause
"""examples/wheel_template: built, installed and linked with as its README says, as it is and under another name."""

import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from environments import with_numba_cuda
from numba import typeof
from numba.cuda import autolink, types
from numba.cuda.cudadrv.external_code.compile.translation_unit import toolkit_include_paths
from numba.cuda.cudadrv.external_code.platform import cuda_libraries
from numba.cuda.np import numpy_support
from repository import BENCHMARKS, EXAMPLES, PROJECT, module

TEMPLATE = EXAMPLES / "wheel_template"

OTHER = """
#include <cub/thread/thread_reduce.cuh>
#include <cuda/std/cstdint>
#include "amount.h"

namespace my_fine_code {
template <class T> __device__ T sum(T x, T y) { return x + y + AMOUNT; } // no function of the package's

__device__ cuda::std::int32_t plus(const int x, short /* no, a comma */ y) {
    return sum<int>(x, y);
}
__device__ void negate(float *__restrict__ values, // in place
                                  size_t count) {
    for (size_t i = 0; i < count; ++i) values[i] = -values[i];
}
__device__ float2 halved(float2 z) { return {z.x / 2, z.y / 2}; }
struct Numbered { short number; };
namespace mine { template <class T> struct Pair : Numbered { T values[2]; }; using Entry = Pair<double>; }
__device__ bool is_given(const mine::Entry* entry) { return entry != nullptr; }
}
"""


USER = """
import numpy as np
import numpy.typing as npt
import sample_library as s
from numba import cuda
@cuda.jit
def kernel(x: npt.NDArray[np.float32], c: npt.NDArray[np.float64], n: int) -> None:
    x[0] = s.smooth_step(0, 1, x[n]) + s.polynomial(c, c.size, 1.5) + s.smooth_step(n, cuda.grid(1), float(n))
    x[1] = s.smooth_step(0, 1)
    x[2] = s.smooth_step(lower=0, upper=1, x=2)
    x[3] = s.smoothstep(0, 1, 2)
"""


def pip(*arguments, of=()):
    """Let pip, which installs the build's requirements, make or install a package."""
    command = [sys.executable, "-m", "pip", *of, arguments[0], "--quiet", "--no-deps", *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    if "No matching distribution found" in done.stderr or "Could not find a version" in done.stderr:
        pytest.skip("the build's requirements cannot be installed here")
    assert done.returncode == 0, done.stderr


def built(folder, into):
    """Build the wheel of a copy of the template with pip, which installs the build's requirements."""
    pip("wheel", "--wheel-dir", into, folder)
    (wheel,) = into.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def hook():
    """The template's build hook."""
    return module(TEMPLATE, "hatch_build")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with all packages that are installed here, including this project, but without the template."""
    environment = with_numba_cuda(tmp_path_factory.mktemp("environment"))
    folder = tmp_path_factory.mktemp("project")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", folder, PROJECT], check=True, timeout=120)
    environment.pip(*folder.glob("*.whl"))
    return environment


def if_linkable(*kinds):
    """Return *kinds*, or the source for each where nvJitLink is older than the NVRTC that compiled them."""
    return list(kinds) if cuda_libraries.nvjitlink_version() >= (12, 9) else ["CUDA C++ source"] * len(kinds)


def linked_for(environment, import_line, call, *ccs, **options):
    """Return the kind of code that is linked into a kernel with these options, for each compute capability."""
    facts = environment.facts(
        f"""
        from numba import cuda
        from numba.cuda import autolink
        {import_line}

        @(lambda function: cuda.jit(function, **{options!r}))
        def kernel(x, y):
            {call}

        facts = [
            [planned.input.kind.name for planned in autolink.build(kernel, "void(float32[::1], int32)", cc=cc).inputs]
            for cc in {ccs!r}
        ]
    """,
        PYTHONWARNINGS="ignore",
    )
    return [kind for (kind,) in facts]


# .ci/run runs it too, in its step of the documentation.
@pytest.mark.thorough
def test_the_template(environment, tmp_path):
    copy = shutil.copytree(TEMPLATE, tmp_path / "template")
    wheel = built(copy, tmp_path / "dist")
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.name == "sample_library-0.1.0-py3-none-any.whl"
    assert not [name for name in names if re.search(r"\.(so|dll|a)\b", name)]
    assert len([name for name in names if name.endswith(".cubin")]) == 7
    environment.pip(wheel)
    kinds = linked_for(
        environment,
        "from sample_library import smooth_step",
        "x[0] = smooth_step(0, 1.5, x[1])",
        (8, 0),
        (9, 0),
        (8, 7),
        (12, 0),
    )
    assert kinds == if_linkable("LTO-IR", "LTO-IR", "LTO-IR", "LTO-IR")
    emulated = environment.run("""
        import numpy as np
        from numba.cuda import autolink
        from sample_library import smooth_step

        def kernel(x):
            x[0] = smooth_step(0, 1, x[1])

        x = np.full(2, 0.5, np.float32)
        autolink.build(kernel, "void(float32[::1])", cc=(9, 0)).emulate[1, 1](x)
        print(x[0])
    """)
    assert emulated.stdout == "0.5\n", emulated.stderr
    wrong = environment.run("""
        from numba.cuda import autolink
        from sample_library import polynomial, smooth_step

        def kernel(x):
            x[0] = polynomial(x, x.size, 1.0)

        def short(x):
            x[0] = smooth_step(0, 1)

        def other(x):
            x[0] = smooth_step(0, 1, x)

        for each in kernel, short, other:
            try:
                autolink.build(each, "void(float32[::1])", cc=(9, 0))
            except Exception as error:
                print(str(error).partition("\\n")[0], end="; ")
                print(str(error).partition("what to do: ")[2])
        help(polynomial)
    """)
    assert wrong.stdout.splitlines() == [
        "polynomial: the argument 'coefficients' does not fit; make the array with dtype=numpy.float64",
        "smooth_step: missing a required argument: 'x'; its parameters are (lower, upper, x, /); "
        "pass one argument for each",
        "smooth_step: the argument 'x' does not fit; pass such a number; an element of an array is x[i]",
        "Help on Function in module sample_library:",
        "",
        "polynomial = sample_library.polynomial",
        "    double polynomial(const double* coefficients, int count, double x)",
        "    ",
        "    Return the value of a polynomial. The coefficients are in descending order of powers.",
        "",
    ]
    (tmp_path / "user.py").write_text(USER)
    checked = [environment.python, "-m", "mypy", "--strict", "user.py"]
    done = subprocess.run(checked, cwd=tmp_path, capture_output=True, text=True)
    assert dict(re.findall(r"user.py:(\d+): error: ([^;\[]*)", done.stdout)) == {
        "9": 'Too few arguments for "smooth_step"  ',
        "10": 'Unexpected keyword argument "x" for "smooth_step"  ',
        "11": 'Module has no attribute "smoothstep"',
    }, done.stdout
    own = [environment.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, copy / "tests"]
    done = subprocess.run(own, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    if cuda_libraries.nvjitlink_version() < (12, 9):
        return  # the benchmark shows what the wheel is for, which takes a linker that is new enough
    benchmark = [sys.executable, BENCHMARKS / "prebuilt.py", "--rounds=1", f"--wheel={wheel}"]
    done = subprocess.run(benchmark, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for kind in "cubin", "LTO-IR", "PTX", "source":
        assert re.search(rf"^{kind} +(-|\d+ ms) +\d+ ms +\d+ ms +\d+\.\d KB +\d+$", done.stdout, re.MULTILINE), (
            done.stdout
        )


def test_its_workflow_runs_the_commands_of_its_readme():
    workflow = (TEMPLATE / ".github" / "workflows" / "wheel.yml").read_text()
    commands = (TEMPLATE / "README.md").read_text().split("```")[1].splitlines()[2:]
    assert re.findall(r"^ +- run: (.*)$", workflow, re.MULTILINE) == commands


@pytest.mark.thorough
def test_an_editable_install(environment, tmp_path):
    copy = shutil.copytree(TEMPLATE, tmp_path / "template")
    pip("install", "-e", copy, of=("--python", environment.python))
    call = "import sample_library; facts = [sample_library.__file__, sample_library.__all__]"
    file, functions = environment.facts(call)
    assert file.startswith(str(copy)) and functions == ["polynomial", "smooth_step"]
    names = zipfile.ZipFile(built(copy, tmp_path / "dist")).namelist()
    assert len(names) == len(set(names)) == 19
    assert environment.facts(call) == [file, functions], "after a wheel was built, too"


@pytest.mark.thorough
def test_a_copy_with_another_name_and_other_functions(environment, tmp_path):
    copy = shutil.copytree(TEMPLATE, tmp_path / "my-fine-code")
    project = copy / "pyproject.toml"
    project.write_text(project.read_text().replace('name = "sample-library"', 'name = "my-fine-code"'))
    (copy / "src" / "sample_library").rename(copy / "src" / "my_fine_code")
    (copy / "src" / "my_fine_code" / "device_code.cu").write_text(OTHER)
    (copy / "src" / "my_fine_code" / "amount.h").write_text("#define AMOUNT 3")
    environment.pip(built(copy, tmp_path / "dist"))
    call = "negate(x, plus(y, 4))"
    kinds = linked_for(environment, "from my_fine_code import negate, plus", call, (7, 5), (8, 9), (12, 0))
    assert kinds == if_linkable("LTO-IR", "LTO-IR", "LTO-IR")
    assert linked_for(environment, "from my_fine_code import negate, plus", call, (8, 7)) == if_linkable("LTO-IR")
    complex_numbers = linked_for(environment, "from my_fine_code import halved", "x[0] = halved(x[1]).real", (9, 0))
    assert complex_numbers == if_linkable("LTO-IR")
    without_lto = linked_for(environment, "from my_fine_code import negate, plus", call, (8, 9), lto=False)
    assert without_lto == if_linkable("cubin")
    record = "import my_fine_code; facts = [my_fine_code.Entry.itemsize, my_fine_code.Entry.fields['values'][1]]"
    assert environment.facts(record) == [24, 8]
    with_lines = linked_for(environment, "from my_fine_code import negate, plus", call, (9, 0), lineinfo=True)
    assert with_lines == ["CUDA C++ source"]


@pytest.fixture
def build(hook, tmp_path, monkeypatch):
    """Let the hook build *code* for *architectures* with the CUDA that is installed here. Return the functions."""
    found = {("include",): [Path(folder) for folder in toolkit_include_paths()]}
    monkeypatch.setattr(hook, "build_requirement", lambda *names: found.get(names, []))
    package = tmp_path / "src" / "sample_library"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("")
    metadata = SimpleNamespace(core=SimpleNamespace(name="sample-library"))

    def build(code, **config):
        (package / "device_code.cu").write_text(code)
        config = {"architectures": [90], **config}
        hook.DeviceCode(tmp_path, config, None, metadata, tmp_path / "dist", "wheel").initialize("editable", {})
        return json.loads((package / "device_code" / "manifest.json").read_text())

    return build


@pytest.fixture
def package(build, tmp_path):
    """Return the package that is built of *code*."""

    def package(code, **config):
        shutil.copytree(TEMPLATE / "src", tmp_path / "src", dirs_exist_ok=True)
        build(code, **config)
        return imported(tmp_path)

    return package


def imported(folder):
    """Return the package in *folder*, which no later import finds."""
    names = "sample_library", "sample_library.functions"
    sys.path.insert(0, str(folder / "src"))
    try:
        return importlib.import_module("sample_library")
    finally:
        sys.path.remove(str(folder / "src"))
        for name in names:
            sys.modules.pop(name, None)


FORMS = """
#include <cuda/std/cstdint>
#include <cuda_fp16.h>
#define API(...) __device__ __VA_ARGS__
namespace sample_library {
namespace ours {
using real = double;
enum Kind : unsigned char { small, large = 255 };
enum class Sign { minus = -1, plus = 1 };
__device__ int of_a_namespace_within() { return 1; }
}
__device__ ours::real
    block(ours::real x, cuda::std::int16_t, unsigned long const n) { return x; }
API(void twice(float* __restrict__ in, const volatile int* counts, float in_[3])) {}
API(ours::Kind kinds(ours::Sign sign, ours::Kind kind, char c, bool b)) { return kind; }
API(__half halves(float2 z, const half* h, double2* zs, const void* const p)) { return h[0]; }
inline __device__ int unused(int x) { return x; }
static __device__ int hidden(int x) { return x; }
extern "C" __device__ int sample_library_in_c(int x) { return x; }
__device__ int _own(int x) { return hidden(x); }
template <class T> __device__ T sum(T x, T y) { return x + y; }
#if 0
__device__ int twice(int x) { return x; }
#endif
__device__ int defaults(int x = 3) { return sum(x, _own(x)); }
__global__ void kernel(int* x) {}
}
"""


def test_the_compiler_says_what_functions_take(build):
    described = build(FORMS)["functions"]
    assert {name: [each["returns"], each["parameters"]] for name, each in described.items()} == {
        "block": ["f8", {"x": "f8", "arg2": "i2", "n": "u8"}],
        "twice": ["void", {"in_": "f4*", "counts": "const i4*", "in__": "f4*"}],
        "kinds": ["u1", {"sign": "i4", "kind": "u1", "c": "i1", "b": "?"}],
        "halves": ["f2", {"z": "c8", "h": "const f2*", "zs": "c16*", "p": "const void*"}],
        "defaults": ["i4", {"x": "i4"}],
    }
    ours = "sample_library::ours"
    declared = f"{ours}::Kind kinds({ours}::Sign sign, {ours}::Kind kind, char c, bool b)"
    assert described["kinds"]["declaration"] == declared


C = "__device__"
BOX = f"{C} int first(const Box* box) {{ return 0; }}"


def OWN(code):
    """Return *code* in the namespace of the package."""
    return code if code.startswith("#") else f"namespace sample_library {{ {code}\n}}"


CODE = "src/sample_library/device_code.cu"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (f"{C} inline int first(int x) {{ return x; }}", "no .cu file defines a function for kernels"),
        ("#include <vector>", "what to do: do without vector, which is the host's: devices have <cuda/std/array> and"),
        ("#include <stdio.h>", "what to do: do without stdio.h, which is the host's: devices have"),
        ("#include <cstdint>", "what to do: include <cuda/std/cstdint>, whose names are in cuda::std"),
        ("#include <stdint.h>", "what to do: include <cuda/std/cstdint>, whose names are in cuda::std"),
        ('#include "amount.h"', "what to do: copy amount.h into the package, and name its folder in include_paths"),
        (f"{C} int first() {{ return x; }}", f'{CODE}(1): error: identifier "x" is undefined'),
        (
            f'}} extern "C" {C} float norm(float x) {{ return x; }} namespace {{',
            "what to do: choose another name: a function of",
        ),
        (
            f"{C} int f() {{ return 1; }}\n{C} int f() {{ return 1; }}",
            "what to do: define it once, in a header: the .cu",
        ),
        (f"\n{C} int lambda(int x) {{ return x; }}", "lambda is a word of Python, so kernels cannot call the function"),
        (
            f"\n{C} int first(int y, float& x) {{ return 1; }}",
            f"first takes 'float& x', expected a number or a pointer to numbers, a struct or void\n  at: {CODE}:2\n",
        ),
        (f"{C} int first(float& x) {{ return 1; }}", "what to do: take float*"),
        (f"{C} int first(const float& x, float& y) {{ return 1; }}", "what to do: take float\nfirst takes 'float& y'"),
        (f"{C} int first(float** x) {{ return 1; }}", "first takes 'float** x', expected"),
        (f"{C} int first(float** x) {{ return 1; }}", "what to do: take void*, and cast it in the function"),
        (f"{C} int first(float (*f)(int)) {{ return 1; }}", "first takes 'float (...)* f', expected"),
        (f"{C} int first(float x[3][4]) {{ return 1; }}", "first takes 'float (...)* x', expected"),
        (f"{C} int first(float3 x) {{ return 1; }}", "first takes 'float3 x', expected"),
        (f"{C} int first(float3 x) {{ return 1; }}", "what to do: take const float3*"),
        (
            f"{C} float3 first() {{ return {{}}; }}",
            f"first returns float3, expected a number or void\n  at: {CODE}:1\n",
        ),
        (f"{C} float3 first() {{ return {{}}; }}", "return void, and write it to a parameter, float3* result"),
        (f"{C} int* first(int* x) {{ return x; }}", "first returns int*, expected"),
        (f"{C} int* first(int* x) {{ return x; }}", "return an index, or write to memory that the kernel passes"),
        (f"struct Box {{ int a : 3; }}; {BOX}", "the member a of Box is a bit-field, which no dtype describes"),
        (
            f"struct Box {{ int a : 3; }}; {BOX}",
            "let the functions take void*, and cast it to Box*: kernels pass any array with 4 bytes for each",
        ),
        (f"struct Box {{ union {{ int a; }}; }}; {BOX}", "the member without a name of Box is a union, which no dtype"),
        (
            f"struct Box {{ __device__ virtual void f() {{}} }}; {BOX}",
            f"Box has virtual functions or bases, which no dtype describes\n  at: {CODE}:1\n",
        ),
        (
            f"struct Box {{ int a; }}; {C} int Box(struct Box* b) {{ return 1; }}",
            "is that of another struct or a function",
        ),
        (
            f"struct A {{ int a; }}; struct Box : A {{ int a; }}; {BOX}",
            f"Box has two members of one name, which no dtype describes\n  at: {CODE}:1\n",
        ),
        (f"struct Box {{}}; {BOX}", f"Box has no members, or is not defined\n  at: {CODE}:1\n"),
        (
            f"struct None {{}}; struct Box {{ None none; int x; }}; {BOX}",
            f"None has no members, or is not defined\n  at: {CODE}:1",
        ),
        (f"{C} void first(long double x) {{}}", "first takes 'long double x', expected"),
        (
            f"{C} int first(int n, ...) {{ return n; }}",
            "first takes any number of arguments, which kernels cannot pass",
        ),
        ("int first() { return 1; }", "what to do: mark functions and variables __device__"),
        (f"int count; {C} int first() {{ return 1; }}", "what to do: mark functions and variables __device__"),
        (f"{C} int first() {{ return 1; }} {C} int first(int x) {{ return x; }}", "there are two functions first\n"),
        (f"}} {C} int other() {{ return 1; }} namespace {{", "other() is not in namespace sample_library, so other"),
        (
            f"}} {C} int other() {{ return 1; }} namespace {{",
            "what to do: put it into namespace sample_library; or into a namespace without a name, if only the",
        ),
        (f'extern "C" {C} int other() {{ return 1; }}', 'other is extern "C", so other packages could have the same'),
        (
            f'extern "C" {C} int other() {{ return 1; }}',
            "what to do: put it into namespace sample_library, without the mark",
        ),
        (f"}} {C} int table[2]; namespace {{", "table is not in namespace sample_library, so other packages could ha"),
        (f"{C} void first(long double* x, long double y) {{}}", "what to do: take double"),
        (f"{C} void first(long double* x, long double y) {{}}", "what to do: take double*\n"),
        (f"{C} long double first() {{ return 1; }}", "what to do: return double"),
        (f"{C} int first(int (*f)(int)) {{ return f(1); }}", "what to do: take a number that selects the function"),
        (f"{C} int first(int (&f)(int)) {{ return f(1); }}", "what to do: take a number that selects the function"),
        (
            f"struct Box {{ int a; }}; {C} void first(int (Box::*f)()) {{}}",
            "what to do: take a number that selects the function",
        ),
        (f"{C} int first(int&& x) {{ return x; }}", "first takes 'int&& x', expected"),
        (f"struct Box;\n{BOX}", f"Box has no members, or is not defined\n  at: {CODE}:2\n"),
        (
            "template <class T> struct Of { T x; };\n" + BOX.replace("Box*", "Of<int>*"),
            "what to do: give it one: using NAME = ...",
        ),
        (
            f"struct Box {{ int a; }}; {BOX} namespace n {{ struct Box {{ int b; }}; }} {C} void w(n::Box* b) {{}}",
            "is that of another struct or a function",
        ),
        (
            f"}} struct Box {{ {C} int f() const; }}; {C} int Box::f() const {{ return 1; }} namespace {{",
            "Box::f() const is not in namespace sample_library, so other packages could have",
        ),
        (
            f"{C} int first() {{ return GAIN * LOSS; }}",
            "what to do: declare GAIN, LOSS in front of the use, or include the header that does; a macro: write "
            "defines = { GAIN = ..., LOSS = ... } into",
        ),
        (
            f"{C} int other(int); {C} int first(int x) {{ return other(x); }}",
            "package defines sample_library::other(int), which its",
        ),
        (
            f"{C} int v(); {C} void w(); {C} double f() {{ w(); return v(); }}",
            "no .cu file of the package defines sample_library::v(), sample_library::w(), which its code uses",
        ),
        (
            f"extern __constant__ float v[]; {C} float f() {{ return v[0]; }}",
            f"the host cannot set __constant__ float v[0], which no dtype describes\n  at: {CODE}:1\n",
        ),
        (
            f"union U {{ int a; float b; }}; extern {C} U v; {C} float f() {{ return v.b; }}",
            "U v, which no dtype describes",
        ),
        (
            f"extern __constant__ float lambda; {C} float f() {{ return lambda; }}",
            "lambda is a word of Python, so the host cannot set the variable",
        ),
        (
            f"namespace n {{ __device__ int help(int); }} {C} int first(int x) {{ return n::help(x); }}",
            "no .cu file of the package defines sample_library::n::help(int), which its code uses\n  what to do",
        ),
        (
            f"{C} int first() {{ return 1; }}\n#if __CUDA_ARCH__ > 900\n{C} int second() {{ return 2; }}\n#endif",
            "the code for sm_100 and that for the oldest architecture do not both define second\n  what to do: ",
        ),
    ],
)
def test_a_build_says_what_is_wrong_and_where(code, message, build):
    with pytest.raises(SystemExit, match=f"^sample-library: (?s:.*){re.escape(message)}"):
        build(OWN(code), architectures=[90, 100])


MEMBERS = """
struct Gain {
    float g;
    __device__ Gain(float x); __device__ ~Gain(); __device__ float f(float) const; __device__ void f() volatile &;
    __device__ void f() &&; __device__ operator float() const; __device__ Gain operator+(Gain) const;
    static __device__ int made();
};
__device__ Gain::Gain(float x) : g(x) {}
__device__ Gain::~Gain() {}
__device__ float Gain::f(float x) const { return g * x; }
__device__ void Gain::f() volatile & {}
__device__ void Gain::f() && {}
__device__ Gain::operator float() const { return g; }
__device__ Gain Gain::operator+(Gain x) const { return x; }
__device__ int Gain::made() { return 1; }
__device__ bool operator==(Gain x, Gain y) { return true; }
__device__ float first(float x) { return Gain(x).f(x); }
"""


@pytest.mark.parametrize(
    "code",
    [
        f"{C} int x() {{ return 1; }} {C} float first(float2 z) {{ return z.x; }}",
        f"}} #include <cuda_fp16.h>\n namespace sample_library {{ {C} float move(float x) {{ return x; }}",
        f"template <class T> {C} T twice(T x) {{ return 2 * x; }} {C} int first(int x) {{ return twice(x); }}",
        f"namespace n {{ struct Box {{ int a; }}; }} {C} int first(const n::Box* box) {{ return 0; }}",
        f"{C} float norm(float x) {{ return x; }} {C} float hypot(float x, float y) {{ return x; }}",
        f"{C} int f(int x) {{ return x; }} namespace n {{ {C} int f(int x, int y) {{ return x + y; }} }}",
        MEMBERS,
    ],
)
def test_a_build_leaves_names_as_they_are(code, build):
    code = OWN(code).replace("} #include", "}\n#include")
    functions = build(f"{code}\n#include <cuda_fp16.h>\n#include <cuda/std/utility>")["functions"]
    assert {*functions} & {"first", "move", "norm", "f"} and "Gain" not in functions


def test_a_build_allows_what_cuda_defines(build):
    body = 'assert(*x); printf("%d", s[0]); delete x; return *new int;'
    assert [*build(OWN(f"extern __shared__ int s[]; {C} int first(int* x) {{ {body} }}"))["functions"]] == ["first"]


def test_editors_find_the_functions_and_their_declarations(build, tmp_path):
    build("""
        namespace sample_library {
        struct Box { float lo, hi; };
        extern __constant__ float gain;
        __device__ void scale(float* x, unsigned n) {} __device__ float one() { return gain; }
        __device__ bool truth(float2, const Box* in) { return true; }
        }""")
    assert (tmp_path / "src" / "sample_library" / "__init__.pyi").read_text().splitlines() == [
        "from typing import Any as _Any",
        "__all__ = ['Box', 'gain', 'one', 'scale', 'truth']",
        "from numba.cuda.autolink import Variable as _Variable",
        "gain: _Variable",
        "from numpy import dtype as _dtype",
        "Box: _dtype[_Any]",
        "def one() -> float:",
        '    """``float one()``"""',
        "def scale(x: _Any, n: int, /) -> None:",
        '    """``void scale(float* x, unsigned int n)``"""',
        "def truth(arg1: complex, in_: _Any, /) -> bool:",
        '    """``bool truth(float2 arg1, const Box* in)``"""',
    ]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([], "got [],"),
        ("90", "got '90',"),
        (90, "got 90,"),
        (["sm_90"], "got 'sm_90' in ['sm_90'],"),
        ([75, 9.0], "got 9.0 in [75, 9.0],"),
        ([75, 91], "got 91 in [75, 91],"),
    ],
)
def test_a_build_names_a_wrong_architecture(given, named, build):
    with pytest.raises(SystemExit) as failure:
        build(BOX, architectures=given)
    message, start = str(failure.value), f"sample-library: architectures in pyproject.toml: {named} "
    assert message.startswith(f"{start}expected a list of numbers out of ")
    assert ", 90, " in message and message.endswith("\n  what to do: write it as in architectures = [75, 80, 90]")


def test_a_build_without_architectures_says_how_to_write_them(build):
    with pytest.raises(SystemExit) as failure:
        build(BOX, architectures=None)
    message = str(failure.value)
    assert message.startswith(
        "sample-library: pyproject.toml: the hook's section has no architectures, expected a list"
    )
    assert message.endswith("\n  what to do: write it as in architectures = [75, 80, 90]")


STRUCTS = """
#include <cuda/std/array>
namespace sample_library {
struct Empty {};
template <class T> struct Span { T* first; size_t size; };
using Floats = Span<float>;
struct Range : Empty { float lo, hi = 2; __device__ float mid() const { return (lo + hi) / 2; } };
class Box : public Range { int hits{1}; public: __device__ void hit() { ++hits; } };
namespace deep {
struct Tag { short id; int more; };
struct Tags { Tag of[2]; };
struct __align__(16) Pair { Box a; Box b[2]; Tags tags; float4 at; double m[2][3]; const float* p; bool ok, oks[3];
    struct { int k; } in; cuda::std::array<Tag, 2> pair; };
}
__device__ void hit(Box* box) { box->hit(); }
__device__ bool inside(const Box* box, float x) { return box->lo <= x && x <= box->hi; }
__device__ float second(const deep::Pair* pair) { return pair->b[1].hi; }
__device__ void keep(const Floats*) {}
__device__ float raw(const void* p) { return *(const float*)p; }
}
"""


def test_structs_are_dtypes_with_the_layout_of_the_compiler(package):
    library = package(STRUCTS)
    box = np.dtype([("lo", "f4"), ("hi", "f4"), ("hits", "i4")])
    tag = np.dtype([("id", "i2"), ("more", "i4")], align=True)
    tags = np.dtype([("of", tag, (2,))])
    members = {"a": 0, "b": 12, "tags": 36, "at": 64, "m": 80, "p": 128, "ok": 136, "oks": 137, "in": 140, "pair": 144}
    four = np.dtype([(name, "f4") for name in "xyzw"])
    formats = [
        box,
        (box, (2,)),
        tags,
        four,
        ("f8", (2, 3)),
        "u8",
        "?",
        ("u1", (3,)),
        [("k", "i4")],
        [("__elems_", tag, (2,))],
    ]
    assert library.Box == box
    assert library.Floats == np.dtype([("first", "u8"), ("size", "u8")])
    assert library.Pair == np.dtype(
        {"names": [*members], "formats": formats, "offsets": [*members.values()], "itemsize": 160}
    )
    boxes, pairs, result = np.zeros(2, library.Box), np.zeros(1, library.Pair), np.zeros(3, np.float32)
    pairs["b"]["hi"], boxes["lo"], boxes["hi"] = 7, 1, 3

    def kernel(boxes, pairs, result):
        library.hit(boxes)
        library.hit(boxes[1])
        result[0], result[1], result[2] = library.inside(boxes, 2), library.second(pairs), library.raw(boxes)

    types = tuple(map(typeof, (boxes, pairs, result)))
    autolink.build(kernel, types, cc="9.0").emulate[1, 1](boxes, pairs, result)
    assert (result.tolist(), boxes["hits"].tolist()) == ([1, 7, 1], [1, 1])


OTHER_BOX = np.dtype([("hits", "i4"), ("lo", "f8"), ("hi", "f8")], align=True)


def test_a_pointer_takes_what_it_points_to_alone(package):
    library = package(STRUCTS)
    box, other = map(numpy_support.from_dtype, (library.Box, OTHER_BOX))
    not_a_box = [types.float64, types.int64, types.float32[::1], types.UniTuple(types.float32, 3), other, other[::1]]
    for given in [*not_a_box, box[:], types.Array(box, 1, "C", readonly=True)]:
        with pytest.raises(autolink.CABIError, match=r"^hit: the argument 'box' does not fit\n  got: .*\n  expected"):
            library.hit.passed("box", given)
    for given in types.float64, types.int64, types.boolean:
        with pytest.raises(autolink.CABIError, match=r"^raw: the argument 'p' does not fit\n"):
            library.raw.passed("p", given)


def test_what_does_not_fit_says_what_does(package):
    library = package(OWN(f"{C} float sum(const float* x, int n) {{ return x[0] + x[n - 1]; }}"))
    with pytest.raises(autolink.CABIError) as failure:
        library.sum.passed("x", types.UniTuple(types.float64, 2))
    assert str(failure.value).splitlines() == [
        "sum: the argument 'x' does not fit",
        "  got: UniTuple(float64 x 2)",
        "  expected: a contiguous array of numpy.float32, or a tuple of such numbers",
        "  declared: float sum(const float* x, int n)",
        "  what to do: convert each element: (numpy.float32(x), numpy.float32(y)) for (x, y)",
    ]
    with pytest.raises(
        AttributeError, match=r"^sample_library has no function 'total'\n  expected: sum\n  what to do: "
    ):
        library.total(1)

    def kernel(x):
        x[0] = library.sum((np.float32(1), np.float32(2)), 2)

    x = np.zeros(1, np.float32)
    linked = autolink.build(kernel, (typeof(x),), cc="9.0", lto=False)
    with pytest.raises(autolink.LinkError, match="what to do: leave out lto=False, or build with lineinfo=True, for"):
        linked.emulate[1, 1](x)
    autolink.build(kernel, (typeof(x),), cc="9.0", lto=False, lineinfo=True).emulate[1, 1](x)
    assert x[0] == 3


def test_packages_may_have_functions_of_the_same_name(build, tmp_path):
    helpers = f"{C} int table[2]; {C} int _own(int x) {{ return x; }} {C} inline int help() {{ return 1; }}"
    build(OWN(f"{helpers} {C} int use(int x) {{ return _own(table[x]) + help(); }}"))
    code = (tmp_path / "src" / "sample_library" / "device_code" / "code.sm_90.ptx").read_text()
    names = re.findall(r"^\.visible \.(?:func|global).*?\s(\w+)[(\[]", code, re.MULTILINE)
    assert sorted(names) == ["_ZN14sample_library3useEi", "_ZN14sample_library4_ownEi", "_ZN14sample_library5tableE"]


def test_a_build_names_all_that_kernels_cannot_call(build):
    with pytest.raises(SystemExit) as failure:
        box = "struct Box { int a : 3, b : 2; };"
        build(OWN(f"{box} {C} int* f(Box* box, float& x) {{ return 0; }} {C} void lambda() {{}}"))
    assert re.findall(r"^(?:sample-library: )?(\w.*)$", str(failure.value), re.MULTILINE) == [
        "f returns int*, expected a number or void",
        "the member a of Box is a bit-field, which no dtype describes",
        "the member b of Box is a bit-field, which no dtype describes",
        "f takes 'float& x', expected a number or a pointer to numbers, a struct or void",
        "lambda is a word of Python, so kernels cannot call the function",
    ]


COMMENTED = """
namespace sample_library {
// First line.
// Second "line" \\\\.
__device__ int lines(int x) { return x; }
/**
 * A block:
 *   - of an item
 */
__device__ int block(int x) { return x; }
/* one line */
__device__ int one(int x) { return x; }
// of none

__device__ int none(int x) { return x; } // behind it
__device__ int after(int x) { return x; } /* begins
here */
__device__ int next(int x) { return x; }
}
"""


def test_functions_have_the_comment_above_them(package, tmp_path):
    library = package(COMMENTED)
    docs = {name: getattr(library, name).__doc__.partition("\n\n") for name in library.__all__}
    assert {name: declared for name, (declared, _, _) in docs.items()} == {
        name: f"int {name}(int x)" for name in library.__all__
    }
    assert {name: comment for name, (_, _, comment) in docs.items() if comment} == {
        "lines": 'First line.\nSecond "line" \\\\.',
        "block": "A block:\n  - of an item",
        "one": "one line",
    }
    assert str(inspect.signature(library.lines)) == "(x, /)"
    stub = {}
    exec((tmp_path / "src" / "sample_library" / "__init__.pyi").read_text(), stub)
    assert inspect.getdoc(stub["lines"]) == '``int lines(int x)``\n\nFirst line.\nSecond "line" \\\\.'


SCALED = """
#include <scale.h>
#include "../own.h"
namespace sample_library {
__device__ float scaled(float x) { return helper(x) * SCALE * WIDTH; }
}
"""


def test_code_is_compiled_with_the_settings_of_the_project_and_so_is_its_source(package, tmp_path):
    folder = tmp_path / "src" / "sample_library"
    for name, text in {
        "third_party/scale.h": "template <class T> T helper(T x) requires true { return x; }",
        "third_party/test.cu": "no code of the package's",
        "own.h": "#define SCALE 3",
        "inner/scaled.cu": SCALED,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    options = {"std": "c++20", "device_as_default_execution_space": True}
    library = package("", include_paths=["third_party"], defines={"WIDTH": 2, "NDEBUG": True}, options=options)

    def kernel(x):
        x[0] = library.scaled(x[0])

    x = np.ones(1, np.float32)
    linked = autolink.build(kernel, (typeof(x),), cc="9.0", lineinfo=True)
    assert [each.input.kind.name for each in linked.inputs] == ["CUDA C++ source"]
    assert [site.call for site in linked.call_sites] == ["sample_library.scaled(float32)"]
    linked.emulate[1, 1](x)
    assert x[0] == 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"include_path": ["."]}, "pyproject.toml: the hook has no setting include_path, expected architectures, incl"),
        ({"include_paths": ["/usr/include"]}, "include_paths in pyproject.toml: /usr/include is not a folder in "),
        ({"include_paths": ["missing"]}, "missing is not a folder in "),
        ({"include_paths": "vendor"}, "include_paths in pyproject.toml: got 'vendor', expected a list, each a text"),
        ({"include_paths": "vendor"}, 'what to do: write it as in include_paths = ["third_party"]'),
        ({"architecture": [90]}, "what to do: write architectures for architecture"),
        ({"include_paths": [1]}, "include_paths in pyproject.toml: got [1], expected a list, each a text"),
        ({"options": "-std=c++20"}, "options in pyproject.toml: got '-std=c++20', expected a table: { NAME = VALUE }"),
        ({"options": {"use_fast": True}}, "options.use_fast in pyproject.toml: cuda.core.ProgramOptions has no such"),
        ({"options": {"use_fast": True}}, "what to do: write use_fast_math"),
        ({"options": {"arch": "sm_90"}}, "options.arch in pyproject.toml: the hook sets it\n  what to do: leave it"),
        ({"options": {"define_macro": "X"}}, "options.define_macro in pyproject.toml: the hook has settings for it"),
        ({"options": {"use_fast_math": "yes"}}, "options.use_fast_math in pyproject.toml: got 'yes', expected true or"),
        ({"options": {"max_register_count": True}}, "options.max_register_count in pyproject.toml: got True, expect"),
        ({"options": {"std": "c++99"}}, 'what to do: write std = "c++17" or "c++20" in options in pyproject.toml'),
        ({"options": {"ptxas_options": "--none"}}, "what to do: correct options in pyproject.toml"),
        ({"defines": ["STEP=2"]}, "defines in pyproject.toml: got ['STEP=2'], expected a table: { NAME = VALUE }"),
        ({"defines": {"STEP": [2]}}, "defines.STEP in pyproject.toml: got [2], expected a text or a whole number"),
        ({"defines": {"2STEP": 2}}, "defines in pyproject.toml: got the name '2STEP', expected that of a macro"),
        ({"defines": {"STEP": "2\n3"}}, "defines.STEP in pyproject.toml: got '2\\n3', expected one line"),
        ({"defines": {"STEP": "2 \\"}}, "defines.STEP in pyproject.toml: got '2 \\\\', expected one line, whole"),
        (
            {"defines": {"first": "2 +", "SECOND(x)": "x"}},
            "what to do: if a macro is wrong, correct it in defines in pyproject.toml: first is 2 +",
        ),
    ],
)
def test_a_build_names_a_wrong_setting(settings, message, build):
    with pytest.raises(SystemExit, match=f"^sample-library: (?s:.*){re.escape(message)}"):
        build(OWN(f"{C} int first() {{ return 1; }}"), **settings)


def test_changed_code_is_an_error_until_it_is_built_again(package, build, tmp_path):
    folder = tmp_path / "src" / "sample_library"
    (folder / "own.h").write_text("#define STEP 1")
    code = '#include "own.h"\n' + OWN(f"{C} int step(int x) {{ return x + STEP; }}")
    library = package(code)

    def kernel(x):
        x[0] = library.step(x[0])

    def stepped(cc):
        x = np.ones(1, np.int32)
        autolink.build(kernel, (typeof(x),), cc=cc).emulate[1, 1](x)
        return x[0]

    assert stepped("9.0") == 2
    edits = {
        "own.h": (folder / "own.h", "#define STEP 5"),
        "pyproject.toml": (tmp_path / "pyproject.toml", "[project]"),
    }
    for name, (edited, text) in edits.items():
        edited.write_text(text)
        expected = (
            rf"the device code is out of date: {name} has changed since it was built\n(?s:.*)what to do: build and "
        )
        with pytest.raises(autolink.CallError, match=expected):
            stepped("8.0")
        with pytest.raises(autolink.PrebuiltError, match=f"^{expected}"):
            imported(tmp_path)
        build(code)
        library = imported(tmp_path)
        assert stepped("9.0") == 6


def test_a_package_whose_build_ran_no_hook_says_so(tmp_path, monkeypatch):
    shutil.copytree(TEMPLATE / "src", tmp_path / "src")
    monkeypatch.syspath_prepend(tmp_path / "src")
    monkeypatch.delitem(sys.modules, "sample_library", raising=False)
    monkeypatch.delitem(sys.modules, "sample_library.functions", raising=False)
    with pytest.raises(ImportError, match=r"^sample_library has no device code: its build ran no hook\n  what to do: "):
        importlib.import_module("sample_library")


@pytest.mark.parametrize("without", ["section", "hooks", "name"])
def test_a_build_that_would_run_no_hook_is_an_error(without, tmp_path):
    copy = shutil.copytree(TEMPLATE, tmp_path / "template")
    settings = copy / "pyproject.toml"
    todo = "write [tool.hatch.build.targets.wheel.hooks.custom] into pyproject.toml"
    if without == "section":
        settings.write_text(settings.read_text().partition("[tool.hatch.build.targets.wheel.hooks")[0])
    elif without == "name":
        settings.write_text(settings.read_text().replace("hooks.custom", "hooks.costum"))
        section = "tool.hatch.build.targets.wheel.hooks"
        todo = f"write [{section}.custom] for [{section}.costum] in pyproject.toml"
    for build in "build_wheel", "build_editable":
        done = subprocess.run(
            [sys.executable, "-c", f"import build_backend; build_backend.{build}({str(tmp_path / 'dist')!r})"],
            cwd=copy,
            env={**os.environ, "HATCH_BUILD_NO_HOOKS": "1" if without == "hooks" else ""},
            capture_output=True,
            text=True,
        )
        assert done.returncode
        assert done.stderr.startswith(
            "sample-library: the build runs no hook, so the package would have no device code"
        )
        assert f"\n  what to do: {todo}" in done.stderr
        assert not (tmp_path / "dist").exists()


def test_a_build_says_that_templates_are_not_among_its_functions(build, capsys):
    build(OWN(f"template <class T> {C} T twice(T x) {{ return 2 * x; }} {C} float half(float x) {{ return x / 2; }}"))
    shown = capsys.readouterr()
    *functions, last = (shown.out + shown.err).splitlines()
    assert functions == ["sample_library: float half(float x)"]
    assert last == (
        "sample_library: kernels can call these functions; templates, and functions that are inline, static or members "
        "of classes, are not among them"
    )


def test_kernels_of_numba_cuda_mlir_call_the_functions(package):
    mlir = pytest.importorskip("numba_cuda_mlir.cuda")
    code = f"struct Box {{ float lo, hi; }}; {C} float of(const Box* box, float x) {{ return box->lo * x; }}"
    library = package(OWN(code))

    @mlir.jit
    def kernel(boxes, x):
        x[0] = library.of(boxes, x[0]) + library.of(boxes[1], 2)

    boxes, x = np.ones(2, library.Box), np.full(1, 3, np.float32)
    autolink.build(kernel, (typeof(boxes), typeof(x)), cc="9.0").emulate[1, 1](boxes, x)
    assert x[0] == 5


COMPLEX = """
#include <cuda/std/complex>
namespace sample_library {
using cuda::std::complex;
__device__ complex<float> rotate(complex<float> z, float phase) { return z * complex<float>(cosf(phase), sinf(phase)); }
__device__ complex<double> wide(complex<double> z) { return conj(z); }
__device__ void all(const complex<float>* in, complex<double>* out, int n) { while (n--) out[n] = in[n]; }
}
"""


@pytest.mark.parametrize("front_end", ["numba.cuda", "numba_cuda_mlir.cuda"])
def test_complex_numbers_of_cxx_are_those_of_numpy(front_end, package):
    front_end = pytest.importorskip(front_end)
    library = package(COMPLEX)

    @front_end.jit
    def kernel(x, y):
        library.all(x, y, 2)
        x[0] = library.rotate(x[0], np.float32(np.pi / 2)) + library.rotate(1, 0.0)
        y[1] = library.wide(y[1])

    x, y = np.array([1 + 2j, 3 + 4j], np.complex64), np.zeros(2, np.complex128)
    autolink.build(kernel, (typeof(x), typeof(y)), cc="9.0").emulate[1, 1](x, y)
    assert np.allclose(x, [-1 + 1j, 3 + 4j]) and y.tolist() == [1 + 2j, 3 - 4j]


def test_a_struct_complex_of_the_package_is_no_number(package):
    code = "template <class T> struct complex { T *re, *im; }; using Complex = complex<float>;"
    code += f"{C} int first(const Complex* z) {{ return 1; }}"
    assert package(OWN(code)).Complex.itemsize == 16


VARIABLES = """
namespace sample_library {
struct Range { float lo, hi; };
struct Unseen { int a; };
extern __constant__ float table[3];
extern __constant__ Range range;
extern __constant__ Unseen unseen;
extern __device__ int counts[2][2];
__constant__ float lost, kept = 1;
namespace inner { static __constant__ int also_lost[2]; }
__device__ float read(int i) {
    counts[1][i] += (long long)(void*)&unseen != 0;
    return table[i] + range.hi + lost + kept + inner::also_lost[i];
}
}
"""


@pytest.mark.parametrize("front_end", ["numba.cuda", "numba_cuda_mlir.cuda"])
def test_the_host_sets_variables(front_end, package, capsys):
    front_end = pytest.importorskip(front_end)
    library = package(VARIABLES)
    assert library.Unseen == np.dtype([("a", "i4")])
    shown = capsys.readouterr()
    for line in [
        "sample_library: __constant__ float table[3], set by sample_library.table.set(...)",
        "sample_library: __device__ int counts[2][2], set by sample_library.counts.set(...)",
        "sample_library::lost is 0 in all kernels: nothing sets it",
        "sample_library::inner::also_lost is 0 in all kernels: nothing sets it",
    ]:
        assert line in (shown.out + shown.err).splitlines()
    assert "kept" not in shown.out + shown.err

    @front_end.jit
    def kernel(x):
        x[0] = library.read(1)

    x = np.zeros(1, np.float32)
    linked = autolink.build(kernel, (typeof(x),), cc="9.0")
    library.table.set(np.array([1, 2, 3], np.float32))
    library.range.set(np.array((0, 10), library.Range))
    linked.emulate[1, 1](x)
    assert (x[0], library.counts.get().tolist()) == (13, [[0, 0], [0, 1]])
    library.table.set(np.array([1, 5, 3], np.float32))
    linked.emulate[1, 1](x)
    assert x[0] == 16
    for options in {"lto": False}, {"lineinfo": True}:
        inputs = autolink.build(kernel, (typeof(x),), cc="9.0", **options).inputs
        assert len(inputs) == 5, "the four variables and the code"
