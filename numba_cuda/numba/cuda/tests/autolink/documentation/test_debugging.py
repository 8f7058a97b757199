# SPDX-License-Identifier: BSD-2-Clause
"""The program that the page on debugging runs NVIDIA's tools on, and the script that runs them."""

import os
import re
import runpy
import shutil
import subprocess
import sys

import pytest
from autolink_support import CC
from numba.cuda import autolink
from repository import DOCS

FOLDER = DOCS / "debugging"


def test_the_program_builds_and_its_breakpoint_is_a_statement(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["wild_write.py"])
    names = runpy.run_path(str(FOLDER / "wild_write.py"))
    linked = autolink.build(names["kernel"], "void(float32[::1], int64)", cc=CC)
    assert b"scatter.cu" in linked.code
    assert linked.report.builds[0].calls[0].object == "Scatter()"
    line = int(re.search(r"break scatter\.cu:(\d+)", (FOLDER / "run_tools.sh").read_text())[1])
    assert names["SOURCE"].splitlines()[line - 1].strip() == "data[at] = value;"
    page = (FOLDER.parent / "debugging.md").read_text()
    assert f"break scatter.cu:{line}" in page
    assert f"```cuda\n{names['SOURCE']}```" in page


@pytest.mark.parametrize("mode, has_variables", [("", False), ("debug", True)])
def test_code_for_a_debugger_has_the_variables_of_the_source(monkeypatch, mode, has_variables):
    monkeypatch.setattr(sys, "argv", ["wild_write.py", mode])
    names = runpy.run_path(str(FOLDER / "wild_write.py"))
    code = autolink.build(names["kernel"], "void(float32[::1], int64)", cc=CC).code
    assert (b".debug_info" in code) == has_variables


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_the_script_is_valid():
    subprocess.run(["sh", "-n", str(FOLDER / "run_tools.sh")], check=True)


@pytest.mark.gpu
def test_linked_code_prints(tmp_path):
    done = subprocess.run(
        [sys.executable, str(FOLDER / "wild_write.py")], capture_output=True, text=True, check=True, env=os.environ
    )
    assert "scatter: the first value is 0" in done.stdout
    assert "sum 4032.0" in done.stdout


@pytest.mark.gpu
def test_a_failed_assertion_names_the_line_of_the_source():
    done = subprocess.run([sys.executable, str(FOLDER / "wild_write.py"), "assert"], capture_output=True, text=True)
    assert done.returncode != 0
    output = done.stdout + done.stderr
    # The emulator knows where the source is in the Python file.
    assert re.search(r"scatter\.cu:\d+|wild_write\.py:15\b", output) and "Assertion `at >= 0` failed" in output
