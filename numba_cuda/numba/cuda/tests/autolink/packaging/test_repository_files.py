# SPDX-License-Identifier: BSD-2-Clause
"""The files for contributors name what is there, agree with each other, and are in the source distribution."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile

import pytest
from repository import PROJECT, TESTS

from numba_cuda_autolink import command_entry

METADATA = (PROJECT / "pyproject.toml").read_text()
(VERSION,) = re.findall(r'^version = "(.+)"$', METADATA, re.MULTILINE)
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "README.md")
WORKFLOW = PROJECT / ".github" / "workflows" / "ci.yml"
BUG_FORM = PROJECT / ".github" / "ISSUE_TEMPLATE" / "bug.yml"
OTHERS = ("CITATION.cff", ".pre-commit-config.yaml", ".github/workflows/ci.yml", ".github/ISSUE_TEMPLATE/bug.yml")

#: The folders that a page may name a file relative to.
FOLDERS = (
    PROJECT,
    PROJECT / "examples",
    PROJECT / "numba_cuda/numba/cuda",
    PROJECT / "numba_cuda/numba/cuda/autolink",
    PROJECT / "numba_cuda/numba/cuda/cudadrv/external_code",
    TESTS,
)


def read(name: str) -> str:
    return (PROJECT / name).read_text()


def paths_in(page: str) -> list[str]:
    """The files and folders of the repository that a page names in backticks or links."""
    words = re.findall(
        r"`([^`\s]+)`|\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    )
    names = [one or other for one, other in words]
    return [
        name
        for name in names
        if "NAME" not in name
        and "://" not in name
        and re.fullmatch(r"[\w.-]+/|([\w.-]+/)*[\w-]*\.(py|md|toml|cff)|(\w+/)+", name)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_is_there(page):
    named = paths_in(read(page))
    missing = [name for name in named if not any((folder / name).exists() for folder in FOLDERS)]
    assert missing == []


def test_paths_are_recognised():
    page = "`a/b.py`, `c/`, `d.md`, [x](e/f.md), [y](https://g/h.md), `x.y`, `NAME/`, `(9, 0)`\n```sh\n`i.py`\n```\n"
    assert paths_in(page) == ["a/b.py", "c/", "d.md", "e/f.md"]


@pytest.mark.parametrize("name", [*PAGES, *OTHERS])
def test_no_file_names_a_machine_or_a_registry(name):
    assert re.findall(r"/(?:home|root|tmp|work)/|pypi|anaconda\.org|files\.pythonhosted", read(name)) == []


def test_versions_agree():
    assert re.findall(r"^version: (.+)$", read("CITATION.cff"), re.MULTILINE) == [VERSION]
    released = re.findall(r"^## \[(.+?)\]", read("CHANGELOG.md"), re.MULTILINE)
    assert released[:2] == ["Unreleased", VERSION]


def test_every_package_has_a_folder_of_tests():
    """CONTRIBUTING.md says which tests to run after a change by the name of the package."""
    cuda = PROJECT / "numba_cuda" / "numba" / "cuda"
    for packages, tests in ((cuda / "autolink", TESTS), (cuda / "cudadrv" / "external_code", TESTS / "external_code")):
        names = [path.parent.name for path in packages.glob("*/__init__.py")]
        assert [name for name in names if not list((tests / name).glob("test_*.py"))] == []


def test_what_the_workflow_runs_is_there():
    workflow = WORKFLOW.read_text()
    commands = re.findall(r"^ +- run: (.+)$", workflow, re.MULTILINE)
    assert ".ci/run" in commands
    assert (PROJECT / ".ci" / "run").stat().st_mode & 0o111
    (nox,) = [command for command in commands if command.startswith("nox ")]
    (session,) = re.findall(r"--session (\w+)", nox)
    assert f"\ndef {session}(" in read("noxfile.py")
    extras = re.findall(r'install "\.\[(.+)\]"', workflow)
    assert extras and all(f"\n{extra} = [" in METADATA for extra in extras)


def test_a_bug_report_has_the_output_of_doctor(capsys, monkeypatch):
    form = BUG_FORM.read_text()
    (command,) = re.findall(r"Output of `numba-cuda-autolink (\w+)`$", form, re.MULTILINE)
    block = form[form.index(f"id: {command}") :].split("- type:")[0]
    assert "required: true" in block
    monkeypatch.setattr(sys, "argv", ["numba-cuda-autolink", command])
    command_entry.main()
    assert f"numba-cuda-autolink  {VERSION}" in capsys.readouterr().out


def test_the_source_distribution_has_what_tests_read(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True, timeout=120)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {*PAGES, *OTHERS, "LICENSE", "noxfile.py", ".ci/run", "docs/compatibility.json"} <= names
    assert "numba_cuda/numba/cuda/tests/autolink/conftest.py" in names
