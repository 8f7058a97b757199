# SPDX-License-Identifier: BSD-2-Clause
"""What NVRTC looks up is known from its own calls: what it reads, what it does not find, and what it must not read."""

import ctypes
import dataclasses
import os
import threading
import time
import types

import pytest
from numba.cuda import autolink
from numba.cuda.autolink import Target
from numba.cuda.cudadrv.external_code.cache.store import current_store, reset_store
from numba.cuda.cudadrv.external_code.compile import import_slots, nvrtc, nvrtc_lookups, nvrtc_processes, programs
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.programs import compile_unit
from numba.cuda.cudadrv.external_code.compile.prototype_assertions import PrototypeError
from numba.cuda.cudadrv.external_code.compile.translation_unit import TranslationUnit, fixed_include_paths
from numba.cuda.cudadrv.external_code.headers.manifest import HeaderManifest
from numba.cuda.cudadrv.external_code.headers.search_roots import SearchRoots
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction, prototype_of_llvm
from numba.cuda.cudadrv.external_code.inputs.link_input import from_item

TARGET = Target((9, 0), lto=True)
CODE = '\nextern "C" __device__ int f() { return 1; }\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An include directory, and a working directory and a cache of the test's own."""
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.headers.file_state._TIME_MARGIN", 0)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    reset_store()
    yield tmp_path / "work"
    reset_store()


def source_of(folder, code, **options):
    return from_item(autolink.CUDASource(code + CODE, name="f.cu", include_paths=[folder], **options))


def looked_up(folder, code, **options):
    lookups = compile_unit(TranslationUnit.of(source_of(folder, code, **options), TARGET)).lookups
    inside = f"{folder}/"
    found = {path.removeprefix(inside) for path, _, _ in lookups["headers"] if path.startswith(inside)}
    absent = {f"{each}/{name}" for each, names in lookups["absent"].items() for name in names.split("\0")}
    absent = {path.removeprefix(inside) for path in absent if path.startswith(inside)}
    return found, absent, lookups["unknown"]


def test_names_are_looked_for_in_the_working_directory_and_in_the_root_directory(folder):
    probes = '#if __has_include("gone.h") || __has_include("/gone.h") || __has_include("sub/gone.h")\n#endif'
    absent = compile_unit(TranslationUnit.of(source_of(folder, probes), TARGET)).lookups["absent"]
    assert absent[""] == absent[f"{folder}/sub"] == "gone.h" and "gone.h" in absent[str(folder)].split("\0")
    origins = [programs.compiled(source_of(folder, probes), TARGET).origin for _ in range(2)]
    assert origins == ["built", "memory"]
    known = programs.unit_of(source_of(folder, probes), TARGET).known()
    assert {"/", str(folder)} <= dict(known.manifest.absences.watched).keys()


def test_each_file_that_is_looked_for_is_known_whether_it_is_there_or_not(folder):
    (folder / "a.h").write_text('#pragma once\n#if __has_include("gone.h")\n#endif\n#include "sub/../b.h"\n')
    (folder / "sub").mkdir()
    (folder / "b.h").write_text("#pragma once\n")
    found, absent, unknown = looked_up(folder, '#include "a.h"\n#include "b.h"\n#if __has_include("sub")\n#endif')
    # "b.h" is known to NVRTC by the other path, and not read again.
    assert {os.path.normpath(path) for path in found} == {"a.h", "b.h"} and "b.h" in found and "sub/../b.h" in found
    assert absent >= {"gone.h", "sub"}
    assert unknown is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")
@pytest.mark.parametrize("directive", ['#include "deeper.h"', '#if __has_include("deeper.h")\n#endif'])
def test_nvrtc_does_not_wait_for_a_fifo(folder, directive):
    (folder / "own.h").write_text(f"{directive}\n")
    os.mkfifo(folder / "deeper.h")
    with pytest.raises(CompileError, match=f"{folder}/deeper.h: it is a FIFO, expected a regular file"):
        programs.compiled(source_of(folder, '#include "own.h"'), TARGET)


def test_nvrtc_does_not_read_a_device(folder):
    terminal, other = os.openpty()
    for device in "/dev/zero", os.ttyname(other):
        with pytest.raises(CompileError, match=f"{device}: it is a device, expected a regular file"):
            programs.compiled(source_of(folder, f'#include "{device}"'), TARGET)
    os.close(terminal)
    os.close(other)


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="needs root")
def test_nvrtc_does_not_wait_for_what_the_kernel_says_next(folder):
    """Its log is a regular file, by its status."""
    source = source_of(folder, '#if __has_include("/proc/kmsg")\n#endif')
    assert [programs.compiled(source, TARGET).origin for _ in range(2)] == ["built", "built"]


def test_a_header_that_is_too_large_is_not_read(folder):
    with open(folder / "large.h", "wb") as file:
        file.truncate(1 << 40)  # a hole
    with pytest.raises(CompileError, match=f"large.h: it has more than {256 << 20} bytes"):
        programs.compiled(source_of(folder, '#include "large.h"'), TARGET)


@pytest.mark.parametrize("change", ["edited", "replaced", "removed", "new"])
def test_a_header_that_changes_during_the_compile(folder, change):
    """It may have changed before NVRTC read it or after: nobody knows which text was compiled."""
    (folder / "value.h").write_text("#define VALUE 2\n")
    time.sleep(0.02)  # the file system's clock is coarser
    unit = programs.unit_of(source_of(folder, '#include "value.h"\n#if __has_include("third.h")\n#endif'), TARGET)

    def compile_(unit, names=()):
        compiled = compile_unit(unit)
        if change == "new":
            (folder / "third.h").write_text("")
        elif change == "removed":
            (folder / "value.h").unlink()
        elif change == "edited":
            (folder / "value.h").write_text("#define VALUE 3\n")
        else:
            (folder / "new.h").write_text("#define VALUE 3\n")
            (folder / "new.h").replace(folder / "value.h")
        return compiled

    assert unit.fetched(compile_).key is None
    assert unit.known() is None


def lookups_of_nobody():
    slots = {"fopen": [0], "stat": [0]}
    return nvrtc_lookups.Lookups(ctypes.CDLL(None), lambda _: slots, lambda *_: None)


def test_a_package_s_folder_is_listed_before_names_are_looked_for(folder):
    """A name that is not in it takes no system call, and a file that appears is noticed afterwards."""
    lookups, status = lookups_of_nobody(), ctypes.create_string_buffer(1024)
    (folder / "Here.h").write_text("")
    lookups.begin([str(folder)])

    def is_there(name):
        return lookups._callbacks["stat"](os.fsencode(folder / name), ctypes.addressof(status)) == 0

    names = [f"gone{number}.h" for number in range(20)]
    assert not any(map(is_there, names))
    for name in "late.h", "Here.h", "sp\u00e4t.h", "late~1.h":
        (folder / name).write_text("")
    assert [is_there(name) for name in ("late.h", "Here.h", "sp\u00e4t.h", "late~1.h", ".")] == [False, *[True] * 4]
    absent = lookups.report("Here.h")[0]["absent"]
    assert absent[str(folder)].split("\0") == sorted([*names, "late.h"])
    assert HeaderManifest.of((), absent, SearchRoots(None, (), ()), 0) is None


def test_what_a_header_that_is_written_while_nvrtc_reads_it_was_is_not_known(folder):
    lookups = lookups_of_nobody()
    for text in "1", "22":
        (folder / "value.h").write_text(text)
        os.close(lookups._open(os.fsencode(folder / "value.h"), os.O_RDONLY))
    report, texts = lookups.report("value.h")
    assert report["unknown"][1].endswith("value.h: it changed while it was compiled")
    assert texts == [b"1"]


def test_where_the_look_ups_cannot_be_noted_nothing_is_cached_and_that_is_said_once(folder, caplog):
    """In this process, and in a child whose NVRTC is not as it is known to be."""

    def here(unit, names=()):
        return dataclasses.replace(compile_unit(unit, names), lookups=nvrtc.NOT_NOTED)

    source = source_of(folder, "")
    with caplog.at_level("INFO", "numba_cuda_autolink.cache"):
        for _ in range(2):
            fetched = programs.unit_of(source, TARGET).fetched(here)
            assert fetched.origin == "built" and fetched.key is None
    assert caplog.text.count("is not cached: NVRTC: it ran in this process, where what it reads is not noted") == 1


def test_a_working_directory_that_is_removed_is_no_matter_once_there_is_another(folder, monkeypatch):
    nvrtc_processes.processes.close()
    (folder / "removed").mkdir()
    monkeypatch.chdir(folder / "removed")
    (folder / "removed").rmdir()
    assert compile_unit(TranslationUnit.of(source_of(folder, ""), TARGET)).lookups["unknown"] == [
        "NVRTC",
        "its working directory has been removed",
    ]
    monkeypatch.chdir(folder)
    assert looked_up(folder, "")[2] is None


def test_a_library_that_imports_nothing_known_is_refused():
    for imports, why in ({}, "with the C library"), ({"fopen": [0], "openat": [0]}, "with openat"):
        with pytest.raises(OSError, match=why):
            nvrtc_lookups.Lookups(ctypes.CDLL(None), lambda _, imports=imports: imports, None)


def test_a_processor_whose_relocations_are_not_known_is_refused(monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: types.SimpleNamespace(machine="s390x"))
    with pytest.raises(OSError, match="not known on linux, s390x"):
        import_slots.find_imports(ctypes.CDLL(nvrtc.library_path()))


def test_a_program_compiled_with_precompiled_headers_has_the_same_key(folder, monkeypatch):
    monkeypatch.setattr("numba.cuda.cudadrv.external_code.compile.program_cache.MANY_HEADERS", 0)
    uses, run = [], nvrtc_processes.run_in_child

    def noted(child, unit, code, options, names):
        uses.append(any(option.startswith("--use-pch") for option in options))
        return run(child, unit, code, options, names)

    monkeypatch.setattr(nvrtc_processes, "run_in_child", noted)
    (folder / "big.h").write_text('#if __has_include("late.h")\n#endif\n#define BIG 1\n')
    time.sleep(0.02)
    nvrtc_processes.processes.close()
    programs.compiled(source_of(folder, "#include <big.h>\n__device__ int first;"), TARGET)
    child = nvrtc_processes.processes.kept
    for _ in range(1200):
        if any(name.endswith(".pch") for name in os.listdir(child.folder)):
            break
        time.sleep(0.05)
    second = source_of(folder, "#include <big.h>\n__device__ int second;")
    key = programs.compiled(second, TARGET).key
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(folder.parent / "other"))
    reset_store()
    nvrtc_processes.processes.close()
    assert programs.compiled(second, TARGET).key == key is not None
    assert uses == [False, True, False]
    (folder / "late.h").write_text("")
    assert programs.program_digest(second, TARGET, on_record=True) is None
    nvrtc_processes.processes.close()


def test_the_toolkit_s_headers_do_not_use_the_time():
    """They are not searched for it."""
    for root in fixed_include_paths():
        for folder, _, names in os.walk(root):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    text = file.read()
                assert not any(word in text for word in (b"__DATE__", b"__TIME__", b"__TIMESTAMP__")), name


# The record of what was looked up


def test_an_alternative_is_found_again_when_a_header_is_edited_back_and_forth(folder):
    source = source_of(folder, '#include "value.h"')
    origins = []
    for number in (1, 2, 1, 3, 2, 1):
        reset_store()
        (folder / "value.h").write_text(f"__device__ int value = {number};\n")
        origins.append(programs.compiled(source, TARGET).origin)
    assert origins == ["built", "built", "disk", "built", "disk", "disk"]


def test_a_machine_finds_what_another_compiled_after_the_same_edit(folder, monkeypatch):
    """Each has a cache of its own, and the shared one, where the record of the first text is known to both."""
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE", f"file://{folder.parent}/shared")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY", "a key of 32 bytes or more, for tests")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_MODE", "rw")
    source = source_of(folder, '#include "value.h"')

    def origin(machine):
        monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(folder.parent / machine))
        reset_store()
        found = programs.compiled(source, TARGET).origin
        current_store().end(30)
        return found

    (folder / "value.h").write_text("__device__ int value = 1;\n")
    assert [origin("one"), origin("two"), origin("two")] == ["built", "remote", "disk"]
    (folder / "value.h").write_text("__device__ int value = 2;\n")
    assert [origin("one"), origin("two"), origin("two")] == ["built", "remote", "disk"]


def test_the_shared_cache_is_asked_once_for_each_text_of_a_header(folder, monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE", f"file://{folder.parent}/shared")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY", "a key of 32 bytes or more, for tests")
    reset_store()
    asked, read = [], current_store().remote.read
    monkeypatch.setattr(current_store().remote, "read", lambda digest: asked.append(digest) or read(digest))
    unit = programs.unit_of(source := source_of(folder, '#include "value.h"'), TARGET)
    for number in 1, 2:
        (folder / "value.h").write_text(f"__device__ int value = {number};\n")
        for _ in range(2):
            programs.program_digest(source, TARGET, on_record=True)
        assert programs.compiled(source, TARGET).origin == "built"
        assert asked.count(unit._keys.source.digest) == number


def test_a_process_finds_what_another_compiled_after_an_edit(folder):
    """This one has an older record in its memory."""
    source = source_of(folder, '#include "value.h"')
    (folder / "value.h").write_text("__device__ int value = 1;\n")
    programs.compiled(source, TARGET)
    mine = current_store()
    (folder / "value.h").write_text("__device__ int value = 2;\n")
    reset_store()
    assert programs.compiled(source, TARGET).origin == "built"
    reset_store(mine)
    assert programs.compiled(source, TARGET).origin == "disk"


def test_without_this_machine_s_record_nothing_is_compiled(folder):
    (folder / "value.h").write_text("")
    source = source_of(folder, '#include "value.h"')
    first = programs.compiled(source, TARGET)
    reset_store()
    unit = programs.unit_of(source, TARGET)
    current_store().disk.remove(unit.base_key.digest)
    again = unit.fetched(pytest.fail)
    assert (again.origin, again.key) == ("disk", first.key)


# One compile


def test_threads_that_need_a_new_program_at_once_compile_it_once(folder):
    began, compiled = threading.Barrier(2), []
    source = source_of(folder, "#include <cuda/std/cstdint>")

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


def test_a_new_source_that_does_not_compile(folder):
    wrong = source_of(folder, "#include <cuda/std/cstdint>\nint g( {")
    for _ in range(2):
        reset_store()
        with pytest.raises(CompileError, match="expected"):
            programs.compiled(wrong, TARGET)


def test_no_thread_is_started_where_the_interpreter_ends(folder, monkeypatch):
    def refuse(*_):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(threading.main_thread(), "is_alive", lambda: False)
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", refuse)
    sources = [from_item(autolink.CUDASource(f"__device__ int ending_{each}() {{ return 1; }}")) for each in range(2)]
    assert len(programs.all_compiled(sources, TARGET)) == 2


def test_functions_that_were_checked_together_are_checked_for_every_kernel(folder):
    number = 20
    text = "".join(f'extern "C" __device__ int f{index}(int x) {{ return x; }}\n' for index in range(number))
    many = from_item(autolink.CUDASource("#include <cuda/std/cstdint>\n" + text, name="f.cu"))

    def unit():
        reset_store()
        return programs.unit_of(many, TARGET)

    called = [CalledFunction(f"f{index}", prototype_of_llvm("i32 (i32)")) for index in range(number)]
    assert unit().fetched(compile_unit, called).origin == "built"
    assert unit().fetched(pytest.fail, called[3:5]).origin == "disk"
    called[7] = CalledFunction("f7", prototype_of_llvm("i32 (double)"))
    with pytest.raises(PrototypeError) as caught:
        unit().fetched(compile_unit, called)
    assert [each.called.symbol for each in caught.value.wrong] == ["f7"]
