# SPDX-License-Identifier: BSD-2-Clause
"""The library that stands for the driver's."""

from __future__ import annotations

import io

import pytest

from numba_cuda_autolink.emulated_driver import shared_library


@pytest.mark.skipif(shared_library.why_impossible() is not None, reason="this system cannot load such a library")
def test_no_stack_that_can_be_executed_is_asked_for():
    """Newer versions of glibc do not load a library that asks for one, or that says nothing of its stack."""
    elffile = pytest.importorskip("elftools.elf.elffile")
    segments = elffile.ELFFile(io.BytesIO(shared_library._library("a", {"f": 16}))).iter_segments()
    assert [segment["p_flags"] & 1 for segment in segments if segment["p_type"] == "PT_GNU_STACK"] == [0]
