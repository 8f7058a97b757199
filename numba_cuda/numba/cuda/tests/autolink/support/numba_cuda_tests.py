# SPDX-License-Identifier: BSD-2-Clause
"""A plugin for pytest with which numba-cuda's own tests run outside of its repository, and are counted by file::

    pytest -p numba_cuda_tests --benchmark-disable -o consider_namespace_packages=true --pyargs numba.cuda.tests

It defines the option and the fixture that numba-cuda's ``conftest.py`` defines, which is not in its wheel.
"""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

import pytest

_OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--dump-failed-filechecks", action="store_true", help="numba-cuda's own")


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request: pytest.FixtureRequest) -> None:
    request.cls._dump_failed_filechecks = request.config.getoption("--dump-failed-filechecks")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    files: dict[str, Counter[str]] = {}
    for outcome in _OUTCOMES:
        for report in terminalreporter.stats.get(outcome, ()):
            file = "/".join(PurePath(report.location[0]).parts[-2:])
            files.setdefault(file, Counter())[outcome] += 1
    terminalreporter.section("numba-cuda's own tests")
    for file, counts in [*sorted(files.items()), ("all", sum(files.values(), Counter()))]:
        terminalreporter.line(f"{file:50}" + "".join(f"{counts[outcome]:6} {outcome}" for outcome in _OUTCOMES))
