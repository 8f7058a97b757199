# SPDX-License-Identifier: BSD-2-Clause
"""What the README shows works."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from repository import PROJECT

README = (PROJECT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_code_runs_and_prints(code, tmp_path):
    (tmp_path / "readme.py").write_text(code)
    done = subprocess.run([sys.executable, "readme.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"\b[1-9]\d* bytes of machine code", done.stdout)


def test_two_commands_each_one_line_make_an_environment_and_use_it():
    example, tests = (block.rstrip("\n") for block in blocks("sh"))
    made = re.escape("python3 -m venv .venv && .venv/bin/pip install")
    assert re.fullmatch(made + r' "\.\[cu13\]" && \.venv/bin/python examples/fft\.py', example)
    assert re.fullmatch(made + r' "\.\[cu13,test\]" && \.venv/bin/python -m pytest', tests)
    extras = re.findall(r"^(\w+) = \[", (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert {"cu12", "cu13", "test"} <= set(extras)


def test_every_file_that_is_named_exists():
    named = re.findall(r"\b(?:examples|docs|benchmarks)/[\w./]*\w|\bLICENSE\b", README)
    assert len(named) >= 5
    assert [name for name in named if not (PROJECT / name).is_file()] == []


def test_continuous_integration_runs_the_very_test_command():
    """.ci/run takes the command from the README by a pattern, which has to find it, and nothing else."""
    script = (PROJECT / ".ci" / "run").read_text()
    (pattern,) = re.findall(r"grep -E '(.*)' README\.md", script)
    assert re.findall(pattern, README, re.MULTILINE) == [blocks("sh")[1].rstrip("\n")]
