# SPDX-License-Identifier: BSD-2-Clause
"""What the README shows works."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import numpy as np
import pytest
from numba import cuda
from repository import DOCS, PROJECT, module

README = (PROJECT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


AFTER, BEFORE, OBJECTS = blocks("python")


def kernel_of(code, tmp_path, name):
    path = tmp_path / f"{name}.py"
    path.write_text(code)
    names = {"__name__": name}
    exec(compile(code, str(path), "exec"), names)
    return names["kernel"]


@pytest.mark.gpu(emulated=True)
def test_before_and_after_compute_the_same_and_print(tmp_path, capfd):
    x, y = np.arange(100, dtype=np.float32), np.linspace(0, 9, 100, dtype=np.float32)
    for name, code in {"before": BEFORE, "after": AFTER}.items():
        result = cuda.to_device(np.zeros_like(x))
        kernel_of(code, tmp_path, name)[1, 128](cuda.to_device(x), cuda.to_device(y), result)
        np.testing.assert_allclose(result.copy_to_host(), np.hypot(x, y), rtol=1e-6)
    (shown,), printed = blocks("text"), capfd.readouterr()
    assert printed.err == ""
    assert printed.out == shown


@pytest.mark.gpu(emulated=True)
def test_the_objects_compute_powers(tmp_path):
    x = np.arange(100, dtype=np.float32)
    data = cuda.to_device(x)
    kernel_of(OBJECTS, tmp_path, "objects")[1, 128](data)
    np.testing.assert_allclose(data.copy_to_host(), x**2 + x**3, rtol=1e-6)


@pytest.mark.parametrize(
    ("page", "name", "call"), [("README.md", "readme", "Power(n=2)"), ("docs/index.md", "index", "hypot")]
)
def test_the_picture_is_what_the_report_of_the_example_draws(page, name, call, monkeypatch):
    monkeypatch.setitem(sys.modules, "kernels", ModuleType("kernels"))  # of another program in this process
    pictures, page = module(DOCS, "pictures"), PROJECT / page
    assert f"]({pictures.path_of(name).relative_to(page.parent)})" in page.read_text()
    drawn = pictures.picture(name)
    assert call in drawn
    assert pictures.comparable(drawn) == pictures.comparable(pictures.path_of(name).read_text()), (
        "run python docs/pictures.py"
    )


def test_two_commands_each_one_line_make_an_environment_and_use_it():
    example, tests = (block.rstrip("\n") for block in blocks("sh"))
    made = re.escape("python3 -m venv .venv && .venv/bin/pip install")
    assert re.fullmatch(made + r' "\.\[cu13\]" && \.venv/bin/python examples/fft\.py', example)
    assert re.fullmatch(made + r' "\.\[cu13,test\]" && \.venv/bin/python -m pytest', tests)
    extras = re.findall(r"^(\w+) = \[", (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert {"cu12", "cu13", "test"} <= set(extras)


def test_every_file_that_is_named_exists():
    named = re.findall(r"\b(?:examples|docs|benchmarks)/[\w./]*\w|\b[A-Z]{2,}(?:\.md)?(?=[)`])", README)
    assert len(named) >= 20
    assert [name for name in named if not (PROJECT / name).is_file()] == []


def test_continuous_integration_runs_the_very_test_command():
    """.ci/run takes the command from the README by a pattern, which has to find it, and nothing else."""
    script = (PROJECT / ".ci" / "run").read_text()
    (pattern,) = re.findall(r"grep -E '(.*)' README\.md", script)
    assert re.findall(pattern, README, re.MULTILINE) == [blocks("sh")[1].rstrip("\n")]
