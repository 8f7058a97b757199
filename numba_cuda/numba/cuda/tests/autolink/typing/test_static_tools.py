# SPDX-License-Identifier: BSD-2-Clause
"""mypy, pyright and jedi see the public names with their types, through the stubs that are installed."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import pytest
from docs_runner import blocks_of
from environments import link
from language_server import LanguageServer
from numba import cuda
from numba.cuda import autolink
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.dispatcher import _Kernel
from repository import DOCS, PROJECT, module

import numba_cuda_autolink

FOLDER = Path(__file__).parent
STUBS = PROJECT / "stubs" / "numba" / "cuda" / "autolink"
NUMBA = Path(numba.__file__).parent
pytestmark = pytest.mark.skipif(not (NUMBA / "py.typed").exists(), reason="this Numba has no types")


def make_environment(folder: Path, with_stubs: bool) -> Path:
    """Make an environment of the installed packages, with or without the stubs of a wheel. Return its Python."""
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (folder / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    site.mkdir(parents=True)
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if package.name not in ("numba_cuda_autolink-stubs", "numba_cuda_mlir-stubs"):
            link(package, site)
    if with_stubs:
        module(PROJECT, "build_stubs").write_stubs(site)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """The Python of an environment in which this package is installed."""
    return make_environment(tmp_path_factory.mktemp("environment"), with_stubs=True)


def marked_lines() -> set[tuple[str, int]]:
    """The lines of the wrong file that are marked as wrong."""
    lines = (FOLDER / "wrong.py").read_text().splitlines()
    return {("wrong.py", number) for number, line in enumerate(lines, 1) if "# wrong: " in line}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A user's folder: far from this repository's settings."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("right.py", "wrong.py"):
        shutil.copy(FOLDER / name, folder)
    return folder


def run(*command: str | Path, cwd: Path, python: str | Path = sys.executable) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "MYPYPATH"}
    return subprocess.run([python, "-m", *map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.fixture
def mypy(python) -> list[str | Path]:
    pytest.importorskip("mypy")
    return ["mypy", "--config-file=", "--python-executable", python]


@pytest.fixture
def pyright(python) -> list[str | Path]:
    pytest.importorskip("basedpyright")
    return ["basedpyright", "--pythonpath", python]


def test_mypy_finds_the_wrong_lines_and_no_others(project, mypy):
    options = ["--check-untyped-defs", "--disallow-untyped-decorators"]
    done = run(*mypy, *options, "right.py", "wrong.py", cwd=project)
    reported = re.findall(r"^(\w+\.py):(\d+): error: ", done.stdout, re.MULTILINE)
    assert {(name, int(line)) for name, line in reported} == marked_lines(), done.stdout + done.stderr
    lines = (Path(project) / "wrong.py").read_text().splitlines()
    unclear = re.findall(r'^wrong\.py:(\d+): error: "None" not callable', done.stdout, re.MULTILINE)
    assert [lines[int(line) - 1].partition("  #")[0] for line in unclear] == ['autolink.cxx("")(3.0)']


def test_pyright_finds_the_wrong_lines_and_no_others(project, pyright):
    settings = {"typeCheckingMode": "standard", "include": ["right.py", "wrong.py"]}
    (project / "pyrightconfig.json").write_text(json.dumps(settings))
    done = run(*pyright, "--outputjson", cwd=project)
    found = json.loads(done.stdout)["generalDiagnostics"]
    reported = {(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in found}
    assert reported == marked_lines(), json.dumps(found, indent=1)


# What is wrong, what mypy says of it, and what pyright says.
EXPLAINED = {
    "cuda.jit(fastmth=True)": ('"fastmth" for "jit"; did you mean "fastmath"?', 'No parameter named "fastmth"'),
    "cuda.jit('void()', lineinf=True)": ('did you mean "lineinfo"?', 'No parameter named "lineinf"'),
    "cuda.jit(kernel.py_func, lineinf=True)": ('did you mean "lineinfo"?', 'No parameter named "lineinf"'),
    "cuda.jit(device=True, lineinf=True)": ('did you mean "lineinfo"?', 'No parameter named "lineinf"'),
    "cuda.jit(lineinfo='yes')": ('Argument "lineinfo" to "jit"', 'parameter "lineinfo" of type "bool"'),
    "cuda.jit(max_registers='64')": ('expected "int | None"', 'parameter "max_registers" of type "int | None"'),
    "cuda.jit(3.5)": ('"Callable[[Function], Function] | Signature"', 'parameter "func_or_sig"'),
    "kernel[1](3, 'x')": ('"LaunchNeedsGridAndBlock" not callable', '"LaunchNeedsGridAndBlock" is not callable'),
    "kernel[7 / 32, 32](3, 'x')": ('expected type "GridAndBlockOfIntegers', '"tuple[float, Literal[32]]"'),
    "cuda.jit('void()', 'void()')": ('"_device" of "jit" cannot be', 'parameter "device"'),
    "cuda.jit(device='yes')": ('"_device" of "jit" cannot be', 'parameter "device"'),
    "kernel[1, 32](3)": ("b: int, a: str", "No overloads"),
    "kernel[1, 32](kernel, 'x')": ('expected "int | DeviceArray', 'parameter of type "Given[int]"'),
    "autolink.bind(kernel, 'void()')(3)": ('expected "GridAndBlockInBrackets"', '"GridAndBlockInBrackets"'),
    "autolink.build(kernel, 3)": ('Argument 2 to "build"', 'parameter "signature"'),
    "autolink.build(kernel, 'void()', lineinf=True)": (
        'Argument "lineinf" to "build" has incompatible type "bool"; expected "NoSuchOption',
        'parameter "lineinf" of type "NoSuchOption',
    ),
    "autolink.build(kernel, 'void()', cc=[80], lineinf=True)": (
        'Argument "lineinf" to "build" has incompatible type "bool"; expected "NoSuchOption',
        'parameter "lineinf" of type "NoSuchOption',
    ),
    "autolink.build(kernel, 'void()', fastmath='yes')": ('Argument "fastmath" to "build"', 'parameter "fastmath"'),
    "autolink.build(kernel, 'void()', cc=9.0)": ('Argument "cc" to "build"', 'parameter "cc"'),
    "autolink.build(kernel)": ('expected "SignatureIsMissing', 'of type "SignatureIsMissing'),
    "autolink.build('kernel.py', 'void()')": ('Argument 1 to "build"', 'parameter "kernel"'),
    "autolink.build(kernel, 'void()', (9, 0), 'ptx')": ('expected "GivenByName', 'of type "GivenByName'),
    "autolink.build(kernel, 'void()', [80], 'ptx')": ('expected "GivenByName', 'of type "GivenByName'),
    "autolink.build_many(kernel, '9.0')": ('Argument 1 to "build_many"', 'parameter "jobs"'),
    "autolink.build_many([], '9.0', 4)": ('expected "GivenByName', 'of type "GivenByName'),
    "autolink.build_many([], on_eror='return')": (
        'Argument "on_eror" to "build_many" has incompatible type "str"; expected "NoSuchOption',
        'parameter "on_eror" of type "NoSuchOption',
    ),
    "autolink.build_many([], on_error='retrun')": ("Literal['raise', 'return']", "Literal['raise', 'return']"),
    "autolink.build_many([], attempts='3')": ('Argument "attempts" to "build_many"', 'parameter "attempts"'),
    "load('all.kernels', emulated=True)": (
        'Argument "emulated" to "load" has incompatible type "bool"; expected "NoSuchOption',
        'parameter "emulated" of type "NoSuchOption',
    ),
    "autolink.cxx('', options={'standard': 'c++20'})": ('Extra key "standard"', '"standard" is an undefined item'),
    "autolink.CUDASource('', options={'ftz': 'yes'})": ('TypedDict item "ftz"', 'parameter "options"'),
    "autolink.Job(kernel, 'void()', options={'fastmaths': True})": (
        'Extra key "fastmaths"',
        '"fastmaths" is an undefined item',
    ),
}


def test_checkers_name_what_is_wrong(tmp_path, mypy, pyright):
    code = "from numba import cuda\nfrom numba.cuda import autolink\nfrom numba_cuda_autolink import load\n"
    code += "@cuda.jit\ndef kernel(b: int, a: str) -> None: ...\n"
    (tmp_path / "explained.py").write_text(code + "\n".join(EXPLAINED))
    by_mypy = run(*mypy, "explained.py", cwd=tmp_path).stdout.splitlines()
    found = json.loads(run(*pyright, "--outputjson", "explained.py", cwd=tmp_path).stdout)["generalDiagnostics"]
    first = code.count("\n")
    for number, (call, (of_mypy, of_pyright)) in enumerate(EXPLAINED.items(), first):
        said = [each["message"] for each in found if each["range"]["start"]["line"] == number]
        assert any(of_pyright in each for each in said), (call, said)
        said = [each for each in by_mypy if each.startswith(f"explained.py:{number + 1}:")]
        assert any(of_mypy in each for each in said), (call, said)
        assert all(len(each) < 500 for each in said), (call, said)


OF_MLIR = """
import numpy as np
import numpy.typing as npt
from numba.cuda import autolink
from numba_cuda_mlir import cuda
from numba_cuda_mlir.cuda.experimental import consteval

hypot = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std").hypot


@cuda.jit
def kernel(x: npt.NDArray[np.float32], n: int) -> None:
    i = cuda.grid(1)
    tile = cuda.shared.array(32, np.float32)
    tile[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    if i < x.size:
        x[i] = hypot(tile[0], helper(x[i]))
        cuda.atomic.add(x, 0, n)


@cuda.jit(device=True)
def helper(x: float) -> float:
    return x


@cuda.jit("void(float32[::1])", lineinfo=True)
def with_signature(x: npt.NDArray[np.float32]) -> None:
    x[0] = cuda.float32x2(1, 2).x


linked: autolink.LinkedKernel = autolink.build(kernel, "void(float32[::1], int32)", cc=(9, 0))
kernel[1, 32](cuda.to_device(np.zeros(3, np.float32)), 3)
with_signature[1, 32](np.zeros(3, np.float32))
autolink.bind(kernel, "void(float32[::1], int32)")[1, 32](np.zeros(3), 3)
cuda.synchronize()
print(kernel.inspect_mlir(), kernel.py_func, cuda.inline_ptx, consteval)
cuda.jit(fastmth=True)  # fastmth
cuda.jit(max_registers="64")  # max_registers
kernel[1, 32](np.zeros(3, np.float32), "3")  # Given|int
kernel[1](np.zeros(3, np.float32), 3)  # LaunchNeedsGridAndBlock
cuda.shared.aray(3, np.float32)  # aray
cuda.local.array()  # array|shape
"""


def test_checkers_know_the_cuda_of_numba_cuda_mlir(tmp_path, mypy, pyright):
    pytest.importorskip("numba_cuda_mlir")
    (tmp_path / "of_mlir.py").write_text(OF_MLIR)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "standard"}))
    found = json.loads(run(*pyright, "--outputjson", cwd=tmp_path).stdout)["generalDiagnostics"]
    by_pyright = [(each["range"]["start"]["line"] + 1, each["message"]) for each in found]
    printed = run(*mypy, "--strict", "of_mlir.py", cwd=tmp_path).stdout
    by_mypy = [(int(line), text) for line, text in re.findall(r"^of_mlir.py:(\d+): error: (.*)", printed, re.MULTILINE)]
    marked = [(n, line.partition("  # ")[2]) for n, line in enumerate(OF_MLIR.splitlines(), 1) if "  # " in line]
    for said in by_pyright, by_mypy:
        assert {line for line, _ in said} == {line for line, _ in marked}, said
        assert all(any(n == line and re.search(name, text) for n, text in said) for line, name in marked), said


def test_the_stub_of_numba_cuda_mlir_has_its_options_and_its_names():
    mlir = pytest.importorskip("numba_cuda_mlir.cuda")
    decorators = pytest.importorskip("numba_cuda_mlir.decorators")
    tree = ast.parse((PROJECT / "stubs" / "numba_cuda_mlir-stubs" / "cuda" / "__init__.pyi").read_text())
    (options,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "JitOptions"]
    declared = {ast.unparse(field.target) for field in options if isinstance(field, ast.AnnAssign)}
    assert declared >= {each.name for each in decorators._get_schema() if not each.name.startswith("_")}
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "numba.cuda"]
    assert not [each.name for node in imports for each in node.names if not hasattr(mlir, each.name)]


# All that it uses has types, and all modules that it imports are found.
STRICT = """
import numpy as np
import numpy.typing as npt
from numba import cuda, float64, int32, void
from numba.cuda import autolink, jit, types
from numba.cuda.autolink import LinkedKernel, cache
from numba.cuda.autolink.cache import info
from numba.cuda.autolink.reports.records import BuildReport
from numba.cuda.autolink.testing import check_linkable
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

std = autolink.cxx("#include <cuda/std/cmath>", namespace="cuda::std")


@cuda.jit
def first(x: npt.NDArray[np.float64], n: int) -> None:
    x[0] = std.fabs(x[n])


@jit(void(float64[::1], int32), lineinfo=True)
def second(x: npt.NDArray[np.float64], n: int) -> None:
    x[0] = n


@cuda.jit([types.void(types.float64[::1], types.int32)])
def third(x: npt.NDArray[np.float64], n: int) -> None:
    x[0] = n


@cuda.jit
def fourth(x: npt.NDArray[np.float32], states: npt.NDArray[np.void]) -> None:
    tile = cuda.shared.array((32, 2), np.float32)
    tile[0, 0] = xoroshiro128p_uniform_float32(states, cuda.grid(1)) + foreign(x[0])
    cuda.cg.this_grid().sync()
    x[0] = tile[0, 0] + cuda.libdevice.fabsf(x[1])


foreign = cuda.declare_device("foreign", "float32(float32)")
foreign.__numba_cuda_link__ = lambda *argtypes: "foreign.cu"


def arches(kernel: LinkedKernel) -> list[str]:
    builds: tuple[BuildReport, ...] = kernel.report.builds
    return [build.arch for build in builds]


x = np.zeros(3)
first[1, 32](x, 3)
built = autolink.build(second, types.void(types.float64[::1], types.int32), cc=["9.0", (8, 0)])
built[0].emulate[1, 32](x, 3)
fourth[1, 32](cuda.device_array(32, np.float32), create_xoroshiro128p_states(32, seed=1))
autolink.build(first, "void(float64[::1], int64)").emulate[1, 32](x, 3)
checked = check_linkable(std.fabs, types.float64)
print(arches(built[0]), third, info().entries, cache.clear(), checked.code[0].size)
"""


EXACT = """
from typing_extensions import assert_type

from numba import cuda
from numba.cuda import autolink

import numba_cuda_autolink


@cuda.jit
def plain(x, y):
    x[0] = y


@cuda.jit
def annotated(x: int, y: int) -> None: ...


@cuda.jit("void(int32, int32)")
def with_signature(x, y):
    x[0] = y


for kernel in (plain, annotated, with_signature):
    assert_type(autolink.build(kernel, "void(int32, int32)"), autolink.LinkedKernel)
linked = autolink.build(plain, "void(int32, int32)")
assert_type(linked, autolink.LinkedKernel)
assert_type(linked.report, autolink.Report)
assert_type(linked.emulate, numba_cuda_autolink.EmulatedKernel)
assert_type(autolink.build(annotated, "void(int32, int32)", cc=(9, 0)), autolink.LinkedKernel)
assert_type(autolink.build(with_signature, "void(int32, int32)", cc="9.0a"), autolink.LinkedKernel)
assert_type(autolink.build(plain, "void(int32, int32)", cc=[80, 90]), list[autolink.LinkedKernel])
assert_type(autolink.bind(plain), numba_cuda_autolink.Kernel)
assert_type(autolink.bind(annotated, "void(int32, int32)"), numba_cuda_autolink.Kernel)
"""


def test_what_build_and_bind_return_is_the_same_type_for_every_kernel(tmp_path, mypy, pyright):
    (tmp_path / "exact.py").write_text(EXACT)
    done = run(*mypy, "--check-untyped-defs", "exact.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "standard"}))
    done = run(*pyright, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", ["3.10", "3.14"])
def test_strict_checkers_find_nothing_unknown(version, tmp_path, mypy, pyright):
    (tmp_path / "strict.py").write_text(STRICT)
    done = run(*mypy, "--strict", "--python-version", version, "strict.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    settings = {"typeCheckingMode": "strict", "include": ["strict.py"], "pythonVersion": version}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = run(*pyright, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


# Nothing tells a function that returns nothing, and that kernels call, from a kernel.
WITHOUT_DEVICE = """
from typing import Any
from numba import cuda


@cuda.jit
def helper(x: Any) -> None:
    x[0] = 1


@cuda.jit
def square(x):
    return x * x


@cuda.jit
def kernel(x: Any) -> None:
    helper(x)
    x[0] = square(x[1])
"""


def test_a_call_that_may_be_of_a_kernel_is_an_error_only_where_such_are_asked_for(tmp_path, mypy, pyright):
    (tmp_path / "hint.py").write_text(WITHOUT_DEVICE)
    done = run(*mypy, "hint.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    done = run(*mypy, "--enable-error-code=deprecated", "hint.py", cwd=tmp_path)
    assert re.findall(r"^hint.py:(\d+): .*kernel\[grid, block\]", done.stdout, re.MULTILINE) == ["18"], done.stdout
    settings = {"typeCheckingMode": "standard", "include": ["hint.py"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    assert run(*pyright, cwd=tmp_path).returncode == 0
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({**settings, "reportDeprecated": "error"}))
    (found,) = json.loads(run(*pyright, "--outputjson", cwd=tmp_path).stdout)["generalDiagnostics"]
    assert "kernel[grid, block]" in found["message"] and found["range"]["start"]["line"] == 17


EMULATED = """
import numpy as np
import numpy.typing as npt
from numba import cuda
from numba.cuda import autolink


@cuda.jit
def kernel(x: npt.NDArray[np.float64], n: int) -> None:
    x[0] = n


linked = autolink.build(kernel, "void(float64[::1], int64)")
"""


@pytest.fixture(scope="module")
def server(python, tmp_path_factory) -> Iterator[LanguageServer]:
    pytest.importorskip("basedpyright")
    with LanguageServer(tmp_path_factory.mktemp("user"), python) as server:
        yield server


OF_NUMBA = "import numba\nfrom numba import cuda\nfrom numba.cuda import types\n"


def public_names(value):
    """What *value* has, without its modules, of which a process has those that some code imported."""
    names = {name for name in dir(value) if not name.startswith("_")}
    return {name for name in names if not isinstance(getattr(value, name), types.ModuleType)}


def test_editors_complete_all_that_they_complete_without_this_package(server, tmp_path_factory):
    before = make_environment(tmp_path_factory.mktemp("environment"), with_stubs=False)
    imported = {"alias", "contextlib", "np", "os", "sys"}  # by numba.cuda, for itself
    with LanguageServer(tmp_path_factory.mktemp("user"), before) as other:
        for name, value in {
            "numba": numba,
            "cuda": cuda,
            "cuda.shared": cuda.shared,
            "cuda.atomic": cuda.atomic,
        }.items():
            code = f"{OF_NUMBA}{name}."
            existing = public_names(value) - imported
            expected = other.complete(code) & existing
            assert expected and expected <= server.complete(code), name


def test_editors_complete_the_names_of_numba_cuda(server):
    names = public_names(cuda)
    assert len(names) > 250
    # What is left of a loop.
    assert names - {"alias"} <= server.complete(f"{OF_NUMBA}cuda.")
    assert {"x", "y", "z"} <= server.complete(f"{OF_NUMBA}cuda.threadIdx.")
    assert {"float32", "Array", "float16", "np_int8", "CPointer", "dim3", "bfloat16"} <= server.complete(
        f"{OF_NUMBA}types."
    )
    kernel = "@cuda.jit\ndef kernel(x):\n    x[0] = 1\n"
    assert {"forall", "inspect_sass", "py_func"} <= server.complete(f"{OF_NUMBA}{kernel}kernel.")
    assert {"create_xoroshiro128p_states"} <= server.complete("import numba.cuda.random\nnumba.cuda.random.")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cuda.grid", ["-> int", "position of this thread"]),
        ("cuda.syncthreads", ["-> None", "Wait for all threads of the block"]),
        ("cuda.threadIdx", ["Dim3", "index of this thread"]),
        ("cuda.shared.array", ["dtype", "threads of a block share"]),
        ("cuda.atomic.add", ["idx", "in one step"]),
        ("cuda.to_device", ["copy: bool", "Allocate and transfer"]),
        ("cuda.jit", ["func_or_sig", "fastmath"]),
        ("cuda.declare_device", ["abi", "foreign function"]),
        ("cuda.stream().synchronize", ["-> None", "Wait for all commands"]),
        ("cuda.device_array(3).copy_to_host", ["-> ndarray", "Numpy ndarray"]),
        ("cuda.event", ["-> Event", "Timing data"]),
        ("cuda.get_current_device().compute_capability", ["tuple[int, int]"]),
        ("cuda.current_context().get_memory_info", ["-> MemoryInfo", "in bytes"]),
        ("cuda.compile", ["abi_info", "PTX or LTO-IR"]),
        ("cuda.libdevice.sincosf", ["-> tuple[float, float]", "libdevice-users-guide"]),
        ("cuda.jit('void()')(lambda: None).specialize", ["Create a new instance"]),
        ("cuda.jit(lambda: None).inspect_sass", ["SASS assembly code"]),
        ("types.float32", ["Float"]),
        ("numba.njit", ["signature_or_function"]),
    ],
)
def test_editors_show_types_and_docstrings_of_numba_cuda(name, shown, server):
    text = server.hover(f"{OF_NUMBA}{name}")
    assert not [each for each in shown if each not in text], text


@pytest.mark.parametrize(
    ("call", "parameters"),
    [("cuda.to_device(", ["obj", "stream", "copy"]), ("cuda.jit(", ["device", "link"]), ("types.Record(", [])],
)
def test_editors_show_parameters_of_numba_cuda(call, parameters, server):
    signatures = server.signatures(OF_NUMBA + call)
    assert signatures and all(name in signatures[0] for name in parameters), signatures


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import numba_cuda_autolink\nnumba_cuda_autolink.", numba_cuda_autolink.__all__),
        ("from numba_cuda_autolink import ", numba_cuda_autolink.__all__),
        ("from numba.cuda import autolink\nautolink.", autolink.__all__),
        ("from numba.cuda.autolink import ", [*autolink.__all__, "reports"]),
        ("from numba.cuda.autolink import cache\ncache.", autolink.cache.__all__),
        ("from numba.cuda.autolink import testing\ntesting.", autolink.testing.__all__),
        (f"{EMULATED}linked.emulate.", ["close", "configure", "name", "signatures", "with_checks", "with_limit"]),
    ],
)
def test_editors_complete_public_names_alone(code, names, server):
    completed = {name for name in server.complete(code) if not name.startswith("__")}
    assert completed == {*names}


def test_editors_complete_what_an_array_on_the_device_has_and_nothing_else(server, asked_of_jedi):
    array = f"{OF_NUMBA}array = cuda.to_device([1])\narray."
    of_the_object = {"alloc_size", "dtype", "gpu_data", "ndim", "shape", "size", "stream", "strides"}
    expected = of_the_object | {name for name in dir(DeviceNDArray) if not name.startswith("_")}
    for completed in server.complete(array), {completion.name for completion in asked_of_jedi(array).complete()}:
        assert {name for name in completed if not name.startswith("_")} == expected


def test_jedi_shows_one_signature_of_a_launch(asked_of_jedi):
    signatures = asked_of_jedi(of_a_kernel("forall(3)(")).get_signatures()
    assert [signature.to_string() for signature in signatures] == ["ForAll(*args)"]


def test_editors_complete_the_options_of_the_compiler(server):
    code = 'from numba.cuda import autolink\nautolink.cxx("", options={"'
    assert {'"use_fast_math"', '"std"'} <= server.complete(code)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("linked.code", "The linked cubin"),
        ("linked.cc", "that it was built for"),
        ("linked.call_sites", "in order of first use"),
        ("linked.report", "What each call provided"),
        ("autolink.current_target().lto", "link-time optimisation"),
        ("autolink.current_target().max_registers", "register cap"),
        ("function.symbol", "The name of the C function"),
        ("function.functor", "called like the function"),
        ("autolink.cache", "The cache"),
        ("autolink.save", "If *kernels* are not what"),
        ("linked.report.kernel", "The name of the kernel"),
        ("linked.report.line", "Where the function is defined"),
        ("linked.report.graph", "to the calls"),
        ("linked.emulate.name", "Its name in Python"),
        ("source.name", "in messages of compilers"),
        ("source.data", "text or bytes"),
        ("source.path", "absolute path"),
        ("linked.call_sites[0].place", "file and line"),
        ("linked.inputs[0].origins", "call sites, or ``link=``"),
    ],
)
def test_editors_show_docstrings_of_this_package(name, shown, server):
    code = (
        "from numba.cuda import autolink\n"
        "linked = autolink.build(lambda x: None, 'void(int32)')\n"
        "function = autolink.device_function(lambda x: x, 'int32')\n"
        "source = autolink.Variable('table', 'float32')\n"
    )
    assert shown in server.hover(code + name)


@pytest.fixture
def asked_of_jedi(python, tmp_path) -> Any:
    jedi = pytest.importorskip("jedi")
    project = jedi.Project(tmp_path, environment_path=python.parents[1])
    project._environment = jedi.create_environment(python.parents[1], safe=False)
    return lambda code: jedi.Script(code, path=tmp_path / "user.py", project=project)


def of_a_kernel(what, arguments=""):
    return f"from numba import cuda\n@cuda.jit{arguments}\ndef kernel(x):\n    x[0] = 1\nkernel.{what}"


def of_a_build(what, cc="(9, 0)"):
    built = f"from numba.cuda import autolink\nlinked = autolink.build(kernel, 'void(int32)', cc={cc})\n"
    return of_a_kernel(f"py_func\n{built}linked.{what}")


LIBRARY = "from numba.cuda import autolink\nlib = autolink.cxx('#include <cuda/std/cmath>')\n"
LOADED = "import numba_cuda_autolink\nnumba_cuda_autolink.load('all.kernels"


def test_jedi_tells_one_kernel_from_a_list(asked_of_jedi):
    one = {completion.name for completion in asked_of_jedi(of_a_build("")).complete()}
    assert {"emulate", "report", "save"} <= one and not one & {"append", "pop"}
    many = {completion.name for completion in asked_of_jedi(of_a_build("", cc="[80, 90]")).complete()}
    assert {"append", "pop"} <= many and "emulate" not in many


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from numba.cuda import autolink\nautolink.", set(autolink.__all__)),
        ("from numba import cuda\ncuda.autolink.current_target().", {"arch", "compute_capability", "lto"}),
        ("from numba.cuda import autolink\nautolink.testing.ask(f)[0].", {"kind", "name", "code"}),
        ("import numba_cuda_autolink\nnumba_cuda_autolink.", {*numba_cuda_autolink.__all__}),
        ("from numba import cuda\ncuda.", {"grid", "shared", "to_device", "float32", "libdevice", "jit"}),
        ("from numba import cuda\ncuda.threadIdx.", {"x", "y", "z"}),
        ("from numba import cuda\ncuda.atomic.", {"add", "cas"}),
        ("from numba import cuda\ncuda.stream().", {"synchronize", "auto_synchronize"}),
        (of_a_kernel(""), {"forall", "inspect_sass", "specialize"}),
        (of_a_kernel("", "(fastmath=True)"), {"forall", "inspect_sass", "specialize"}),
        (of_a_kernel("", "('void(int32)')"), {"forall", "inspect_sass", "specialize"}),
        (of_a_build("call_sites[0]."), {"callee", "place", "line"}),
        (of_a_build("report.builds[0].calls[0]."), {"returned", "inlined"}),
        (f"{LIBRARY}lib.", {"declare", "eval", "expr", "record", "type"}),
        (f"{LIBRARY}lib.type('T').", {"method", "nested", "size", "dtype", "passing"}),
    ],
)
def test_jedi_completes(code, expected, asked_of_jedi):
    assert {completion.name for completion in asked_of_jedi(code).complete()} >= expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f"{LIBRARY}lib.hypot.", {"passing", "python", "signature"}),
        (f"{LIBRARY}lib['f<3>'].", {"passing", "python", "signature"}),
        (f"{LIBRARY}f = lib.f\nf.", {"passing", "python", "signature"}),
        (f"{LOADED}').axpy.", {"configure", "name", "signatures"}),
        (f"{LOADED}')['axpy'].", {"configure", "name", "signatures"}),
        ("from numba.cuda import autolink\nautolink.", {*autolink.__all__, "reports"}),
    ],
)
def test_jedi_completes_nothing_else(code, expected, asked_of_jedi):
    completed = {completion.name for completion in asked_of_jedi(code).complete()}
    assert {name for name in completed if not name.startswith("__")} == expected


def test_jedi_completes_no_names_that_numba_imports_for_itself(asked_of_jedi):
    completed = {completion.name for completion in asked_of_jedi("from numba import cuda\ncuda.").complete()}
    assert not completed & {"Any", "ArrayCTypes", "Callable", "MappingProxyType", "Optional", "ListType"}


@pytest.mark.parametrize("arguments", ["('void(int32)')", "(device=True)"])
def test_jedi_completes_nothing_private_of_numba(arguments, asked_of_jedi):
    completed = {completion.name for completion in asked_of_jedi(of_a_kernel("", arguments)).complete()}
    assert not [name for name in completed if re.match("_[^_]", name)] and "parallel_diagnostics" not in completed


def test_what_stubs_share_is_not_completed_below_numba_cuda():
    assert not [path for path in STUBS.parent.iterdir() if re.match("_[^_]", path.name)]


@pytest.mark.parametrize("name", ["lib.hypot", "lib['f<3>']", "lib.type('T')"])
def test_jedi_knows_calls_of_cxx(name, asked_of_jedi):
    (signature,) = asked_of_jedi(f"{LIBRARY}{name}(").get_signatures()
    assert signature.docstring().startswith("Cxx") and " of C++" in signature.docstring()


@pytest.mark.parametrize(
    "code", ["from numba import cuda\ncuda.jit(", of_a_build("").replace(", cc=(9, 0))\nlinked.", ", ")]
)
def test_jedi_completes_the_options_of_jit(code, asked_of_jedi):
    options = {"fastmath=", "max_registers=", "lineinfo=", "link=", "lto="}
    assert {completion.name_with_symbols for completion in asked_of_jedi(code).complete()} >= options


def test_jedi_shows_parameters(asked_of_jedi):
    (signature,) = asked_of_jedi("from numba.cuda import autolink\nautolink.Extern(").get_signatures()
    assert [parameter.name for parameter in signature.params] == ["symbol", "returns", "args", "cooperative"]


@pytest.mark.parametrize(
    ("folder", "code"),
    [
        (STUBS, autolink),
        (STUBS / "cache", autolink.cache),
        (STUBS / "testing", autolink.testing),
        (PROJECT / "stubs" / "numba_cuda_autolink-stubs", numba_cuda_autolink),
    ],
)
def test_the_stubs_have_the_public_names(folder, code):
    assignments = [
        node for node in ast.parse((folder / "__init__.pyi").read_text()).body if isinstance(node, ast.Assign)
    ]
    (names,) = [ast.literal_eval(node.value) for node in assignments if ast.unparse(node.targets[0]) == "__all__"]
    assert names == list(code.__all__)


def test_the_stub_of_jit_has_the_options_of_numba_cuda():
    classes = [
        node
        for node in ast.parse((STUBS.parent / "decorators" / "__init__.pyi").read_text()).body
        if isinstance(node, ast.ClassDef)
    ]
    options = [
        ast.unparse(field.target)
        for node in classes
        if node.name == "JitOptions"
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    ]
    taken = {*inspect.signature(cuda.jit).parameters, *inspect.signature(_Kernel).parameters}
    assert sorted(options) == sorted(taken - {"func_or_sig", "device", "kws", "py_func", "argtypes"})


def test_all_that_the_stubs_declare_has_a_docstring_in_the_wheel(python):
    build_stubs = module(PROJECT, "build_stubs")
    (site,) = python.parents[1].glob("lib/*/site-packages")
    stubs = [
        *(site / "numba" / "cuda" / "autolink").rglob("*.pyi"),
        site / "numba_cuda_autolink-stubs" / "__init__.pyi",
        *(site / "numba" / "cuda" / "core" / "_stubs").glob("*.py"),
    ]
    assert len(stubs) > 5
    for stub in stubs:
        lines = stub.read_text().splitlines()
        public = [
            (name, node)
            for name, node in build_stubs.declarations(ast.parse("\n".join(lines)).body)
            if not re.search(r"(^|\.)_", name)
        ]
        assert not [name for name, node in public if not build_stubs.has_docstring(node, lines)], stub


METHODS = (types.FunctionType, classmethod, property, functools.cached_property)


@pytest.mark.parametrize("name", ["", ".cache", ".reports.records", ".testing"])
def test_the_stubs_of_the_wheel_have_the_docstrings_of_the_code(name, python):
    code = importlib.import_module(f"numba.cuda.autolink{name}")
    (path,) = python.parents[1].glob(f"lib/*/site-packages/numba/cuda/autolink/{name[1:].replace('.', '/')}")
    tree = ast.parse((path / "__init__.pyi").read_text())
    compared = [(tree, code)]
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            value = getattr(code, node.name)
            compared.append((node, value))
            if isinstance(value, type):
                methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
                found = [(each, vars(value).get(each.name)) for each in methods if not each.name.startswith("__")]
                compared += [(each, method) for each, method in found if isinstance(method, METHODS)]
    assert len(compared) > 8
    for node, value in compared:
        inherited = isinstance(value, type) and not vars(value).get("__doc__")
        written = None if inherited else value.__doc__
        if written:  # an attribute may have its text in the docstring of the class
            assert ast.get_docstring(node) == inspect.cleandoc(written), getattr(node, "name", name)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("from numba.cuda import autolink\nautolink.cxx", "Use C++ by name: without declarations"),
        ("from numba.cuda import autolink\nautolink.Report.to_trace", "Return the timeline of the build"),
    ],
)
def test_jedi_shows_docstrings(code, shown, asked_of_jedi):
    (name,) = asked_of_jedi(code).help()
    assert shown in name.docstring()


# Pages of errors, and of Numba's own extensions, which checkers do not know.
UNTYPED_PAGES = {"errors.md", "porting.md"}
ACCEPTED = {
    "no-redef": "blocks of a page define kernels of the same name",
    "name-defined": "a file that goes on from the block before it",
    "import-not-found": "a package that is not installed here",
    "import-untyped": "a package without types",
}


@pytest.fixture
def pages(tmp_path) -> Path:
    """The code of the pages, in a folder for each."""
    for page in [PROJECT / "README.md", *DOCS.glob("*.md")]:
        if page.name in UNTYPED_PAGES:
            continue
        parts, folder = [""], tmp_path / page.stem
        for block in blocks_of(page.read_text()):
            if block.mark == "file" and block.argument.endswith((".py", ".pyi")):
                (folder / block.argument).parent.mkdir(parents=True, exist_ok=True)
                (folder / block.argument).write_text(block.code)
            elif block.language == "python" and block.mark != "replace":
                parts += [""] if block.mark == "fresh" else []
                parts[-1] += block.code
        for number, part in enumerate(parts):
            folder.mkdir(exist_ok=True)
            (folder / f"page_{number}.py").write_text(part)
    return tmp_path


# .ci/run runs it too, in its step of the documentation.
@pytest.mark.thorough
def test_mypy_accepts_the_code_of_the_pages(pages, mypy, tmp_path_factory):
    options = ["--check-untyped-defs", "--allow-redefinition", "--cache-dir"]
    options += [tmp_path_factory.mktemp("cache"), *(f"--disable-error-code={code}" for code in ACCEPTED)]
    found = ""
    for folder in sorted(pages.iterdir()):
        files = [path.relative_to(folder) for path in folder.rglob("*.py")]
        done = run(*mypy, *options, *files, cwd=folder)
        found += "" if done.returncode == 0 else f"{folder.name}: {done.stdout}{done.stderr}"
    assert not found


ACCEPTED_BY_PYRIGHT = {
    "reportUndefinedVariable": "a file that goes on from the block before it",
    "reportRedeclaration": "blocks of a page define kernels of the same name",
    "reportMissingImports": "a package that is not installed here",
    "reportFunctionMemberAccess": "operators of PyTorch",
}


# .ci/run runs it too, in its step of the documentation.
@pytest.mark.thorough
def test_pyright_accepts_the_code_of_the_pages(pages, pyright):
    if importlib.util.find_spec("numba_cuda_mlir") is None:  # whose stub pyright takes from the package alone
        shutil.rmtree(pages / "second_front_end")
    settings = {"typeCheckingMode": "standard", **dict.fromkeys(ACCEPTED_BY_PYRIGHT, "none")}
    (pages / "pyrightconfig.json").write_text(json.dumps(settings))
    done = run(*pyright, "--outputjson", cwd=pages)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] > 20
    # cuda.core and cuda.bindings have no types.
    wrong = [each for each in report["generalDiagnostics"] if "is unknown import symbol" not in each["message"]]
    assert not wrong, json.dumps(wrong, indent=1)


# Those of numba-cuda with types of their own, and the package whose modules are not public.
OTHERS = [
    "numba_cuda_autolink",
    "numba.cuda.api",
    "numba.cuda.cache_hints",
    "numba.cuda.compiler",
    "numba.cuda.cudadrv.devicearray",
    "numba.cuda.cudadrv.devices",
    "numba.cuda.cudadrv.driver",
    "numba.cuda.cudadrv.linkable_code",
    "numba.cuda.device_init",
    "numba.cuda.dispatcher",
    "numba.cuda.kernels.reduction",
    "numba.cuda.random",
]


# .ci/run runs it too, in its step of the documentation.
@pytest.mark.thorough
def test_the_stubs_agree_with_the_code(tmp_path, python):
    pytest.importorskip("mypy")
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-numba_cuda.*]\nignore_missing_imports = True\n")
    options = ["--concise", "--mypy-config-file", "mypy.ini", "--ignore-unused-allowlist"]
    options += ["--allowlist", FOLDER / "stubtest_allowlist.txt"]
    done = run("mypy.stubtest", "numba.cuda.autolink", *options, cwd=tmp_path, python=python)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run("mypy.stubtest", *OTHERS, "--ignore-missing-stub", *options, cwd=tmp_path, python=python)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_from_tables_have_what_is_in_the_tables_of_this_environment():
    from_tables = module(PROJECT / "stubs", "from_tables")
    for path, generate in from_tables.STUBS.items():
        assert {*generate().splitlines()} <= {*path.read_text().splitlines()}, "run python stubs/from_tables.py"


def test_all_modules_of_numba_cuda_are_handed_on():
    internal = re.compile(r"_|(tests|simulator|simulator_init|autolink|cudadrv\.external_code)\b|.*\._")
    handed_on = module(PROJECT, "build_stubs").handed_on()
    assert list(handed_on) == sorted(handed_on)
    existing = {name for name in modules_in(Path(cuda.__file__).parent, ".py") if not internal.match(name)}
    assert existing <= {*handed_on, *modules_in(STUBS.parent, ".pyi")}


def modules_in(folder: Path, suffix: str) -> Iterator[str]:
    for path in folder.rglob(f"*{suffix}"):
        yield ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
