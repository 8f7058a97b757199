# SPDX-License-Identifier: BSD-2-Clause
"""mypy, pyright and jedi see the public names with their types, through the stubs that are installed."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from docs_runner import blocks_of
from numba import cuda
from numba.cuda import autolink
from numba.cuda.dispatcher import _Kernel
from repository import DOCS, PROJECT, module

FOLDER = Path(__file__).parent
STUBS = PROJECT / "numba-stubs" / "cuda" / "autolink"


def marked_lines() -> set[tuple[str, int]]:
    """The lines of the wrong file that are marked as wrong."""
    lines = (FOLDER / "wrong.py").read_text().splitlines()
    return {("wrong.py", number) for number, line in enumerate(lines, 1) if "# wrong: " in line}


# Other names of numba are of unknown types, as they are without these stubs.
PARTIAL = """
import numba
from numba import cuda, njit, prange
from numba.cuda import grid, shared, types
x = cuda.local.array(4, types.float32)
reveal_type(cuda.grid)
reveal_type(njit)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A user's folder: far from this repository's settings."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("right.py", "wrong.py"):
        shutil.copy(FOLDER / name, folder)
    return folder


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "MYPYPATH"}
    return subprocess.run(
        [sys.executable, "-m", *map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def checked_by_mypy(project) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    (project / "partial.py").write_text(PARTIAL)
    files = ["right.py", "wrong.py", "partial.py"]
    return run("mypy", "--config-file=", "--check-untyped-defs", "--disallow-untyped-decorators", *files, cwd=project)


def test_mypy_finds_the_wrong_lines_and_no_others(checked_by_mypy):
    done = checked_by_mypy
    reported = re.findall(r"^(\w+\.py):(\d+): error: ", done.stdout, re.MULTILINE)
    assert {(name, int(line)) for name, line in reported} == marked_lines(), done.stdout + done.stderr


def test_pyright_finds_the_wrong_lines_and_no_others(project):
    pytest.importorskip("basedpyright")
    settings = {"typeCheckingMode": "standard", "include": ["right.py", "wrong.py"]}
    (project / "pyrightconfig.json").write_text(json.dumps(settings))
    done = run("basedpyright", "--outputjson", "--pythonpath", sys.executable, cwd=project)
    found = json.loads(done.stdout)["generalDiagnostics"]
    reported = {(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in found}
    assert reported == marked_lines(), json.dumps(found, indent=1)


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


def arches(kernel: LinkedKernel) -> list[str]:
    builds: tuple[BuildReport, ...] = kernel.report.builds
    return [build.arch for build in builds]


x = np.zeros(3)
first[1, 32](x, 3)
built = autolink.build(second, types.void(types.float64[::1], types.int32), cc=["9.0", (8, 0)])
built[0].emulate[1, 32](x, 3)
checked = check_linkable(std.fabs, types.float64)
print(arches(built[0]), third, info().entries, cache.clear(), checked.code[0].size)
"""


def test_strict_checkers_find_nothing_unknown(tmp_path):
    pytest.importorskip("mypy")
    pytest.importorskip("basedpyright")
    (tmp_path / "strict.py").write_text(STRICT)
    done = run("mypy", "--config-file=", "--strict", "strict.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict", "include": ["strict.py"]}))
    done = run("basedpyright", "--pythonpath", sys.executable, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from numba.cuda import autolink\nautolink.", set(autolink.__all__)),
        ("from numba import cuda\ncuda.autolink.current_target().", {"arch", "compute_capability", "lto"}),
        ("from numba.cuda import autolink\nautolink.testing.ask(f)[0].", {"kind", "name", "code"}),
    ],
)
def test_jedi_completes(code, expected, tmp_path):
    jedi = pytest.importorskip("jedi")
    completions = jedi.Script(code, path=tmp_path / "user.py").complete()
    assert {completion.name for completion in completions} >= expected


def test_jedi_shows_parameters(tmp_path):
    jedi = pytest.importorskip("jedi")
    (signature,) = jedi.Script(
        "from numba.cuda import autolink\nautolink.Extern(", path=tmp_path / "user.py"
    ).get_signatures()
    assert [parameter.name for parameter in signature.params] == ["symbol", "returns", "args", "cooperative"]


@pytest.mark.parametrize("name", ["", "cache", "testing"])
def test_the_stubs_have_the_public_names(name):
    code = getattr(autolink, name) if name else autolink
    assignments = [
        node for node in ast.parse((STUBS / name / "__init__.pyi").read_text()).body if isinstance(node, ast.Assign)
    ]
    (names,) = [ast.literal_eval(node.value) for node in assignments if ast.unparse(node.targets[0]) == "__all__"]
    assert names == list(code.__all__)


def test_the_stub_of_jit_has_the_options_of_numba_cuda():
    classes = [
        node for node in ast.parse((STUBS.parent / "__init__.pyi").read_text()).body if isinstance(node, ast.ClassDef)
    ]
    options = [
        ast.unparse(field.target)
        for node in classes
        if node.name == "_JitOptions"
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    ]
    taken = {*inspect.signature(cuda.jit).parameters, *inspect.signature(_Kernel).parameters}
    assert sorted(options) == sorted(taken - {"func_or_sig", "device", "kws", "py_func", "argtypes"})


@pytest.fixture(scope="module")
def with_stubs_of_the_wheel(tmp_path_factory) -> Path:
    """A user's folder with the stubs as the wheel has them."""
    folder = tmp_path_factory.mktemp("user")
    module(PROJECT, "build_stubs").write_stubs(folder / "numba-stubs")
    return folder


METHODS = (types.FunctionType, classmethod, property, functools.cached_property)


@pytest.mark.parametrize("name", ["", ".cache", ".reports.records", ".testing"])
def test_the_stubs_of_the_wheel_have_the_docstrings_of_the_code(name, with_stubs_of_the_wheel):
    code = importlib.import_module(f"numba.cuda.autolink{name}")
    path = with_stubs_of_the_wheel / "numba-stubs" / "cuda" / "autolink" / name[1:].replace(".", "/")
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
        written = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
        assert ast.get_docstring(node) == (written and inspect.cleandoc(written)), getattr(node, "name", name)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("from numba.cuda import autolink\nautolink.cxx", "Use C++ by name: without declarations"),
        ("from numba.cuda import autolink\nautolink.Report.to_trace", "Return the timeline of the build"),
        ("from numba.cuda import autolink\nautolink.reports", "Reports of what a kernel links."),
    ],
)
def test_jedi_shows_docstrings(code, shown, with_stubs_of_the_wheel):
    jedi = pytest.importorskip("jedi")
    (name,) = jedi.Script(code, path=with_stubs_of_the_wheel / "user.py").help()
    assert shown in name.docstring()


# Pages of errors, of Numba's own extensions, which checkers do not know, and of numba-cuda-mlir's stubs.
UNTYPED_PAGES = {"errors.md", "porting.md", "second_front_end.md"}
ACCEPTED = {
    "no-redef": "blocks of a page define kernels of the same name",
    "name-defined": "a file that only shows what differs from the one before it",
    "var-annotated": "a list that is filled later",
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
            if block.mark == "file" and block.argument.endswith(".py"):
                (folder / block.argument).parent.mkdir(parents=True, exist_ok=True)
                (folder / block.argument).write_text(block.code)
            elif block.language == "python":
                parts += [""] if block.mark == "fresh" else []
                parts[-1] += block.code
        for number, part in enumerate(parts):
            folder.mkdir(exist_ok=True)
            (folder / f"page_{number}.py").write_text(part)
    return tmp_path


# .ci/run runs it too, in its step of the documentation.
@pytest.mark.thorough
def test_mypy_accepts_the_code_of_the_pages(pages, tmp_path_factory):
    pytest.importorskip("mypy")
    options = ["--config-file=", "--check-untyped-defs", "--allow-redefinition", "--cache-dir"]
    options += [tmp_path_factory.mktemp("cache"), *(f"--disable-error-code={code}" for code in ACCEPTED)]
    found = ""
    for folder in sorted(pages.iterdir()):
        files = [path.relative_to(folder) for path in folder.rglob("*.py")]
        done = run("mypy", *options, *files, cwd=folder)
        found += "" if done.returncode == 0 else f"{folder.name}: {done.stdout}{done.stderr}"
    assert not found


ACCEPTED_BY_PYRIGHT = {
    "reportRedeclaration": "blocks of a page define kernels of the same name",
    "reportGeneralTypeIssues": "such a kernel, in a loop",
    "reportUndefinedVariable": "a file that only shows what differs from the one before it",
    "reportMissingImports": "a package that is not installed here",
    "reportFunctionMemberAccess": "operators of PyTorch",
    "reportPossiblyUnboundVariable": "the variable of a loop, after it",
}


# .ci/run runs it too, in its step of the documentation.
@pytest.mark.thorough
def test_pyright_accepts_the_code_of_the_pages(pages):
    pytest.importorskip("basedpyright")
    settings = {"typeCheckingMode": "standard", **dict.fromkeys(ACCEPTED_BY_PYRIGHT, "none")}
    (pages / "pyrightconfig.json").write_text(json.dumps(settings))
    done = run("basedpyright", "--outputjson", "--pythonpath", sys.executable, cwd=pages)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] > 20
    # cuda.core and cuda.bindings have no types.
    wrong = [each for each in report["generalDiagnostics"] if "is unknown import symbol" not in each["message"]]
    assert not wrong, json.dumps(wrong, indent=1)


# .ci/run runs it too, in its step of the documentation.
@pytest.mark.thorough
def test_the_stubs_agree_with_the_code(tmp_path):
    pytest.importorskip("mypy")
    allowed = ["--allowlist", FOLDER / "stubtest_allowlist.txt", "--ignore-unused-allowlist"]
    done = run("mypy.stubtest", "numba.cuda.autolink", "--concise", *allowed, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_partial_and_leave_the_rest_of_numba_alone(checked_by_mypy):
    assert (PROJECT / "numba-stubs" / "py.typed").read_text() == "partial\n"
    done = checked_by_mypy
    assert re.findall(r"partial\.py:\d+: (.*)", done.stdout) == ['note: Revealed type is "Any"'] * 2, done.stdout
