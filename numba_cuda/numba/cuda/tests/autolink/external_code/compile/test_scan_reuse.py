# SPDX-License-Identifier: BSD-2-Clause
"""Sources that differ in nothing that decides which headers are read are scanned once."""

import dataclasses
import time

import pytest
from numba.cuda.cudadrv.external_code.compile import scan_reuse
from numba.cuda.cudadrv.external_code.headers.manifest import HeaderManifest
from numba.cuda.cudadrv.external_code.headers.scan import Scan, SourceText

FIRST = "#include <probe.h>\n#include <value.h>\n#define SIZE 1\nint f() { return VALUE + SIZE; }"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(scan_reuse, "_known", {})
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.headers.file_state._TIME_MARGIN", 0)
    (tmp_path / "own").mkdir()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "probe.h").write_text("#define PROBE(x) __has_include(x)\n#define WHERE __FILE__\n")
    (tmp_path / "value.h").write_text("#define VALUE 1\n")
    time.sleep(0.02)
    return tmp_path


def source(folder, code, **others):
    package = str(folder / "package")
    return SourceText(
        code.encode(), str(folder), (str(folder / "own"), package, str(folder)), packages=(package,), **others
    )


def scanned(text):
    """The manifest that a scan gives, which is remembered."""
    scan = Scan(text)
    manifest = HeaderManifest.of(scan.run(), text, time.time_ns())
    scan_reuse.remember(scan, manifest)
    return manifest


def forget():
    """Forget what is in memory, as another process does not have it."""
    scan_reuse._known.clear()


@pytest.mark.parametrize("between", [lambda: None, forget], ids=["process", "another process"])
@pytest.mark.parametrize(
    "code", [FIRST, FIRST.replace("int f()", "float g()"), FIRST.replace("+ SIZE", "* SIZE // comment")]
)
def test_what_was_found_for_one_source_holds_for_another_that_includes_the_same(folder, code, between):
    first = scanned(source(folder, FIRST))
    between()
    found = scan_reuse.manifest_of(source(folder, code))
    assert found == dataclasses.replace(scanned(source(folder, code)), recorded=found.recorded)
    assert found.digest == first.digest


@pytest.mark.parametrize("between", [lambda: None, forget], ids=["process", "another process"])
@pytest.mark.parametrize(
    "code",
    [
        FIRST.replace("value.h", "probe.h"),
        FIRST.replace("SIZE 1", "SIZE 2"),
        FIRST.replace("VALUE", 'PROBE("b.h")'),
        FIRST.replace("VALUE", "PROBE(NAME)"),
        FIRST.replace("+ SIZE", "+ *WHERE"),
        FIRST.replace("+ SIZE", "+ *__FILE__"),
    ],
)
def test_another_source_is_scanned(folder, code, between):
    scanned(source(folder, FIRST))
    between()
    assert scan_reuse.manifest_of(source(folder, code)) is None


def test_so_is_one_with_other_options_or_in_another_place(folder):
    scanned(source(folder, FIRST))
    (folder / "other").mkdir()
    assert scan_reuse.manifest_of(source(folder, FIRST, defined=(("A", "1"),))) is None
    assert scan_reuse.manifest_of(source(folder, FIRST, preincluded=("value.h",))) is None
    assert scan_reuse.manifest_of(dataclasses.replace(source(folder, FIRST), folder=str(folder / "other"))) is None
    assert scan_reuse.manifest_of(dataclasses.replace(source(folder, FIRST), search=(str(folder / "other"),))) is None


@pytest.mark.parametrize("between", [lambda: None, forget], ids=["process", "another process"])
def test_a_source_is_scanned_again_when_a_header_has_changed_or_appeared(folder, between):
    scanned(source(folder, FIRST))
    (folder / "value.h").write_text("#define VALUE 2\n")
    between()
    assert scan_reuse.manifest_of(source(folder, FIRST)) is None
    scanned(source(folder, FIRST))
    time.sleep(0.02)
    assert scan_reuse.manifest_of(source(folder, FIRST)) is not None
    (folder / "own" / "value.h").write_text("")
    between()
    assert scan_reuse.manifest_of(source(folder, FIRST)) is None
