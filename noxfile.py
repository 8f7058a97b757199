# SPDX-License-Identifier: BSD-2-Clause
"""The compatibility matrix: the tests with the combinations of versions in docs/compatibility.py.

nox                                               all tests with all of them, then the page of the documentation
nox -s "tests(0.30.2, CUDA 12, Python 3.11)"      all tests with one of them; nox --list lists them
nox -s corners                                    what .ci/run runs: parts of the tests in the corners of the matrix
nox -s page                                       the page alone, from the results in build/compatibility
nox -s mlir                                       the tests of numba-cuda-mlir, the oldest and the newest
nox -s engines                                    build_many on Dask, Ray and MPI, and the shared cache on S3
nox -s emulated_numba_cuda                        numba-cuda's own tests in the emulator, and a table by file

``tests`` runs the long trials too. Pythons that are not installed are skipped. Arguments after ``--`` go to pytest; the
page does not count such a run.
"""

from __future__ import annotations

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
nox.options.sessions = ["tests", "page"]


@nox.session
@nox.parametrize(
    "python, combination",
    [nox.param(c.python, c, id=str(c)) for c in COMBINATIONS],
)
def tests(session: nox.Session, combination: Combination) -> None:
    """Run all tests with one combination."""
    _run_and_keep(session, combination)


@nox.session
@nox.parametrize("python, combination", [nox.param(c.python, c, id=str(c)) for c in compatibility.CHECKED])
def corners(session: nox.Session, combination: Combination) -> None:
    """Run the part of the tests that a change can break with one combination, in their short form."""
    _install(session, combination)
    command = ["python", "-m", "pytest", "-q"]
    session.run(*command, *compatibility.part_of(combination), *session.posargs)
    if combination.mlir:
        session.run(*command, "--emulate", "-k", "mlir", str(compatibility.TESTS / "frontends"), *session.posargs)


@nox.session
def engines(session: nox.Session) -> None:
    """Run all tests of many kernels and of the shared cache, with the engines and the server that they need."""
    session.install(".[cu13,test,engines]")
    folder = "numba_cuda/numba/cuda/tests/autolink"
    parts = [f"{folder}/{part}" for part in ("many_kernels", "external_code/cache/test_remote.py")]
    session.run("python", "-m", "pytest", "-q", "--thorough", *(session.posargs or parts))


@nox.session
def emulated_numba_cuda(session: nox.Session) -> None:
    """Run the tests in numba-cuda's wheel without a GPU, in the emulator. It passes if pytest does not break off."""
    session.install(".[cu13,test]", "cffi", "filecheck", "ml_dtypes", "pytest-benchmark", "pytest-timeout")
    support = Path("numba_cuda/numba/cuda/tests/autolink/support").resolve()
    folder = Path(session.create_tmp())
    (folder / "pytest.ini").write_text("[pytest]\nconsider_namespace_packages = true\n")  # in place of pyproject.toml
    session.chdir(folder)  # where numba.cuda is the installed one
    command = ["python", "-m", "pytest", "-q", "-n", "2", "--dist", "loadscope", "--timeout=300", "--tb=short"]
    command += ["-p", "numba_cuda_tests", "--benchmark-disable"]
    session.run(
        *command,
        *(session.posargs or ["--pyargs", "numba.cuda.tests"]),
        env={"NUMBA_CUDA_AUTOLINK_EMULATE": "1", "PYTHONPATH": str(support)},
        success_codes=[0, 1],
    )


@nox.session
@nox.parametrize("python, combination", [nox.param(c.python, c, id=str(c)) for c in compatibility.SECOND_FRONT_END])
def mlir(session: nox.Session, combination: Combination) -> None:
    """Run the tests of the second front end."""
    _run_and_keep(session, combination)


@nox.session(venv_backend="none")
def page(session: nox.Session) -> None:
    """Write docs/compatibility.md from the results."""
    compatibility.write_page()


def _run_and_keep(session: nox.Session, combination: Combination) -> None:
    """Run the tests of a combination, and save the result for the page unless nox was given arguments for pytest."""
    result = Result(combination, commit=_commit(), gpu=_gpu())
    start = time.monotonic()
    junit = Path(session.create_tmp()).resolve() / "junit.xml"
    try:
        _install(session, combination)
        result.add_versions(session.run("python", "-m", "pip", "list", "--format=json", silent=True))
        session.log(", ".join(f"{name} {version}" for name, version in result.versions.items()))
        command = ["python", "-m", "pytest", "-q", "--thorough", f"--junitxml={junit}"]
        command += session.posargs or compatibility.tests_of(combination)
        session.run(*command, success_codes=[0, 1])  # 1: tests failed, and the file names them
    except CommandFailed as failure:
        result.failed["installation or pytest"] = str(failure.reason)
    if junit.exists():
        result.add_tests(junit)
    result.seconds = round(time.monotonic() - start)
    if not session.posargs:
        result.save()
    if result.failed:
        session.error(result.summary())


def _install(session: nox.Session, combination: Combination) -> None:
    extra = "mlir-cu" if combination.mlir else "cu"
    session.install(f".[{extra}{combination.cuda_major},test]", *combination.requirements())


def _commit() -> str:
    """Return git's name of the tested commit. CI's copy of the tree has no history."""
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def _gpu() -> str:
    if shutil.which("nvidia-smi") is None:
        return ""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True).stdout.partition("\n")[0]
