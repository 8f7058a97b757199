# SPDX-License-Identifier: BSD-2-Clause
"""docs/caching.md: its tables name the environment variables and the kinds of cached things that there are."""

from __future__ import annotations

import re

import pytest
from repository import DOCS, PROJECT

from numba_cuda_autolink.settings import VARIABLES, parse_size

PAGE = DOCS / "caching.md"
SOURCES = [
    *(PROJECT / "numba_cuda/numba/cuda/autolink").rglob("*.py"),
    *(PROJECT / "numba_cuda/numba/cuda/cudadrv").rglob("*.py"),
    *(PROJECT / "numba_cuda_autolink").rglob("*.py"),
]


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text()


def test_the_table_of_environment_variables_is_complete(page):
    in_code = set()
    for source in SOURCES:
        in_code |= set(re.findall(r"\bNUMBA_CUDA_AUTOLINK(?:_[A-Z]+)*\b", source.read_text()))
    table = page[page.index("## Settings") : page.index("## Why was it built")]
    assert len(in_code) >= 7
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == in_code == set(VARIABLES)


def test_the_table_of_kinds_is_complete(page):
    in_code = set()
    for source in SOURCES:
        in_code |= set(re.findall(r'CacheKey\(\s*"(\w+)"', source.read_text()))
    table = page[page.index("## What is kept") : page.index("## What it depends on")]
    shown = set(re.findall(r"^\| `?(\w+)`? \|", table, re.MULTILINE)) - {"Kind"}
    assert shown == in_code


def test_the_defaults_are_those_of_the_code(page):
    from numba.cuda.cudadrv.external_code.cache.settings import DEFAULT_MAX_BYTES

    from numba_cuda_autolink.cache_folder import FOLDER_NAME

    (size,) = re.findall(r"`NUMBA_CUDA_AUTOLINK_CACHE_SIZE` \|.*\| `(\w+)` \|", page)
    assert parse_size(size) == DEFAULT_MAX_BYTES
    assert f"~/.cache/{FOLDER_NAME}" in page
