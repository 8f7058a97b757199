# SPDX-License-Identifier: BSD-2-Clause
"""A server that has precompiled headers makes the same code as a plain compile, and whatever is in doubt is compiled
plainly."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import sys
import warnings

import pytest
from autolink_support import CC
from cxx_corpus import CORPORA
from numba.cuda import autolink
from numba.cuda.autolink import Target
from numba.cuda.cudadrv.external_code import toolkit
from numba.cuda.cudadrv.external_code.cache.settings import CacheWarning
from numba.cuda.cudadrv.external_code.cache.store import current_store, reset_store
from numba.cuda.cudadrv.external_code.child_process import ChildProcess
from numba.cuda.cudadrv.external_code.compile import header_server, programs
from numba.cuda.cudadrv.external_code.compile.header_prefix import with_room
from numba.cuda.cudadrv.external_code.compile.header_server import (
    close_servers,
    compile_with_server,
    ready_servers,
    wait_for_servers,
)
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit, compile_unit
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item

# With these, precompiled headers are known to make the same code. With others, a server that makes other code is not
# used.
MAKES_SAME_CODE = toolkit.nvrtc_version() >= (13, 5) and sys.platform == "linux"
# Servers are for headers that take long to compile, or are as large.
LARGE = "// " + "x" * 100 + "\n"
HEADER = LARGE * 11_000 + "#pragma once\ntemplate <class T> __device__ T twice(T x) { return FACTOR * x; }\n"

pytestmark = pytest.mark.skipif(not MAKES_SAME_CODE, reason="NVRTC before 13.5, or not Linux")


@pytest.fixture(autouse=True)
def servers():
    yield
    close_servers()


@pytest.fixture
def plain(monkeypatch):
    """The names of the units that are compiled in this process."""
    names = []

    def counted(unit, expressions=()):
        names.append(unit.name)
        return compile_unit(unit, expressions)

    monkeypatch.setattr(header_server, "compile_unit", counted)
    return names


@pytest.fixture
def make(tmp_path):
    """Makes the unit of a source that begins with the header ``large.cuh``."""
    (tmp_path / "large.cuh").write_text(HEADER.replace("FACTOR", "2"))

    def unit(body: str, *, name: str = "unit.cu", before: str = "#include <large.cuh>\n", **options) -> TranslationUnit:
        source = autolink.CUDASource(
            with_room(f"{before}{body}\n", "head"), name=name, include_paths=[tmp_path], options=options
        )
        return TranslationUnit.of(from_item(source), Target(CC, lto=True))

    return unit


def function(number: int) -> str:
    return (
        f'extern "C" __device__ float f{number}(float x) {{ return [&](auto y) {{ return twice(y); }}(x + {number}); }}'
    )


def ready(unit: TranslationUnit) -> None:
    compile_with_server(unit)
    wait_for_servers()
    assert ready_servers() == 1


def test_units_after_the_first_are_compiled_by_the_server_to_the_same_bytes(make, plain):
    ready(make(function(0), name="first.cu"))
    told = "template <class T> extern __device__ char told; static __device__ int own = 4;\n"
    for number, name in enumerate(['a "quoted" name', "second.cu", "f(float32)"], 1):
        unit = make(told + function(number), name=name)
        names = ("&told<decltype(twice(1.0f))>",)
        assert compile_with_server(unit, names) == compile_unit(unit, names)
    assert plain == ["first.cu"]


def test_lines_that_lead_to_the_headers_belong_to_the_prefix(make, plain):
    before = "// a comment\n#define ONE 1\n\n  #include <cuda_fp16.h>  // and another\n#include <large.cuh>\n"
    ready(make(function(1), before=before))
    unit = make(function(2) + '\nstatic_assert(ONE == 1 && __LINE__ == 7, "");', before=before)
    assert compile_with_server(unit) == compile_unit(unit)
    assert len(plain) == 1


def test_a_changed_header_is_noticed(make, plain, tmp_path):
    ready(make(function(1)))
    (tmp_path / "large.cuh").write_text(HEADER.replace("FACTOR", "3"))
    unit = make(function(2))
    assert compile_with_server(unit) == compile_unit(unit)
    assert len(plain) == 2


def test_a_header_that_is_edited_while_a_server_reads_it_leaves_no_server(make, tmp_path, monkeypatch):
    def edit_and_start(script):
        with (tmp_path / "large.cuh").open("a") as file:
            file.write("// edited\n")
        return ChildProcess(script)

    monkeypatch.setattr(header_server, "ChildProcess", edit_and_start)
    compile_with_server(make(function(1)))
    wait_for_servers()
    assert not ready_servers()


def test_other_options_take_another_server_and_the_oldest_ends(make):
    ready(make(function(1)))
    first = next(iter(header_server._servers.values()))
    for std in ("c++17", "c++20"):
        compile_with_server(make(function(1), std=std))
        wait_for_servers()
    assert ready_servers() == 2 and not first.is_ready


def test_what_does_not_compile_has_the_errors_of_a_plain_compile(make):
    ready(make(function(1)))
    wrong = make("__device__ int f() { return absent; }")
    with pytest.raises(CompileError) as by_server:
        compile_with_server(wrong)
    with pytest.raises(CompileError) as plainly:
        compile_unit(wrong)
    assert by_server.value.log == plainly.value.log


def test_what_nvrtc_warns_of_has_the_warnings_of_a_plain_compile(make, plain):
    ready(make(function(1)))
    unit = make('extern "C" __device__ int f(int x) { int unused; return x; }')
    assert "unused" in compile_with_server(unit).log
    assert len(plain) == 2


@pytest.mark.parametrize(
    "source",
    [
        {"before": "/* a comment */\n#include <large.cuh>\n"},
        {"before": "__device__ int before;\n#include <large.cuh>\n"},
        {"before": "#define LINES \\\n1\n#include <large.cuh>\n"},
        {"before": '#include "large.cuh"\n'},
        {"before": "#if 1\n#include <large.cuh>\n#endif\n"},
        {"before": "#include <nv/target>\n", "body": f"__device__ int first;\n#include <large.cuh>\n{function(1)}"},
        {"lineinfo": True},
        {"pre_include": "cuda_fp16.h"},
    ],
    ids=str,
)
def test_a_unit_that_may_depend_on_more_than_its_prefix_takes_no_server(make, source):
    assert compile_with_server(make(**{"body": function(1), **source})).code
    assert not header_server._servers


def test_a_server_that_dies_is_done_without(make, plain):
    ready(make(function(1)))
    next(iter(header_server._servers.values())).close()
    unit = make(function(2))
    assert compile_with_server(unit) == compile_unit(unit)
    assert len(plain) == 2


def test_a_fork_that_is_killed_is_done_without(make, plain):
    ready(make(function(1)))
    (server,) = header_server._servers.values()
    for fork in pathlib.Path(f"/proc/{server._child.pid}/task/{server._child.pid}/children").read_text().split():
        os.kill(int(fork), signal.SIGKILL)
    unit = make(function(2))
    assert compile_with_server(unit) == compile_unit(unit)
    assert len(plain) == 2


def test_verify_mode_compares_both(make, monkeypatch):
    ready(make(function(1)))
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE", "verify")
    reset_store()
    assert current_store().settings.verify
    unit, other = make(function(2)), compile_unit(make(function(3)))
    assert compile_with_server(unit) == compile_unit(unit)
    monkeypatch.setattr(header_server._Server, "compiled", lambda *_: other)
    with pytest.warns(CacheWarning, match="a compile server makes other code"):
        assert compile_with_server(unit) == compile_unit(unit)
    monkeypatch.undo()
    reset_store()


def test_the_setting_turns_servers_on(make, monkeypatch):
    for value, expected in (("", 0), ("0", 0), ("1", 1)):
        monkeypatch.setenv(programs.COMPILE_SERVER, value)
        assert programs.compile_here(make(function(1))).code
        assert len(header_server._servers) == expected


@pytest.mark.thorough
@pytest.mark.parametrize("corpus", CORPORA, ids=lambda each: each.name)
def test_each_call_of_a_library_compiles_to_the_same_bytes(corpus, monkeypatch):
    """In verify mode, which warns of others."""
    monkeypatch.setenv(programs.COMPILE_SERVER, "1")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE", "verify")
    reset_store()
    lib = autolink.cxx(corpus.source.strip() + "\n", namespace=corpus.namespace)
    compared = []
    compiled = header_server._Server.compiled
    monkeypatch.setattr(
        header_server._Server, "compiled", lambda *given: compared.append(compiled(*given)) or compared[-1]
    )
    for name, (argtypes, *_) in corpus.functions[:12]:
        function = lib.expr(name) if name.startswith("[") else lib[name]
        with warnings.catch_warnings(), contextlib.suppress(autolink.CxxError):
            warnings.simplefilter("error", CacheWarning)
            function.signature(*argtypes, cc=CC)
        wait_for_servers()
    assert ready_servers() == 0 or any(compared)
    monkeypatch.undo()
    reset_store()
