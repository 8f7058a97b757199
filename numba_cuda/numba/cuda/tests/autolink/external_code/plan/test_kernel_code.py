# SPDX-License-Identifier: BSD-2-Clause
"""A kernel's own side of a link."""

import math
import subprocess
import sys

import pytest
from autolink_support import build
from numba import cuda
from numba.cuda.cudadrv.external_code import pipeline
from numba.cuda.cudadrv.external_code.plan.kernel_code import KernelCode, SymbolSite
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkPlan


def test_the_first_site_of_a_symbol_gives_its_prototype():
    code = KernelCode((), sites={"f": (SymbolSite("i32 (i32)", "one call"), SymbolSite("i32 (i64)", "another"))})
    assert code.prototypes == {"f": "i32 (i32)"}
    assert code.referenced_by("f") == "one call"
    assert code.referenced_by("g") == "linked code, not by a call in Python"


def test_sites_that_differ_in_pointers_only_are_the_same():
    first, second, third = (SymbolSite(text, "") for text in ("i32 (i32*, i8)", "i32 (%pair*, i8)", "i32 (i8, i32*)"))
    assert first.untyped == second.untyped != third.untyped


@pytest.fixture
def linked(monkeypatch):
    """The kernel codes that are linked here, rather than by numba-cuda."""
    codes = []
    link = pipeline.link

    def record(plan: LinkPlan, kernel_code: KernelCode, output: str, **options: bool):
        codes.append(kernel_code)
        return link(plan, kernel_code, output, **options)

    monkeypatch.setattr(pipeline, "link", record)
    return codes


@cuda.jit(device=True)
def below(x):
    return math.sin(x) + 1


def test_a_kernel_that_defines_all_it_calls_is_linked_by_numba_cuda(linked):
    def kernel(x):
        print(x[0])
        x[0] = below(x[1])
        cuda.atomic.max(x, 0, 1.0)
        if x[1] < 0:
            raise ValueError

    for options in ({"lto": True}, {"lto": False}, {"debug": True, "opt": False}):
        build(kernel, "void(float64[::1])", **options)
    assert linked == []


def test_undefined_symbols_and_their_sites(linked):
    one, other = (cuda.declare_device(name, "int32(int32)", link=cuda.CUSource(CODE)) for name in ("one", "other"))

    def kernel(x):
        print(x[0])
        x[0] = one(x[0]) + other(one(x[1])) + int(below(x[2]))

    build(kernel)
    (code,) = linked
    assert code.undefined == ("one", "other")
    assert [len(sites) for sites in code.sites.values()] == [1, 1]
    assert "the call with (int32) at" in code.referenced_by("other")
    assert code.entry and code.inputs


CODE = """
extern "C" __device__ int one(int *out, int x) { *out = x; return 0; }
extern "C" __device__ int other(int *out, int x) { *out = x; return 0; }
"""


def test_what_links_is_not_imported_for_a_kernel_without_external_code():
    script = """
import sys
from numba import cuda
from numba.cuda import autolink
@cuda.jit(device=True)
def below(x): return x + 1
def kernel(x): x[0] = below(x[1])
autolink.build(kernel, "void(int32[::1])", cc=(9, 0), output="cubin")
assert not [name for name in sys.modules if name.endswith(("external_code.pipeline", "link.nvjitlink"))]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
