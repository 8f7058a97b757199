# SPDX-License-Identifier: BSD-2-Clause
"""The wheel, and every way of installing it that should work.

Each layout is a virtual environment of its own. numba-cuda is copied into it, file by file as its RECORD says, and
all other packages are linked from the running environment, so nothing is downloaded.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import textwrap
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from repository import PROJECT

FINDER = ("_numba_cuda_autolink_finder.py", "numba_cuda_autolink_finder.pth")
HOST = "numba_cuda/numba/cuda"


@dataclass(frozen=True)
class Environment:
    """A virtual environment: its interpreter, its site-packages, and where numba-cuda and this project lie."""

    python: Path
    site: Path
    host: Path
    home: Path

    def run(self, code: str, cwd: Path | None = None, options: tuple[str, ...] = (), **variables: str):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA", "PYTEST", "PIP_"))}
        return subprocess.run(
            [self.python, *options, "-c", textwrap.dedent(code)],
            cwd=cwd or self.python.parent,
            env={**clean, **variables},
            capture_output=True,
            text=True,
            timeout=120,
        )

    def facts(self, code: str, **where):
        """What *code* leaves in ``facts``, from a process that must end well and print nothing to stderr."""
        done = self.run(f"facts = {{}}\n{textwrap.dedent(code)}\nimport json; print(json.dumps(facts))", **where)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return json.loads(done.stdout)

    def pip(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "pip", "--python", self.python, "install", "--no-deps", "--no-index"]
        subprocess.run([*command, "--quiet", *arguments], check=True, timeout=120)


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
    """The importable modules of the wheel, under the names they are imported by."""
    files = [n for n in names if n.startswith(HOST) and n.endswith(".py") and not n.endswith("/__main__.py")]
    return [re.sub(r"(/__init__)?\.py$", "", n).split("/", 1)[1].replace("/", ".") for n in files]


def bare(folder: Path) -> Environment:
    """An environment with neither numba-cuda nor this project, but with links to all other installed packages."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for installed in map(Path, sys.path):
        if installed.name in ("site-packages", "dist-packages"):
            for entry in installed.iterdir():
                theirs = not entry.name.lstrip("_").startswith("numba_cuda") and entry.name != "__pycache__"
                if theirs and entry.suffix != ".pth" and not (site / entry.name).exists():
                    (site / entry.name).symlink_to(entry)
    return Environment(folder / "bin" / "python", site, host=site, home=site)


def copy_numba_cuda(target: Path) -> None:
    """Copy the installed numba-cuda, but for its tests."""
    for file in importlib.metadata.files("numba-cuda") or ():
        if not str(file).startswith(("..", f"{HOST}/tests/")):
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file.locate(), target / file)


def with_host(folder: Path) -> Environment:
    environment = bare(folder)
    copy_numba_cuda(environment.site)
    return environment


def beside(folder, wheel):
    environment = with_host(folder)
    environment.pip(wheel)
    return environment


def editable(folder, wheel):
    environment = with_host(folder)
    environment.pip("--no-build-isolation", "--editable", PROJECT)
    return Environment(environment.python, environment.site, environment.site, home=PROJECT)


def target_directory(folder, wheel):
    """Ours in a directory of its own, as ``pip install --target`` leaves it."""
    environment = with_host(folder)
    home = folder / "target"
    environment.pip("--target", home, wheel)
    (environment.site / "target.pth").write_text(f"import site; site.addsitedir({str(home)!r})\n")
    return Environment(environment.python, environment.site, environment.site, home)


def layered(folder, wheel, pth):
    """numba-cuda in a layer below ours, whose redirector starts before or after our finder."""
    environment = bare(folder)
    host = folder / "layer"
    copy_numba_cuda(host)
    (environment.site / pth).write_text(f"import site; site.addsitedir({str(host)!r})\n")
    environment.pip(wheel)
    return Environment(environment.python, environment.site, host, environment.site)


def zipped(folder, wheel):
    """Ours as a zip file in ``sys.path``: the wheel itself."""
    environment = with_host(folder)
    (environment.site / "zipped.pth").write_text(f"{wheel}\nimport _numba_cuda_autolink_finder\n")
    return Environment(environment.python, environment.site, environment.site, home=wheel)


LAYOUTS = {
    "beside": beside,
    "editable": editable,
    "target directory": target_directory,
    "layered, host first": functools.partial(layered, pth="a.pth"),
    "layered, host last": functools.partial(layered, pth="z.pth"),
    "zipped": zipped,
}


@pytest.fixture(scope="module", params=LAYOUTS)
def environment(request, tmp_path_factory, wheel) -> Environment:
    return LAYOUTS[request.param](tmp_path_factory.mktemp("environment"), wheel)


WHICH_ARE_LOADED = """
import sys
import numba.cuda
facts["host"] = numba.cuda.__file__
facts["loaded"] = [name for name in MODULES if name in sys.modules]
"""


def test_importing_numba_cuda_activates(environment, modules):
    facts = environment.facts(f"MODULES = {modules}" + WHICH_ARE_LOADED)
    assert facts["host"] == str(environment.host / HOST / "__init__.py")
    assert "numba.cuda.autolink" in facts["loaded"]


def test_every_module_comes_from_where_it_was_installed(environment, modules):
    facts = environment.facts(
        f"""
        import importlib
        facts["files"] = [importlib.import_module(name).__file__ for name in {modules}]
        """
    )
    assert [file for file in facts["files"] if not file.startswith(str(environment.home / HOST))] == []
    assert len(facts["files"]) > 5


def test_the_variable_keeps_this_project_out(environment, modules):
    facts = environment.facts(f"MODULES = {modules}" + WHICH_ARE_LOADED, NUMBA_CUDA_AUTOLINK="0")
    assert facts == {"host": str(environment.host / HOST / "__init__.py"), "loaded": []}


def test_python_started_in_the_repository_root(environment, modules):
    facts = environment.facts(f"MODULES = {modules}" + WHICH_ARE_LOADED, cwd=PROJECT)
    assert facts["host"] == str(environment.host / HOST / "__init__.py")
    assert "numba.cuda.autolink" in facts["loaded"]


def test_names_in_the_wheel_never_meet_those_of_numba_cuda(names):
    theirs = {str(file) for file in importlib.metadata.files("numba-cuda") or ()}
    assert f"{HOST}/__init__.py" in theirs
    assert theirs.isdisjoint(names)


def test_the_wheel_holds_the_package_the_driver_side_and_the_finder(names):
    folders = {name.rpartition("/")[0] for name in names if ".dist-info/" not in name}
    assert set(FINDER) <= set(names)
    assert {f for f in folders if not f.startswith(f"{HOST}/autolink/")} == {"", f"{HOST}/autolink", f"{HOST}/cudadrv"}
    assert [n for n in names if n.endswith("__init__.py") and not n.startswith(f"{HOST}/autolink/")] == []


def with_finder(folder: Path) -> Environment:
    """numba-cuda with our finder, and no ``numba.cuda.autolink`` to find."""
    environment = with_host(folder)
    for name in FINDER:
        shutil.copy(PROJECT / name, environment.site)
    return environment


@pytest.fixture(scope="module")
def finder_alone(tmp_path_factory) -> Environment:
    return with_finder(tmp_path_factory.mktemp("environment"))


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
        package = tmp_path / HOST / "autolink"
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
    assert finder_alone.run(code, PYTHONPATH=str(tmp_path), NUMBA_CUDA_AUTOLINK="0").stderr == ""


def test_without_numba_cuda_python_starts_and_numba_imports(tmp_path, wheel):
    environment = bare(tmp_path)
    environment.pip(wheel)
    assert environment.facts("import numba; facts['numba'] = numba.__name__") == {"numba": "numba"}


def test_a_broken_numba_cuda_fails_with_its_own_error(tmp_path):
    environment = with_finder(tmp_path)
    (environment.site / HOST / "__init__.py").write_text("raise OSError('torn')")
    done = environment.run("import numba; print('numba'); import numba.cuda")
    assert (done.returncode, done.stdout) == (1, "numba\n")
    assert done.stderr.endswith("OSError: torn\n")
    assert "autolink is not active" not in done.stderr


def test_the_loader_of_numba_cuda_stays_its_own(finder_alone):
    facts = finder_alone.facts(
        """
        import importlib, importlib.util, inspect
        facts["found"] = importlib.util.find_spec("numba.cuda").loader.get_filename("numba.cuda")
        import numba.cuda
        facts["loader"] = type(numba.cuda.__loader__).__name__, type(numba.cuda.__spec__.loader).__name__
        facts["source"] = "SPDX" in inspect.getsource(numba.cuda)
        """,
        NUMBA_CUDA_AUTOLINK="0",
    )
    found = str(finder_alone.host / HOST / "__init__.py")
    assert facts == {"found": found, "loader": ["SourceFileLoader", "SourceFileLoader"], "source": True}


def test_import_time_grows_by_less_than_five_percent(tmp_path, wheel):
    """Our part of each run over the rest of the same run, so that a slow machine slows both; the median of seven."""
    environment = beside(tmp_path, wheel)
    environment.run("import numba.cuda")  # writes the byte code and warms the disk cache

    def share() -> float:
        report = environment.run("import numba.cuda", options=("-X", "importtime")).stderr
        lines = re.findall(r"^import time: +\d+ \| +(\d+) \| *(\S+)$", report, re.MULTILINE)
        microseconds = {module: int(cumulative) for cumulative, module in lines}
        ours = microseconds["numba.cuda.autolink"] + microseconds["_numba_cuda_autolink_finder"]
        return ours / (microseconds["numba.cuda"] - microseconds["numba.cuda.autolink"])

    shares = [share() for _ in range(7)]
    print(f"added import time: {statistics.median(shares):.1%}, of {[f'{s:.1%}' for s in shares]}")
    assert statistics.median(shares) < 0.05
