# SPDX-License-Identifier: BSD-2-Clause
"""The folders of the repository, and modules in folders that are not installed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

SUPPORT = Path(__file__).resolve().parent
TESTS = SUPPORT.parent
PROJECT = TESTS.parents[4]
DOCS = PROJECT / "docs"
EXAMPLES = PROJECT / "examples"
BENCHMARKS = PROJECT / "benchmarks"


def module(folder: Path, name: str) -> ModuleType:
    """Import a module as the scripts in a folder do."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
