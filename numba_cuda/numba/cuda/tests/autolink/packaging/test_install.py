# SPDX-License-Identifier: BSD-2-Clause
"""The wheel, and every way of installing it.

Each layout is a virtual environment. numba-cuda is copied into it, file by file according to its RECORD, and all other
packages are linked from the running environment, so that nothing is downloaded.
"""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from environments import FOLDER, Environment, bare, copy_numba_cuda, with_numba_cuda
from numba.cuda import autolink
from repository import PROJECT

from numba_cuda_autolink import import_hook

HOOK = ("numba_cuda_autolink", "numba_cuda_autolink.pth")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", folder, PROJECT], check=True, timeout=120)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def names(wheel) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


@pytest.fixture(scope="module")
def modules(names) -> list[str]:
    """The importable modules of the wheel by their names in ``numba.cuda``, without those of the second front end."""
    files = [n for n in names if n.startswith(FOLDER) and n.endswith(".py") and not n.endswith("/__main__.py")]
    files = [n for n in files if "/frontends/mlir/" not in n]
    return [re.sub(r"(/__init__)?\.py$", "", n).split("/", 1)[1].replace("/", ".") for n in files]


def same_directory(folder, wheel):
    environment = with_numba_cuda(folder)
    environment.pip(wheel)
    return environment


def editable(folder, wheel):
    environment = with_numba_cuda(folder)
    environment.pip("--no-build-isolation", "--editable", PROJECT)
    return Environment(environment.python, environment.site, environment.site, autolink=PROJECT)


def target_directory(folder, wheel):
    """This project in a directory of its own, as ``pip install --target`` puts it there."""
    environment = with_numba_cuda(folder)
    target = folder / "target"
    environment.pip("--target", target, wheel)
    (environment.site / "target.pth").write_text(f"import site; site.addsitedir({str(target)!r})\n")
    return Environment(environment.python, environment.site, environment.site, target)


def layered(folder, wheel, pth):
    """numba-cuda in a layer below this project; its redirector starts before or after the import hook."""
    environment = bare(folder)
    below = folder / "layer"
    copy_numba_cuda(below)
    (environment.site / pth).write_text(f"import site; site.addsitedir({str(below)!r})\n")
    zipfile.ZipFile(wheel).extractall(environment.site)  # as pip does, in a tenth of the time
    return Environment(environment.python, environment.site, below, environment.site)


def zipped(folder, wheel):
    """This project as a zip file in ``sys.path``: the wheel itself."""
    environment = with_numba_cuda(folder)
    (environment.site / "zipped.pth").write_text(f"{wheel}\n{(PROJECT / HOOK[1]).read_text()}")
    return Environment(environment.python, environment.site, environment.site, autolink=wheel)


LAYOUTS = {
    "same directory": same_directory,
    "editable": editable,
    "target directory": target_directory,
    "layered, numba-cuda first": functools.partial(layered, pth="a.pth"),
    "layered, numba-cuda last": functools.partial(layered, pth="z.pth"),
    "zipped": zipped,
}


ALWAYS = ("same directory", "editable")


@pytest.fixture(scope="module")
def installed(tmp_path_factory, wheel) -> Environment:
    return same_directory(tmp_path_factory.mktemp("environment"), wheel)


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.thorough]) for name in LAYOUTS],
)
def environment(request, tmp_path_factory, wheel) -> Environment:
    if request.param == "same directory":
        return request.getfixturevalue("installed")
    return LAYOUTS[request.param](tmp_path_factory.mktemp("environment"), wheel)


LOADED_MODULES = """
import sys
import numba.cuda
facts["numba.cuda"] = numba.cuda.__file__
facts["loaded"] = [name for name in MODULES if name in sys.modules]
"""
ALL_MODULES = """
import importlib
facts["files"] = [importlib.import_module(name).__file__ for name in MODULES]
from numba.cuda.autolink import Report
from numba.cuda.autolink.function_code.call_graph import CallGraph
report = Report("f", None, None, "(int32)", CallGraph((), ()), (), ())
facts["reports"] = [report.to_html()[:15], report.to_svg()[:4], report.changes_since(report, "html")[:15]]
facts["errors"] = []
for name in "autolink", "cudadrv.external_code.link":
    try:
        exec(f"from numba.cuda.{name} import nothing")
    except ImportError as error:
        facts["errors"].append(str(error).partition(" (")[0])
"""


def test_importing_numba_cuda_activates(environment, modules):
    """Reports find their templates, and a name that no package has is an ImportError."""
    facts = environment.facts(f"MODULES = {modules}" + LOADED_MODULES + ALL_MODULES)
    assert facts["numba.cuda"] == str(environment.numba_cuda / FOLDER / "__init__.py")
    assert "numba.cuda.autolink" in facts["loaded"]
    assert [file for file in facts["files"] if not file.startswith(str(environment.autolink / FOLDER))] == []
    assert len(facts["files"]) > 5
    assert facts["reports"] == ["<!DOCTYPE html>", "<svg", "<!DOCTYPE html>"]
    packages = "numba.cuda.autolink", "numba.cuda.cudadrv.external_code.link"
    assert facts["errors"] == [f"cannot import name 'nothing' from '{each}'" for each in packages]


def test_the_environment_variable_turns_this_project_off(installed, modules):
    facts = installed.facts(f"MODULES = {modules}" + LOADED_MODULES, NUMBA_CUDA_AUTOLINK="0")
    assert facts == {"numba.cuda": str(installed.numba_cuda / FOLDER / "__init__.py"), "loaded": []}


def test_python_can_start_in_the_repository_root(installed, modules):
    facts = installed.facts(f"MODULES = {modules}" + LOADED_MODULES, cwd=PROJECT)
    assert facts["numba.cuda"] == str(installed.numba_cuda / FOLDER / "__init__.py")
    assert "numba.cuda.autolink" in facts["loaded"]


def test_no_file_of_the_wheel_has_the_path_of_one_of_numba_or_numba_cuda(names):
    theirs = {str(file) for name in ("numba", "numba-cuda") for file in importlib.metadata.files(name) or ()}
    assert {f"{FOLDER}/__init__.py", "numba/__init__.py"} <= theirs
    assert theirs.isdisjoint(names)


def test_the_wheel_holds_these_packages_and_nothing_else(names, wheel):
    ours = ("numba_cuda_autolink/", f"{FOLDER}/autolink/", f"{FOLDER}/cudadrv/external_code/")
    stubs = [name for name in names if re.fullmatch(r"(numba/cuda|numba_cuda_(autolink|mlir)-stubs)/.*\.pyi", name)]
    assert {"numba/cuda/__init__.pyi", "numba/cuda/core/errors/__init__.pyi"} <= set(stubs)
    assert "numba_cuda_autolink-stubs/__init__.pyi" in stubs
    stub = zipfile.ZipFile(wheel).read("numba/cuda/autolink/__init__.pyi").decode()
    assert (inspect.getdoc(autolink.current_target) or "").splitlines()[0] in stub
    others = [name for name in names if not name.startswith(ours) and ".dist-info/" not in name]
    for_jedi = ["numba/cuda/core/_stubs/cxx_library.py", "numba/cuda/core/_stubs/kernel_library.py"]
    at_root = ["numba_cuda_autolink.pth", "numba_cuda_autolink.start"]
    partial = "numba_cuda_mlir-stubs/py.typed"
    assert sorted(set(others) - set(stubs)) == ["_numba_cuda_autolink_command.py", *for_jedi, *at_root, partial]
    assert {f"{package}__init__.py" for package in ours} <= set(names)


def test_the_wheel_holds_the_texts_that_modules_read(names):
    texts = {str(file.relative_to(PROJECT)) for file in (PROJECT / FOLDER).rglob("*.cuh")}
    assert f"{FOLDER}/autolink/cxx_by_name/prelude.cuh" in texts and texts <= set(names)


def test_python_starts_the_same_function_by_both_files():
    """Python 3.15 and later call what the .start file names, and skip the line of the .pth file beside it (PEP 829)."""
    (line,) = (PROJECT / HOOK[1]).read_text().splitlines()
    (entry,) = (PROJECT / HOOK[1]).with_suffix(".start").read_text().splitlines()
    module, _, function = entry.partition(":")
    assert line == f"import {module}; {module}.{function}()"
    assert pkgutil.resolve_name(entry) is import_hook.install
    before = list(sys.meta_path)
    import_hook.install()
    assert sys.meta_path == before


def test_where_python_did_not_start_it_importing_autolink_activates(installed):
    """Python does not read the files of a folder in PYTHONPATH."""
    (installed.site / HOOK[1]).rename(installed.site / "set_aside")
    try:
        facts = installed.facts(
            """
            import sys
            import numba.cuda
            facts["at_first"] = "numba_cuda_autolink" in sys.modules
            from numba.cuda import autolink
            from numba.cuda.autolink.frontends.numba_cuda import activation
            import numba_cuda_autolink.import_hook as hook
            facts["then"] = activation.active(), sys.meta_path[0] is hook.Finder
            """
        )
    finally:
        (installed.site / "set_aside").rename(installed.site / HOOK[1])
    assert facts == {"at_first": False, "then": [True, True]}


def with_import_hook(folder: Path) -> Environment:
    """numba-cuda with the import hook, and without a ``numba.cuda.autolink``."""
    environment = with_numba_cuda(folder)
    package, pth = HOOK
    shutil.copytree(PROJECT / package, environment.site / package)
    shutil.copy(PROJECT / pth, environment.site)
    return environment


@pytest.fixture(scope="module")
def finder_alone(tmp_path_factory) -> Environment:
    return with_import_hook(tmp_path_factory.mktemp("environment"))


@pytest.mark.parametrize(
    ("init", "shown"),
    [
        pytest.param(None, "ModuleNotFoundError: No module named 'numba.cuda.autolink'", id="missing"),
        pytest.param("raise LookupError('a seam is gone')", "LookupError: a seam is gone", id="raising"),
        pytest.param("import nothing.of.that.name", "ModuleNotFoundError: No module named 'nothing'", id="incomplete"),
    ],
)
def test_if_this_project_cannot_be_imported_numba_cuda_can_and_warns_once(finder_alone, tmp_path, init, shown):
    if init is not None:
        package = tmp_path / FOLDER / "autolink"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(init)
    code = """
    import numba.cuda
    import importlib; importlib.import_module("numba.cuda.cudadrv.nvrtc")
    ptx, _ = numba.cuda.compile(lambda x: x + 1, (numba.cuda.types.int32,), cc=(9, 0), device=True)
    print("x" if ".visible" in ptx else ptx)
    """
    done = finder_alone.run(code, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "x\n"), done.stderr
    assert done.stderr.count("Warning") == 1
    assert done.stderr.splitlines()[:2] == [
        f"<string>:2: RuntimeWarning: numba-cuda-autolink is not active: {shown}",
        "numba.cuda works without it; NUMBA_CUDA_AUTOLINK=0 turns this warning off.",
    ]
    if init is None:
        assert finder_alone.run(code, PYTHONPATH=str(tmp_path), NUMBA_CUDA_AUTOLINK="0").stderr == ""


def test_without_numba_cuda_python_starts_and_numba_imports(tmp_path, wheel):
    environment = bare(tmp_path)
    zipfile.ZipFile(wheel).extractall(environment.site)
    assert environment.facts("import numba; facts['numba'] = numba.__name__") == {"numba": "numba"}
    done = environment.run("from numba.cuda import autolink", NUMBA_CUDA_AUTOLINK="0")
    first, _, last = done.stderr.splitlines()[-3:]
    assert first == "ImportError: numba-cuda is not installed"
    assert last.startswith("  what to do: ") and "pip install 'numba-cuda-autolink[cu" in last


def test_a_broken_numba_cuda_fails_with_its_own_error(tmp_path):
    environment = with_import_hook(tmp_path)
    (environment.site / FOLDER / "__init__.py").write_text("raise OSError('torn')")
    done = environment.run("import numba; print('numba'); import numba.cuda")
    assert (done.returncode, done.stdout) == (1, "numba\n")
    assert "\nOSError: torn\n" in done.stderr
    assert "autolink is not active" not in done.stderr


def test_the_loader_of_numba_cuda_stays_its_own(finder_alone):
    facts = finder_alone.facts(
        """
        import importlib, importlib.util, inspect
        loader = importlib.util.find_spec("numba.cuda").loader
        facts["found"] = loader.get_filename("numba.cuda")
        assert "SPDX" in type(loader).get_source(loader, "numba.cuda")  # as jedi asks for it
        import numba.cuda
        facts["loader"] = type(numba.cuda.__loader__).__name__, type(numba.cuda.__spec__.loader).__name__
        facts["source"] = "SPDX" in inspect.getsource(numba.cuda)
        """,
        NUMBA_CUDA_AUTOLINK="0",
    )
    found = str(finder_alone.numba_cuda / FOLDER / "__init__.py")
    assert facts == {"found": found, "loader": ["SourceFileLoader", "SourceFileLoader"], "source": True}


def imported(environment: Environment, **variables: str) -> set[str]:
    """The modules that ``import numba.cuda`` leaves in ``sys.modules``."""
    facts = environment.facts("import sys, numba.cuda; facts = sorted(sys.modules)", **variables)
    return set(facts)


def test_importing_numba_cuda_imports_little_of_this_project(installed):
    """The rest is imported by its first use: no compiler, linker, cache or report, and no package that numba-cuda alone
    leaves out."""
    without = imported(installed, NUMBA_CUDA_AUTOLINK="0")
    added = imported(installed) - without
    ours = {name for name in added if name.startswith(("numba.cuda.", "numba_cuda_autolink."))}
    print(len(ours), sorted(added))
    assert {name.partition(".")[0] for name in added - ours} <= set(sys.stdlib_module_names)
    packages = {name.removeprefix("numba.cuda.").rpartition(".")[0] for name in ours}
    assert packages - {"", "cudadrv", "numba_cuda_autolink"} <= {
        "autolink",
        "autolink.compilation",
        "autolink.frontend_api",
        "autolink.frontends",
        "autolink.frontends.numba_cuda",
        "cudadrv.external_code",
        "cudadrv.external_code.diagnostics",
        "cudadrv.external_code.platform",
    }
    assert len(ours) <= 32
