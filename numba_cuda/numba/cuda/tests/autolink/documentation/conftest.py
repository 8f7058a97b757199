# SPDX-License-Identifier: BSD-2-Clause
"""The documentation as Sphinx builds it."""

import importlib.util
import subprocess
import sys

import pytest
from repository import DOCS


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Build the documentation without a warning, and return its folder."""
    for needed in "sphinx", "myst_nb", "furo", "sphinx_copybutton":
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f'needs {needed}: pip install ".[docs]"')
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder
