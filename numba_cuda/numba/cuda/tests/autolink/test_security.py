# SPDX-License-Identifier: BSD-2-Clause
"""SECURITY.md: each sentence about what runs and what the caches trust is here, with the tests that show it."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
from autolink_support import build, calling
from cache_support import file_of, fresh, make_key, not_built
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.cache import disk
from numba.cuda.cudadrv.external_code.cache.entry import pack
from numba.cuda.cudadrv.external_code.cache.settings import CacheSettings
from repository import PROJECT, TESTS

from numba_cuda_autolink.commands.main_command import main

FAULTS = "external_code/cache/test_cache_faults.py"
STORE = "external_code/cache/test_cache_store.py"
KERNELS = "kernel_cache/test_kernel_cache.py"
INSTALL = "packaging/test_install.py"
REMOTE = "external_code/cache/test_remote_store.py"
NVRTC = "external_code/compile/test_nvrtc_processes.py"
CRASHES = "external_code/link/test_crash_history.py"
HERE = "test_security.py"
ADVICE: tuple[str, ...] = ()  # to the reader: nothing to test

SENTENCES = {
    "Code that you link": ADVICE,
    "Hooks (`__numba_cuda_link__`, `__numba_cuda_link_key__`, `__numba_cuda_call__`)": (
        f"{HERE}::test_hooks_run_in_this_process",
    ),
    "`numba-cuda-autolink explain` and `build`": (f"{HERE}::test_the_commands_import_the_file_that_is_named",),
    "`prebuild` imports the modules": (
        "commands/test_capture_and_prebuild.py::test_an_application_and_its_children_are_captured_and_prebuilt",
    ),
    "Each start of Python": (
        f"{INSTALL}::test_importing_numba_cuda_activates",
        f"{INSTALL}::test_python_starts_the_same_function_by_both_files",
    ),
    "It adds a finder": (
        f"{HERE}::test_the_import_hook_imports_nothing",
        f"{INSTALL}::test_the_environment_variable_turns_this_project_off",
    ),
    "Device code that a": ("test_on_gpu.py::test_device_code_reaches_all_memory_of_the_context",),
    "CUDA C++ is compiled": (f"{HERE}::test_a_source_reads_any_file_that_it_includes",),
    "It is compiled in": (
        f"{NVRTC}::test_no_source_takes_this_process_down",
        f"{NVRTC}::test_no_child_and_no_file_is_left_of_a_process_that_is_killed_while_headers_are_precompiled",
    ),
    "Messages show control characters": (
        "external_code/diagnostics/test_messages.py::test_control_characters_are_escaped",
        "external_code/diagnostics/test_messages.py::test_the_error_of_a_source_is_bounded_and_printable",
    ),
    "Cubins, objects, fatbins, archives,": (
        "external_code/inputs/test_link_inputs.py::test_each_kind_links_from_memory_and_from_a_file",
    ),
    "Their headers and tables": (
        "external_code/formats/test_validation.py::test_the_error_names_the_fault",
        "external_code/formats/test_validation.py::test_damaged_inputs_are_refused_or_accepted",
    ),
    "Such code from outside": (
        f"{CRASHES}::test_the_first_link_of_outside_code_runs_in_the_helper_and_later_ones_here",
        f"{CRASHES}::test_a_crash_or_a_hang_is_an_error_that_names_the_input",
    ),
    "Bitcode is read and": (
        "external_code/compile/test_bitcode.py::test_where_no_process_can_be_started_it_is_not_compiled",
    ),
    "Link only code that": ADVICE,
    "Where no process can": (
        f"{NVRTC}::test_an_ending_interpreter_and_one_that_cannot_start_children_compile_in_this_process",
        f"{CRASHES}::test_where_no_process_can_be_started_it_is_linked_in_this_one",
    ),
    "Opening a file of": (
        "finished_kernels/test_kernel_file.py::test_random_bytes_and_bits_are_an_error_or_change_nothing",
        "finished_kernels/test_kernel_file.py::test_a_damaged_file_is_an_error",
        "finished_kernels/test_kernel_file.py::test_opening_a_file_imports_and_unpickles_nothing",
    ),
    "Launching one of its": ("finished_kernels/test_launching.py::test_callbacks_run_once_each",),
    "Load only files that": ADVICE,
    "The cache directory (`NUMBA_CUDA_AUTOLINK_CACHE_DIR`;": (
        f"{STORE}::test_the_directory",
        f"{STORE}::test_settings",
    ),
    "Whoever can write to": (f"{HERE}::test_the_checksum_does_not_protect_from_someone_who_can_write",),
    "Therefore:": ADVICE,
    "Directories are created with": (f"{FAULTS}::test_directories_and_entries_are_private_under_any_umask",),
    "An entry is read": (
        f"{FAULTS}::test_a_directory_that_others_can_write_to_is_refused",
        f"{FAULTS}::test_what_others_can_write_to_while_running_is_refused",
        f"{FAULTS}::test_what_belongs_to_someone_else_is_refused",
        f"{FAULTS}::test_what_belongs_to_root_is_used",
    ),
    "Anything else is a": (f"{FAULTS}::test_what_others_can_write_to_while_running_is_refused",),
    "An entry begins with": (f"{FAULTS}::test_no_bit_of_an_entry_can_flip_unnoticed",),
    "A damaged or exchanged": (f"{FAULTS}::test_a_damaged_entry_is_built_again_and_replaced",),
    "The checksum protects from": (f"{HERE}::test_the_checksum_does_not_protect_from_someone_who_can_write",),
    "Reading an entry executes": (f"{HERE}::test_reading_an_entry_unpickles_nothing",),
    "The exception are kernels": (
        f"{KERNELS}::test_nothing_is_unpickled_that_another_user_could_have_written",
        f"{KERNELS}::test_a_damaged_file_costs_one_warning_and_a_build",
    ),
    "Kernels without external code": (f"{KERNELS}::test_a_plain_kernel_is_in_numba_cudas_own_files",),
    "Lock files only save": (f"{STORE}::test_where_nothing_can_be_locked_it_builds",),
    "No result depends on": (f"{STORE}::test_where_nothing_can_be_locked_it_builds",),
    "`NUMBA_CUDA_AUTOLINK_CACHE_READONLY` names directories of": (
        f"{REMOTE}::test_a_directory_that_is_only_read_hits_whatever_its_owners_times_and_modes_are",
    ),
    "Pickles in them are": (
        f"{REMOTE}::test_pickles_in_it_are_not_read",
        f"{REMOTE}::test_a_damaged_entry_of_it_is_built",
    ),
    "Of the shared cache": (f"{REMOTE}::test_forged_truncated_swapped_and_foreign_entries_are_not_used",),
    "Whoever has the site's": (f"{REMOTE}::test_what_one_machine_built_another_finds_and_keeps",),
    "No pickle is written": (
        f"{REMOTE}::test_what_is_a_pickle_or_true_on_one_machine_alone_is_neither_written_nor_read",
    ),
    "Without a key, the": (f"{REMOTE}::test_doubtful_settings_use_no_shared_cache_and_warn",),
    "A key that looks": (
        f"{REMOTE}::test_a_key_that_looks_like_a_path_is_refused",
        f"{REMOTE}::test_a_key_file_that_others_may_read_or_write_is_refused",
    ),
    "Links in a shared": (f"{REMOTE}::test_links_in_it_are_not_followed",),
    "Names and passwords in": (
        f"{REMOTE}::test_users_and_passwords_in_addresses_are_not_shown",
        f"{REMOTE}::test_a_server_s_text_is_one_printable_line_without_the_password",
    ),
    "Processes that compile, link": (
        "external_code/platform/test_child_process.py"
        "::test_a_child_has_neither_the_key_of_a_shared_cache_nor_credentials_of_a_cloud",
    ),
    "A file of entries": (
        "external_code/cache/test_entry_files.py::test_a_file_of_another_site_is_refused_unless_it_is_trusted",
        "external_code/cache/test_entry_files.py::test_nothing_of_a_damaged_file_is_kept",
    ),
    "A file that `cache": (
        "external_code/cache/test_entry_files.py::test_a_file_that_export_does_not_write_is_one_error",
    ),
    "Do not copy a": ADVICE,
    "`NUMBA_CUDA_AUTOLINK_CACHE=0` keeps no entries": (f"{HERE}::test_without_a_cache_nothing_is_on_disk",),
    "A source that does": (f"{HERE}::test_without_a_cache_nothing_is_on_disk",),
}


def sentences() -> list[str]:
    """The sentences of the trust model, each on one line."""
    page = (PROJECT / "SECURITY.md").read_text(encoding="utf-8")
    model = page[page.index("## What runs") : page.index("## Supported versions")]
    paragraphs = re.split(r"\n\n(?:- )?|\n- ", re.sub(r"^## .*$", "", model, flags=re.M))
    lines = (" ".join(paragraph.split()) for paragraph in paragraphs)
    return [sentence for line in lines if line for sentence in re.split(r"(?<=\.) (?=[A-Z`])", line)]


def test_each_sentence_is_listed_here():
    """By its first words."""
    assert [each for each, begins in zip(sentences(), SENTENCES, strict=True) if not each.startswith(begins)] == []


@pytest.mark.parametrize("test", sorted({test for tests in SENTENCES.values() for test in tests}))
def test_each_test_that_is_named_exists(test):
    file, _, name = test.partition("::")
    assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")


# What runs


def test_hooks_run_in_this_process():
    processes = {}

    class Noting(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            processes["call"] = os.getpid()
            return autolink.Extern("noting", returns=x)

        def __numba_cuda_link_key__(self, x):
            processes["key"] = os.getpid()

        def __numba_cuda_link__(self, x):
            processes["link"] = os.getpid()
            return autolink.CUDASource('extern "C" __device__ int noting(int x) { return x; }')

    noting = Noting()

    build(calling(noting))
    assert processes == {"call": os.getpid(), "key": os.getpid(), "link": os.getpid()}


@pytest.mark.parametrize("command", ["explain", "build"])
def test_the_commands_import_the_file_that_is_named(command, tmp_path, capsys):
    file = tmp_path / "kernels.py"
    file.write_text("import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n")
    options = ["--cc", "9.0"] if command == "explain" else ["--cc", "9.0", "--sig", "()", "-o", str(tmp_path / "out")]
    assert main([command, f"{file}:nothing", *options]) == 1
    assert (tmp_path / "imported").exists()


def test_the_import_hook_imports_nothing():
    """Python imports it in each process, so it must cost nothing and run nothing, whatever else is imported."""
    script = f"""
import os, sys
sys.path.append({str(PROJECT)!r})
before = set(sys.modules)
import numba_cuda_autolink.import_hook as hook
hook.install()
assert sys.meta_path[0] is hook.Finder
import colorsys
try:
    import numba_like
except ImportError:
    print(sorted(set(sys.modules) - before))
"""
    # Without site there is no .pth file, so that this import is the first.
    run = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['colorsys', 'numba_cuda_autolink', 'numba_cuda_autolink.import_hook']"


def test_a_source_reads_any_file_that_it_includes(tmp_path):
    outside = tmp_path / "anything.txt"
    outside.write_text("42")

    class Reads(autolink.DeviceCallable):
        def __numba_cuda_call__(self, x):
            return autolink.Extern("reads", returns=x)

        def __numba_cuda_link__(self, x):
            return autolink.CUDASource(
                f'extern "C" __device__ int reads(int x) {{ return x +\n#include "{outside}"\n; }}'
            )

    reads = Reads()

    kernel = calling(reads)
    first = build(kernel).code
    outside.write_text("43")
    assert build(kernel).code != first


# What the caches trust


def test_the_checksum_does_not_protect_from_someone_who_can_write(tmp_path):
    """Anyone can compute it: only owner and mode of files and directories protect."""
    key = make_key("kernel")
    fresh(tmp_path).fetch(key, lambda: b"code")
    with open(file_of(tmp_path, key), "wb") as file:
        file.write(pack(key, b"code of someone else"))
    fetched = fresh(tmp_path).fetch(key, not_built)
    assert fetched.data == b"code of someone else"


class Bomb:
    """Unpickling it raises."""

    def __reduce__(self):
        return exec, ("raise AssertionError('was unpickled')",)


def test_reading_an_entry_unpickles_nothing(tmp_path, monkeypatch):
    key = make_key("kernel", source=pickle.dumps(Bomb()).hex())
    data = pickle.dumps(Bomb())
    fresh(tmp_path).fetch(key, lambda: data)
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *_, **__: pytest.fail("an entry was unpickled"))
    store = fresh(tmp_path)
    assert store.fetch(key, not_built).data == data
    (entry,) = store.disk.entries()
    json.dumps(entry.parts)


def test_without_a_cache_nothing_is_on_disk(tmp_path, monkeypatch):
    settings = CacheSettings.from_environment(
        {"NUMBA_CUDA_AUTOLINK_CACHE": "0", "NUMBA_CUDA_AUTOLINK_CACHE_DIR": str(tmp_path / "cache")}
    )
    assert not settings.on_disk
    store = fresh(settings.directory, on_disk=settings.on_disk)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.fetch(make_key("f"), lambda: b"code")
    assert not (tmp_path / "cache").exists()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    saved = Path(store.disk.save(disk.FAILED_SOURCES, "f.cu", b"source"))
    assert saved.read_bytes() == b"source" and saved.parent.parent == tmp_path
