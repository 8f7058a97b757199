# SPDX-License-Identifier: BSD-2-Clause
"""The compatibility matrix: all tests with every combination of docs/compatibility.py.

nox                                               all of them, then the page of the documentation with what came out
nox -t ci                                         what .ci/run runs: the corners, and nvmath-python
nox -s "tests(0.30.2, CUDA 12, Python 3.11)"      one; nox --list lists them
nox -s page                                       the page again, with the results that are in build/compatibility

Pythons that are not found are skipped. What follows ``--`` goes to pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nox
from nox.command import CommandFailed

sys.path.insert(0, str(Path(__file__).resolve().parent / "docs"))

import compatibility
from compatibility import COMBINATIONS, Combination, Result

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False


@nox.session
@nox.parametrize(
    "python, combination",
    [nox.param(c.python, c, id=str(c), tags=["ci"] if c in compatibility.CHECKED else []) for c in COMBINATIONS],
)
def tests(session: nox.Session, combination: Combination) -> None:
    """All tests with one combination."""
    result = Result(combination, commit=_commit(), gpu=_gpu())
    start = time.monotonic()
    junit = Path(session.create_tmp()).resolve() / "junit.xml"
    try:
        session.install(f".[cu{combination.cuda_major},test]", *combination.requirements())
        result.add_versions(session.run("python", "-m", "pip", "list", "--format=json", silent=True))
        session.log(", ".join(f"{name} {version}" for name, version in result.versions.items()))
        command = ["python", "-m", "pytest", f"--junitxml={junit}", *session.posargs]
        options = {"PYTEST_ADDOPTS": os.environ.get("PYTEST_ADDOPTS", "-n auto --dist worksteal -q")}
        session.run(*command, env=options, success_codes=[0, 1])  # 1: tests failed, which are in the file
    except CommandFailed as failure:
        result.failed["installation or pytest"] = str(failure.reason)
    if junit.exists():
        result.add_tests(junit)
    result.seconds = round(time.monotonic() - start)
    result.save()
    if result.failed:
        session.error(result.summary())


@nox.session(venv_backend="none")
def page(session: nox.Session) -> None:
    """docs/compatibility.md, from the results."""
    compatibility.write_page()


def _commit() -> str:
    """What is tested, as git names it; CI's copy of the tree has no history."""
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def _gpu() -> str:
    if shutil.which("nvidia-smi") is None:
        return ""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True).stdout.partition("\n")[0]
