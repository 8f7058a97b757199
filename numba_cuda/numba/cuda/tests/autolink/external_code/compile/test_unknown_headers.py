# SPDX-License-Identifier: BSD-2-Clause
"""A source that is new is compiled while its headers are found, where that is safe."""

import os
import threading
import time

import pytest
from numba.cuda import autolink
from numba.cuda.autolink import Target
from numba.cuda.cudadrv.external_code.cache.store import current_store, reset_store
from numba.cuda.cudadrv.external_code.compile import programs
from numba.cuda.cudadrv.external_code.compile.nvrtc import Compiled, CompileError
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.prototype_assertions import PrototypeError
from numba.cuda.cudadrv.external_code.compile.unit_headers import compiled_with_headers
from numba.cuda.cudadrv.external_code.headers.manifest import HeaderManifest
from numba.cuda.cudadrv.external_code.headers.scan import Scan, SourceText
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction, prototype_of_llvm
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item

TARGET = Target((9, 0), lto=True)
LONG_AGO = time.time_ns() - 10**12
PROGRAM = Compiled(b"code", "", ())


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An include directory of a package, with two headers that are old enough for their times to be trusted."""
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.headers.file_state._TIME_MARGIN", 0)
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "first.h").write_text("#include <second.h>\n")
    (folder / "second.h").write_text("#define SECOND 2\n")
    (tmp_path / "own").mkdir()
    time.sleep(0.02)
    return folder


def text(package, code, **options):
    own = str(package.parent / "own")
    return SourceText(code.encode(), own, (str(package),), packages=(str(package),), **options)


def names(manifest):
    return [os.path.basename(header.path) for header in manifest.headers]


def test_no_thread_is_started_where_the_interpreter_ends(package, monkeypatch):
    def refuse(*_):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(threading.main_thread(), "is_alive", lambda: False)
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", refuse)
    _, manifest = compiled_with_headers(text(package, "#include <first.h>\n"), lambda: PROGRAM)
    assert names(manifest) == ["first.h", "second.h"]
    sources = [from_item(autolink.CUDASource(f"__device__ int ending_{each}() {{ return 1; }}")) for each in range(2)]
    assert len(programs.all_compiled(sources, TARGET)) == 2


def test_headers_of_packages_are_read_while_nvrtc_runs(package, monkeypatch):
    scanning, compiling = threading.Event(), threading.Event()
    scan = Scan.run

    def run(self):
        assert compiling.wait(60)
        scanning.set()
        return scan(self)

    def compile_():
        compiling.set()
        assert scanning.wait(60)
        return PROGRAM

    source = text(package, "#include <first.h>")
    with monkeypatch.context() as patches:
        patches.setattr(Scan, "run", run)
        compiled, manifest = compiled_with_headers(source, compile_)
    assert compiled is PROGRAM and names(manifest) == ["first.h", "second.h"]
    assert manifest.digest == HeaderManifest.of(source.scan(), source, time.time_ns()).digest
    assert compiled_with_headers(source, None) is None  # they are on record


@pytest.mark.parametrize("change", ["edited", "replaced", "removed", "new"])
def test_a_header_of_a_package_that_changes_meanwhile(package, change):
    """It may have changed before NVRTC read it or after: nobody knows which text was compiled."""

    def compile_():
        time.sleep(0.02)  # the file system's clock is coarser
        if change == "new":
            (package / "third.h").write_text("")
        elif change == "removed":
            (package / "second.h").unlink()
        else:
            (package / "new.h").write_text("#define SECOND 3\n")
            os.utime(package / "new.h", ns=(LONG_AGO, LONG_AGO))
            if change == "replaced":
                (package / "new.h").replace(package / "second.h")
            else:
                (package / "second.h").write_text("#define SECOND 3\n")
        return PROGRAM

    code = "#include <first.h>\n#if __has_include(<third.h>)\n#endif"
    assert compiled_with_headers(text(package, code), compile_) is None


def test_a_header_of_the_user_that_is_edited_meanwhile(package):
    own = package.parent / "own" / "own.h"
    own.write_text("#include <first.h>\n")

    def compile_():
        own.write_text("#include <second.h>\n")
        return PROGRAM

    assert compiled_with_headers(text(package, '#include "own.h"'), compile_) is None
    _, manifest = compiled_with_headers(text(package, '#include "own.h"'), lambda: PROGRAM)
    assert names(manifest) == ["own.h", "second.h"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")
def test_nvrtc_does_not_start_before_a_fifo_is_refused(package):
    (package.parent / "own" / "own.h").write_text('#include "deeper.h"\n')
    os.mkfifo(package.parent / "own" / "deeper.h")
    with pytest.raises(OSError, match="a FIFO"):
        compiled_with_headers(text(package, '#include "own.h"'), pytest.fail)


@pytest.mark.parametrize(
    "code, options",
    [
        ("#define HEADER <first.h>\n#include <first.h>", {}),
        ('#define HEADER "first.h"\n#include <first.h>', {}),
        ("#include <first.h>", {"defined": (("HEADER", '"/dev/zero"'),)}),
        ("#define A(x) #x\n#include A(first.h)", {}),
        ('#define EXISTS(x) __has_include(x)\n#if __has_include(EXISTS("first.h"))\n#endif', {}),
        ("#include <first.h>\nconst char* when = __TIME__;", {}),
    ],
)
def test_a_source_with_which_packages_may_read_any_file_is_left_alone(package, code, options):
    assert compiled_with_headers(text(package, code, **options), pytest.fail) is None


def test_a_source_with_include_paths_of_the_user_is_left_alone(package):
    paths = (str(package.parent / "own"), str(package))
    source = SourceText(b"#include <first.h>", None, paths, packages=(str(package),))
    assert compiled_with_headers(source, pytest.fail) is None


def test_headers_that_the_text_does_not_show(package):
    (package / "second.h").write_text("#define A(x) #x\n#include A(first.h)\n")
    assert compiled_with_headers(text(package, "#include <first.h>"), lambda: PROGRAM) is None


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "cache"))
    reset_store()
    code = '#include <cuda/std/cstdint>\nextern "C" __device__ int f(int x) { return x; }'
    yield from_item(autolink.CUDASource(code, name="f.cu"))
    reset_store()


def unit_of(source):
    """Return the unit as a new process would make it."""
    reset_store()
    return programs.unit_of(source, TARGET)


def test_a_new_program_is_cached_with_its_headers(source, monkeypatch):
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.compile.program_cache.MANY_HEADERS", 0)
    assert programs.program_digest(source, TARGET, on_record=True) is None
    first = programs.unit_of(source, TARGET).fetched(compile_unit)
    assert first.origin == "built"
    assert first.key == programs.program_digest(source, TARGET, on_record=True)
    again = unit_of(source).fetched(pytest.fail)
    assert (again.origin, again.data) == ("disk", first.data)
    # Elsewhere, where its headers are not on record, they are found before anything is compiled.
    unit = unit_of(source)
    current_store().disk.remove(unit.base_key.digest)
    assert (again := unit.fetched(pytest.fail)).origin == "disk" and again.data == first.data


def test_threads_that_need_a_new_program_at_once_compile_it_once(source):
    began, compiled = threading.Barrier(2), []

    def compile_(unit):
        compiled.append(unit)
        return compile_unit(unit)

    def fetch():
        began.wait(60)
        fetched.append(programs.unit_of(source, TARGET).fetched(compile_).data)

    fetched = []
    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled) == 1 and len(set(fetched)) == 1 and len(fetched) == 2


def test_a_new_source_that_does_not_compile(source):
    wrong = from_item(autolink.CUDASource("#include <cuda/std/cstdint>\nint f( {", name="f.cu"))
    for _ in range(2):
        with pytest.raises(CompileError, match="expected"):
            unit_of(wrong).fetched(compile_unit)


def test_functions_that_were_checked_together_are_checked_for_every_kernel(source):
    number = 20
    text = "".join(f'extern "C" __device__ int f{index}(int x) {{ return x; }}\n' for index in range(number))
    many = from_item(autolink.CUDASource("#include <cuda/std/cstdint>\n" + text, name="f.cu"))
    called = [CalledFunction(f"f{index}", prototype_of_llvm("i32 (i32)")) for index in range(number)]
    assert unit_of(many).fetched(compile_unit, called).origin == "built"
    assert unit_of(many).fetched(pytest.fail, called[3:5]).origin == "disk"
    called[7] = CalledFunction("f7", prototype_of_llvm("i32 (double)"))
    with pytest.raises(PrototypeError) as caught:
        unit_of(many).fetched(compile_unit, called)
    assert [each.called.symbol for each in caught.value.wrong] == ["f7"]
