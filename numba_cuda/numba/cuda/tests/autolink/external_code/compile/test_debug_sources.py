# SPDX-License-Identifier: BSD-2-Clause
"""With line information, the files that debuggers and profilers look for exist."""

import os
import re
import shutil
import warnings

import pytest
from autolink_support import Linked, adder, build, calling
from numba import cuda
from numba.cuda import autolink
from numba.cuda.autolink import cache
from numba.cuda.cudadrv.external_code.cache.settings import CacheSettings, CacheWarning
from numba.cuda.cudadrv.external_code.cache.store import CacheStore, current_store, reset_store
from numba.cuda.cudadrv.external_code.compile import debug_sources
from numba.cuda.cudadrv.external_code.compile.debug_sources import with_files, write_files

from numba_cuda_autolink.source_locations import name_of_file


def files_named(linked):
    """The source files that a cubin's line tables name: of those that exist, the paths and the contents."""
    folders = {os.fsdecode(path) for path in re.findall(rb"(/[ -~]+)\0", linked.code)}
    # The byte before a name belongs to a number and may look like a letter: so each end of what is found is taken.
    names = {os.fsdecode(name) for name in re.findall(rb"(?=([\w.-]+\.cu)\0)", linked.code)}
    found = {}
    for folder in folders:
        for name in names:
            path = folder if folder.endswith(name) else os.path.join(folder, name)
            if os.path.isfile(path):
                with open(path) as file:
                    found[path] = file.read()
    return found


def sources():
    return os.path.join(current_store().settings.directory, "sources")


def linked_kernel(function, **options):
    return build(calling(function), **options)


@pytest.mark.parametrize("options", [{"lineinfo": True}, {"debug": True, "opt": False}])
def test_generated_sources_are_files_in_the_caches_directory(options):
    text = adder("debugged").replace("{", "{\n", 1)
    function = Linked("debugged", autolink.CUDASource(text, name="debugged.cu")).function
    ((path, content),) = files_named(linked_kernel(function, **options)).items()
    assert re.fullmatch(rf"{re.escape(sources())}/[0-9a-f]{{16}}/debugged\.cu", path)
    assert content == text


def test_sources_of_one_unit_keep_their_files():
    texts = {name: adder(name).replace("x + 1", "x * x * x + 7") for name in ("of_unit_one", "of_unit_two")}
    one, two = (
        Linked(name, autolink.CUDASource(text, name=f"{name}.cu", unit="of_unit")).function
        for name, text in texts.items()
    )

    def kernel(x):
        x[0] = one(two(x[0]))

    found = files_named(build(kernel, lineinfo=True))
    assert {os.path.basename(path): text.strip() for path, text in found.items()} == {
        f"{name}.cu": text for name, text in texts.items()
    }


def test_sources_from_files_are_named_by_their_own_paths(tmp_path):
    path = tmp_path / "of_a_file.cu"
    path.write_text(adder("of_a_file"))
    function = Linked("of_a_file", autolink.CUDASource(path)).function
    assert list(files_named(linked_kernel(function, lineinfo=True))) == [str(path)]
    declared = cuda.declare_device("of_a_file", "int32(int32)")
    assert list(files_named(linked_kernel(declared, lineinfo=True, link=[str(path)]))) == [str(path)]


def test_quoted_headers_are_found_as_without_line_information(tmp_path, monkeypatch):
    (tmp_path / "here.cuh").write_text("#define ADDED 1\n")
    monkeypatch.chdir(tmp_path)
    text = f'#include "here.cuh"\n#if ADDED\n{adder("with_header")}\n#endif'
    function = Linked("with_header", autolink.CUDASource(text, name="with_header.cu")).function
    linked_kernel(function)
    assert len(files_named(linked_kernel(function, lineinfo=True))) == 1


def test_a_file_that_was_removed_is_written_again():
    function = Linked("written_again", autolink.CUDASource(adder("written_again"), name="written_again.cu")).function
    (path,) = files_named(linked_kernel(function, lineinfo=True))
    os.unlink(path)
    assert list(files_named(linked_kernel(function, lineinfo=True))) == [path]


def test_code_with_lines_is_found_in_another_cache_s_folder_and_its_sources_too(tmp_path):
    """The line table of an imported entry names the other folder, which may be gone: reports show the file of here."""
    function = Linked("imported", autolink.CUDASource(adder("imported"), name="imported.cu")).function
    before = reset_store(CacheStore(CacheSettings(str(tmp_path / "one"))))
    try:
        linked_kernel(function, lineinfo=True)
        cache.export_file(tmp_path / "entries")
        shutil.rmtree(tmp_path / "one")
        reset_store(CacheStore(CacheSettings(str(tmp_path / "two"))))
        cache.import_file(tmp_path / "entries", trust=True)
        linked = linked_kernel(function, lineinfo=True)
        assert not [each for each in current_store().statistics.counts if each[1] == "built"]
        (there,) = {os.fsdecode(each) for each in re.findall(rb"(/[ -~]+/sources/[0-9a-f]{16})", linked.code)}
    finally:
        reset_store(before)
    assert there.startswith(str(tmp_path / "one"))
    here = there.replace("/one/", "/two/")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "two"))
        assert name_of_file(f"{there}/imported.cu") == f"{here}/imported.cu"
        assert name_of_file(f"{there}/missing.cu") == f"{there}/missing.cu"


def test_without_line_information_nothing_is_written():
    function = Linked("no_lines", autolink.CUDASource(adder("no_lines"), name="no_lines.cu")).function
    linked_kernel(function)
    names = [name for _, _, files in os.walk(sources()) for name in files]
    assert "no_lines.cu" not in names


@pytest.mark.parametrize(
    "path", ["/proc/self/cache", "/proc", "/dev/null", "/dev/full/cache", "not UTF-8 \udc80", "x" * 300]
)
def test_where_the_cache_s_directory_is_strange_the_kernel_is_built(path, monkeypatch, tmp_path):
    """With one warning where nothing can be written."""
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / path))
    replaced = reset_store()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function = Linked("strange", autolink.CUDASource(adder("strange"), name="strange.cu")).function
            assert linked_kernel(function, lineinfo=True).code
        assert [each.category for each in caught] == ([] if path.startswith("not") else [CacheWarning])
    finally:
        reset_store(replaced)


def test_of_many_sources_those_that_were_used_last_are_kept(tmp_path, monkeypatch):
    before = reset_store(CacheStore(CacheSettings(str(tmp_path / "cache"))))
    try:
        monkeypatch.setattr(debug_sources, "_MOST_BYTES", 3 * 4096)
        texts = [with_files(f"int x{number};", f"{number}.cu") for number in range(6)]
        for number, text in enumerate(texts):
            write_files(text)
            for used in texts[0], text:  # the first one is used all the time
                write_files(used)
                (path,) = re.findall(r'#line 1 "(.*)"', used)
                os.utime(path, (number + 1, number + 1))
        left = sorted(path.name for path in (tmp_path / "cache" / "sources").rglob("*.cu"))
        assert left == ["0.cu", "4.cu", "5.cu"]
        assert len(list((tmp_path / "cache" / "sources").iterdir())) == 3, "no empty folders are left"
        write_files(texts[1])
        assert list((tmp_path / "cache" / "sources").rglob("1.cu")), "it is written again when it is needed"
    finally:
        reset_store(before)
