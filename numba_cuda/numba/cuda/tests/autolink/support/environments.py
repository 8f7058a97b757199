# SPDX-License-Identifier: BSD-2-Clause
"""Virtual environments with numba-cuda and this project, created without downloading anything."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import textwrap
import venv
from dataclasses import dataclass
from pathlib import Path

#: The folder of the package ``numba.cuda``, in numba-cuda and in this project.
FOLDER = "numba_cuda/numba/cuda"


@dataclass(frozen=True)
class Environment:
    """A virtual environment: its interpreter, its site-packages, and the directories that numba-cuda and this
    project are installed in."""

    python: Path
    site: Path
    numba_cuda: Path
    autolink: Path

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
        """Return what *code* leaves in ``facts``, from a process that must succeed and print nothing to stderr."""
        done = self.run(f"facts = {{}}\n{textwrap.dedent(code)}\nimport json; print(json.dumps(facts))", **where)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return json.loads(done.stdout)

    def pip(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "pip", "--python", self.python, "install", "--no-deps", "--no-index"]
        subprocess.run([*command, "--quiet", *arguments], check=True, timeout=120)


def bare(folder: Path) -> Environment:
    """Return an environment without numba-cuda and this project, but with links to all other installed packages."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for installed in map(Path, sys.path):
        if installed.name in ("site-packages", "dist-packages"):
            for entry in installed.iterdir():
                theirs = not entry.name.lstrip("_").startswith("numba_cuda") and entry.name != "__pycache__"
                if theirs and entry.suffix != ".pth" and not (site / entry.name).exists():
                    link(entry, site)
    return Environment(folder / "bin" / "python", site, numba_cuda=site, autolink=site)


def link(package: Path, site: Path) -> None:
    """Link a *package* into *site*; of Numba the files of numba.cuda, into whose folders a wheel puts stubs."""
    if package.name != "numba":
        (site / package.name).symlink_to(package)
        return
    (site / "numba").mkdir()
    for entry in package.iterdir():
        if entry.name != "cuda":
            (site / "numba" / entry.name).symlink_to(entry)
    without = shutil.ignore_patterns("*.pyi", "tests", "__pycache__")
    shutil.copytree(package / "cuda", site / "numba" / "cuda", ignore=without, copy_function=os.symlink)


def copy_numba_cuda(target: Path) -> None:
    """Copy the installed numba-cuda without its tests."""
    for file in importlib.metadata.files("numba-cuda") or ():
        if not str(file).startswith(("..", f"{FOLDER}/tests/")):
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file.locate(), target / file)


def with_numba_cuda(folder: Path) -> Environment:
    """Return an environment with numba-cuda and without this project."""
    environment = bare(folder)
    copy_numba_cuda(environment.site)
    return environment
