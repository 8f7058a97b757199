# SPDX-License-Identifier: BSD-2-Clause
"""The processes that run the programs of all tests here."""

from __future__ import annotations

import pytest
from kernel_cache_support import start_servers


@pytest.fixture(scope="session")
def servers():
    yield from start_servers()
