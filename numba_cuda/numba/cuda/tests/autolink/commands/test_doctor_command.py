# SPDX-License-Identifier: BSD-2-Clause
"""``doctor``, also where what it diagnoses is missing or broken."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, requires
from importlib.metadata import version as version_of
from typing import NamedTuple

import pytest
from numba.cuda import autolink
from numba.cuda.cudadrv.external_code.cache.store import reset_store
from packaging.requirements import Requirement
from repository import PROJECT

import _numba_cuda_autolink_command
from numba_cuda_autolink import command_entry, failed_imports, installed_packages, package_versions, pip_commands
from numba_cuda_autolink.commands import (
    doctor_command,
    doctor_findings,
    doctor_trials,
    installation,
    toolkit_faults,
    trial_runs,
)
from numba_cuda_autolink.commands.main_command import main
from numba_cuda_autolink.import_hook import Finder
from numba_cuda_autolink.installed_packages import damaged_files
from numba_cuda_autolink.library_files import find_damaged, find_fault
from numba_cuda_autolink.settings import wrong_settings

ROWS = struct.pack("<HHHH", 56, 1, 64, 1)  # of the two tables of an ELF file, which begin at 64 and at 200
WHOLE = (b"\x7fELF\x02\x01" + struct.pack("<26xQQ6x", 64, 70) + ROWS + bytes(72)).decode()
BITCODE = b"BC\xc0\xde" + struct.pack("<II", 0x1435, 1) + b"LLVM"  # with one block of one word
INSTALL = "pip install 'numba-cuda-autolink[cu"
NO_TRIALS = trial_runs.Trials({}, {})
GOOD = {"numba-cuda": "0.30.4", "numba": "0.68.0", "numpy": "2.4.6", "cuda-bindings": "13.0.0"}


def find(versions, trials, *checked):
    """Return what the doctor finds with packages of these *versions* and the files of *checked* ones."""
    return doctor_findings.find(installation.read_installation(versions, checked), trials)


class Told(NamedTuple):
    what: str
    fix: str


def conflicts(*given):
    return [Told(each.what, each.fix) for each in find(*given).conflicts]


def remarks(*given):
    return [Told(each.what, each.fix) for each in find(*given).remarks]


def have_packages(monkeypatch, versions):
    """Let these packages be installed, and no other."""
    for module in (installed_packages, pip_commands):
        monkeypatch.setattr(module, "version_of", lambda name: versions.get(name, "not installed"))


def test_the_doctor_finds_nothing_wrong_here(capsys):
    code = main(["doctor"])
    text = capsys.readouterr().out
    assert "numba-cuda-autolink" in text
    assert "libnvrtc" in text or "nvrtc64" in text
    assert "active" in text
    folder = sysconfig.get_path("purelib")
    assert text.count(folder) <= 1 or "\n  nvrtc                /" in text  # of a toolkit outside of Python's packages
    assert (code, "no known conflicts" in text) in ((0, True), (1, False))


@pytest.mark.parametrize(
    ("installed", "what", "fix"),
    [
        (
            {"numpy": "2.5.0"},
            "numpy 2.5.0 is installed, and numpy<2.5 is needed",
            "pip install 'numba-cuda-autolink[cu",
        ),
        ({"numba-cuda": "0.30.2"}, "Numba 0.68.0 with numba-cuda 0.30.2", "pip install 'numba-cuda>=0.30.4'"),
        (
            {"numba-cuda": "0.29.0", "numba": "0.63.0"},
            "and numba-cuda>=0.30.2 is needed",
            "pip install 'numba-cuda-autolink[cu",
        ),
        ({"cuda-core": "0.7.0"}, "cuda-core 0.7.0 is installed, and cuda-core>=1.0 is needed", INSTALL),
        ({"rich": "not installed"}, "rich is not installed", INSTALL),
        ({"numba-cuda": "not installed"}, "numba-cuda is not installed", INSTALL),
    ],
)
def test_the_doctor_knows_conflicts(installed, what, fix, monkeypatch):
    known = installed_packages.version_of
    monkeypatch.setattr(installed_packages, "version_of", lambda name: installed.get(name) or known(name))
    found = [each for each in conflicts({**GOOD, **installed}, NO_TRIALS) if what in each.what]
    assert len(found) == 1
    assert fix in found[0].fix


def test_the_doctor_knows_variables_and_versions(monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK", "0")
    monkeypatch.setenv("CUDA_HOME", "/no/such/folder")
    versions = {
        "nvrtc": [13, 2],
        "nvJitLink": [13, 0],
        "driver": [12, 4],
        "cudart headers": [12, 9],
        "cccl headers": [13, 2],
    }
    trials = trial_runs.Trials({f"version {name}": version for name, version in versions.items()}, {})
    monkeypatch.setattr(toolkit_faults, "version_of", lambda name: "13.0.88")
    have_packages(monkeypatch, {"nvidia-nvjitlink": "13.0.88"})
    fixes = {conflict.fix for conflict in conflicts(GOOD, trials)}
    assert {
        "pip install 'nvidia-nvjitlink==13.2.*'",
        "update the driver, or: pip uninstall -y nvidia-nvjitlink && pip install 'numba-cuda-autolink[cu12]'",
    } <= fixes
    assert any(each.what.startswith("NUMBA_CUDA_AUTOLINK=0 ") for each in remarks(GOOD, trials))
    found = [conflict.what for conflict in conflicts(GOOD, trials)]
    assert not any("NUMBA_CUDA_AUTOLINK=0" in conflict for conflict in found)
    assert any("NVRTC 13.2 is newer than nvJitLink 13.0" in conflict for conflict in found)
    assert any("the driver is for CUDA 12.4, the libraries are for CUDA 13.2" in conflict for conflict in found)
    assert any("are of CUDA 12.9, NVRTC is of CUDA 13.2" in conflict for conflict in found)
    assert "CUDA_HOME is '/no/such/folder', and there is no such folder" in found


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("_EMULATE", "yes", "NUMBA_CUDA_AUTOLINK_EMULATE is 'yes', expected 1 or checks, or 0 for the GPU"),
        ("", "off", "NUMBA_CUDA_AUTOLINK is 'off', expected 0 or 1"),
        ("_CACHE_SIZE", "abc", "NUMBA_CUDA_AUTOLINK_CACHE_SIZE is 'abc', expected a number of bytes"),
        ("_CACHE_REMOTE", "ftp", "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE is 'ftp', expected an address"),
        ("_CACHE_SIZE", "0M", "NUMBA_CUDA_AUTOLINK_CACHE_SIZE is '0M', expected a number of bytes above 0"),
        ("_CACHE_READONLY", "/:/nope", "NUMBA_CUDA_AUTOLINK_CACHE_READONLY is '/:/nope', expected folders that exist"),
        ("_CAPTURE", "/nope/x", "NUMBA_CUDA_AUTOLINK_CAPTURE is '/nope/x', expected a folder that exists"),
        ("_JOBS", "x", "NUMBA_CUDA_AUTOLINK_JOBS is 'x', expected a number of processes"),
        ("_CACH_DIR", "/x", "NUMBA_CUDA_AUTOLINK_CACH_DIR is not a setting; did you mean"),
    ],
)
def test_the_doctor_names_wrong_settings(name, value, what, monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK" + name, value)
    assert [each.fix for each in conflicts(GOOD, NO_TRIALS) if each.what.startswith(what)] in (
        [f"correct the value, or: unset NUMBA_CUDA_AUTOLINK{name}"],
        [f"correct the name, or: unset NUMBA_CUDA_AUTOLINK{name}"],
    )


def test_settings_that_the_code_takes_are_right():
    taken = {
        **dict.fromkeys(("", "_PCH", "_PROGRESS"), ("0", "1")),
        "_CACHE": ("0", "1", "verify", "Verify"),
        **dict.fromkeys(("_CACHE_SIZE", "_COMPILE_MEMORY"), ("1000", "500M", "2 GiB", "1.5g")),
        "_CACHE_REMOTE": ("s3://user:secret@bucket/folder", "/shared/cache"),
        "_CACHE_REMOTE_MODE": ("ro", "RW"),
        **dict.fromkeys(("_CACHE_REMOTE_WAIT", "_COMPILE_TIME"), ("900", "0.5")),
        "_EMULATE": ("0", "1", "checks", " 1 ", ""),
        "_JOBS": ("1", "16"),
        "_LOG": ("cache",),
        "_TRACEBACK": ("full",),
    }
    for name, values in taken.items():
        for value in values:
            assert list(wrong_settings({"NUMBA_CUDA_AUTOLINK" + name: value})) == []


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"": "s3://x/y"}, "the shared cache cannot be used: set NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY, "),
        ({"_KEY": "@/nope"}, "NUMBA_CUDA_AUTOLINK_CACHE_REMOTE_KEY cannot be used: "),
    ],
)
def test_the_doctor_names_a_shared_cache_that_cannot_be_used(settings, what, monkeypatch):
    for name, value in settings.items():
        monkeypatch.setenv(f"NUMBA_CUDA_AUTOLINK_CACHE_REMOTE{name}", value)
    found = doctor_trials.TRIALS["cache"]()
    reset_store()
    assert len(found) == 1 and found[0][0].startswith(what)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs a package *name* with files, before what is done to them."""

    def install(name, **files):
        folder = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = []
        for file, text in files.items():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            content = text if isinstance(text, bytes) else text.encode()
            (tmp_path / file).write_bytes(content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            lines.append(f"{file},sha256={digest},{len(content)}")
        (folder / "RECORD").write_text("\n".join(lines))
        monkeypatch.syspath_prepend(tmp_path)
        installed_packages.version_of.cache_clear()
        return tmp_path

    yield install
    package_versions.version_of.cache_clear()


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda file: file.unlink(), "include/code.h is missing"),
        (lambda file: file.write_text("ab"), "include/code.h has 2 bytes, and had 4"),
        (lambda file: file.write_text("abcx"), "include/code.h has other content"),
    ],
)
def test_the_doctor_names_damaged_files(installed, damage, what):
    damage(installed("nvidia-soup", **{"include/code.h": "abcd", "include/other.h": "x"}) / "include" / "code.h")
    found = conflicts(GOOD, NO_TRIALS, "nvidia-soup")
    fix = "pip install --force-reinstall --no-deps 'nvidia-soup==1.0'"
    assert found == [(f"nvidia-soup 1.0 is not as it was installed: {what}", fix)]


@pytest.mark.parametrize("name", ["soup.py", "soup.pth"])
def test_code_of_others_may_be_edited_and_not_removed(installed, name):
    (file := installed("soup", **{name: "abcd"}) / name).write_text("x")
    assert list(damaged_files("soup")) == []
    file.unlink()
    assert list(damaged_files("soup")) == [f"{name} is missing"]


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("", "soup==1.0"),
        ('{"url": "file:///usr/../usr", "dir_info": {}}', "/usr/../usr"),
        ('{"url": "file:///gone/soup%201.whl", "archive_info": {}}', "soup==1.0"),
        ('{"url": "https://example.org/soup.whl", "archive_info": {}}', "https://example.org/soup.whl"),
        (
            '{"url": "https://example.org/soup", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
            "soup @ git+https://example.org/soup@abc",
        ),
    ],
)
def test_a_package_is_installed_again_from_where_it_was(installed, source, asked):
    folder = installed("soup")
    (folder / "soup-1.0.dist-info" / "direct_url.json").write_text(source)
    assert pip_commands.reinstall_command("soup") == f"pip install --force-reinstall --no-deps '{asked}'"


def test_what_no_kernel_needs_may_be_removed(installed):
    """As small images leave it out."""
    removed = ("soup.pyi", "soup/tests/test_soup.py", "soup/LICENSE", "bin/soup", "soup/py.typed")
    folder = installed("soup", **dict.fromkeys((*removed, "soup/code.py"), "x"))
    for name in removed:
        (folder / name).unlink()
    assert list(damaged_files("soup")) == []
    (folder / "soup" / "code.py").rename(folder / "soup" / "code.pyc")
    assert list(damaged_files("soup")) == []


def test_what_no_kernel_needs_of_the_toolkit_may_be_removed(installed):
    removed = ("bin/ptxas", "lib/libsoup_static.a", "lib/libsoup.alt.so.13", "lib/cmake/soup.cmake")
    files = dict.fromkeys(removed, "x") | {"lib/libsoup.bc": BITCODE, "lib/libsoup.so.13": WHOLE}
    folder = installed("nvidia-soup", **files)
    for name in removed:
        (folder / name).unlink()
    assert list(damaged_files("nvidia-soup")) == []
    (folder / "lib" / "libsoup.so.13").unlink()
    (folder / "lib" / "libsoup.bc").unlink()
    assert [*damaged_files("nvidia-soup")] == ["lib/libsoup.bc is missing", "lib/libsoup.so.13 is missing"]


def test_the_packages_of_the_toolkit_are_those_that_the_extras_install():
    """Directly, and with numba-cuda and cuda-toolkit."""
    found, left = set(), [("numba-cuda-autolink", frozenset({"cu12"})), ("numba-cuda-autolink", frozenset({"cu13"}))]
    for package, extras in left:
        if package.startswith("nvidia-"):
            found.add(package.removesuffix("-cu12"))
            continue
        with contextlib.suppress(PackageNotFoundError):
            for each in map(Requirement, requires(package) or []):
                asked = each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *extras))
                if asked and (each.name, frozenset(each.extras)) not in left:
                    left.append((each.name, frozenset(each.extras)))
    assert found <= {*pip_commands._TOOLKIT}, found


def test_a_trial_that_does_not_end_is_stopped(tmp_path, monkeypatch, capsys):
    (tmp_path / "sitecustomize.py").write_text(
        "from cuda import pathfinder\n"
        "import subprocess\n"
        "load = pathfinder.load_nvidia_dynamic_lib\n"
        "wait = lambda name: subprocess.run(['sleep', '600']) if name == 'nvrtc' else load(name)\n"
        "pathfinder.load_nvidia_dynamic_lib = wait\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(trial_runs, "_LIMIT", 5)
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "  loading nvrtc did not end: it took longer than 5 s\n" in text
    assert "  nvrtc                cannot be loaded: it took longer than 5 s\n" in text


def test_a_trial_that_ends_python_is_named(tmp_path, monkeypatch, capsys):
    """As a truncated library does."""
    (tmp_path / "sitecustomize.py").write_text(
        "from cuda import pathfinder\n"
        "import os, signal\n"
        "load = pathfinder.load_nvidia_dynamic_lib\n"
        "end = lambda name: os.kill(os.getpid(), signal.SIGBUS) if name == 'nvfatbin' else load(name)\n"
        "pathfinder.load_nvidia_dynamic_lib = end\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "  nvfatbin             cannot be loaded: SIGBUS\n" in text
    assert "  loading nvfatbin ended Python: SIGBUS\n" in text
    assert "  autolink             active\n" in text


def test_a_kernel_that_cannot_be_built_is_a_conflict():
    trials = trial_runs.Trials({"build": "LinkError: it does not link\n  at: there"}, {})
    found = list(conflicts(GOOD, trials))
    assert found[-1].what == "a small kernel cannot be built: LinkError: it does not link"
    assert found[-1].fix.startswith("pip install 'numba-cuda-autolink[cu")
    trials.results["build"] += "\n  what to do: unset CUDA_HOME"
    assert [*conflicts(GOOD, trials)][-1].fix == "unset CUDA_HOME"


# Each of them is broken, or a part of it is missing.
BROKEN = {
    "numpy": (
        "raise AttributeError('row_stack is gone')",
        "numpy cannot be imported: AttributeError: row_stack is gone",
    ),
    "numba": ("raise ImportError('needs NumPy 1')", "numba cannot be imported: ImportError: needs NumPy 1"),
    "cuda": ("", "cuda.pathfinder cannot be imported: ModuleNotFoundError"),
}


@pytest.fixture
def command(tmp_path):
    """Runs the script in a process in which a package *name* has only the *code*."""

    def run(name, code, *arguments):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "__init__.py").write_text(code)
        script = "import sys; from numba_cuda_autolink.command_entry import main; sys.exit(main())"
        return subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )

    return run


@pytest.mark.parametrize("name", BROKEN)
def test_the_doctor_names_what_is_broken(command, name):
    code, conflict = BROKEN[name]
    done = command(name, code, "doctor", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    (hidden,) = found["conflicts"]
    assert hidden["what"].endswith(f"/{name}/__init__.py hides the installed package {name!r}")
    assert hidden["fix"] == "rename it, or move it away"
    assert hidden["consequences"][0].startswith(conflict)
    assert found["packages"]["numba-cuda"] == version_of("numba-cuda")
    assert found["numba_cuda"]["import"].startswith("failed at ")


def test_the_doctor_prints_text_where_numba_cuda_cannot_be_imported(command, tmp_path):
    done = command("numpy", BROKEN["numpy"][0], "doctor")
    assert done.returncode == 1
    assert done.stdout.startswith(f"1 conflict\n  {tmp_path}/numpy/__init__.py hides the installed package 'numpy'\n")
    assert "\n    consequence: numpy cannot be imported: AttributeError: row_stack is gone\n" in done.stdout


def test_other_commands_point_to_the_doctor(command):
    done = command("numpy", BROKEN["numpy"][0], "cache", "info")
    assert (done.returncode, done.stdout) == (1, "")
    assert "numba.cuda cannot be imported: " in done.stderr
    assert done.stderr.endswith("what to do: numba-cuda-autolink doctor\n")


@pytest.mark.parametrize(
    ("typed", "begins"),
    [
        ("--version", "numba-cuda-autolink "),
        ("-V", "numba-cuda-autolink "),
        ("--help", "usage: numba-cuda-autolink "),
        ("cache prune --help", "usage: numba-cuda-autolink cache prune "),
        ("completion bash", "# "),
    ],
)
def test_version_help_and_completion_need_no_numba(command, typed, begins):
    done = command("numpy", BROKEN["numpy"][0], *typed.split())
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(begins)


@pytest.mark.parametrize(("package", "typed"), [("shtab", "completion bash"), ("jinja2", "build FILE --header x.h")])
def test_a_missing_package_is_one_line_and_a_conflict(command, tmp_path, monkeypatch, capsys, package, typed):
    (tmp_path / "mine.py").write_text("def kernel(x):\n    x[0] = 1\n")
    typed = typed.replace("FILE", f"{tmp_path / 'mine.py'}:kernel --sig void(int32[::1]) --cc 9.0")
    absent = f"raise ModuleNotFoundError({f'No module named {package!r}'!r})"
    done = command(package, absent, *typed.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"numba-cuda-autolink: No module named '{package}'\n  what to do: numba-cuda-autolink doctor\n"
    )
    known = installation.version_of
    monkeypatch.setattr(installation, "version_of", lambda name: "not installed" if name == package else known(name))
    assert main(["doctor"]) == 1
    assert f"  {package} is not installed\n    fix: pip install 'numba-cuda-autolink[cu" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda file: os.truncate(file, 100), "is truncated: it has 100 of 134 bytes"),
        (lambda file: os.truncate(file, 20), "is truncated: it has 20 bytes"),
        (lambda file: os.truncate(file, 0), "is empty"),
        (lambda file: file.write_bytes(bytes(134)), "is not a library"),
    ],
)
def test_a_library_that_is_not_whole_is_damaged_in_any_package(installed, damage, what):
    """Other libraries may have changed: conda changes the paths in them."""
    folder = installed("soup", **{"soup/_code.so": WHOLE})
    damage(folder / "soup" / "_code.so")
    assert list(damaged_files("soup")) == [f"soup/_code.so {what}"]
    (folder / "soup" / "_code.so").write_text(f"{WHOLE}, relinked")
    assert list(damaged_files("soup")) == []


def test_an_edited_file_is_a_conflict_if_a_trial_fails_that_needs_its_package(installed, monkeypatch):
    monkeypatch.setattr(installation, "required_packages", lambda *first: [*first, "soup"])
    (installed("soup", **{"soup.py": "abcd"}) / "soup.py").write_text("abce")
    told = "soup 1.0 is not as it was installed: soup.py has other content"
    assert told not in {each.what for each in conflicts(GOOD, NO_TRIALS, "soup")}
    assert told in {each.what for each in remarks(GOOD, NO_TRIALS, "soup")}
    ended = trial_runs.Trials({}, {"import numba": trial_runs.End("SIGBUS")})
    found = find(GOOD, ended, "soup")
    assert {each.what: each.consequences for each in found.conflicts}[told] == ("importing numba ended Python: SIGBUS",)
    assert told not in {each.what for each in found.remarks}
    missing = trial_runs.Trials({"library nvrtc": "not found", "build": "LinkError: no NVRTC"}, {})
    assert told in {each.what for each in find(GOOD, missing, "soup").remarks}  # for what another fault explains


def test_an_import_that_ends_python_leads_to_its_package(tmp_path, monkeypatch, capsys):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class End:\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name == 'llvmlite.binding':\n"
        "            os.kill(os.getpid(), signal.SIGBUS)\n"
        "sys.meta_path.insert(0, End)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "  importing llvmlite.binding ended Python: SIGBUS"
    assert lines[2] == f"    fix: pip install --force-reinstall --no-deps 'llvmlite=={version_of('llvmlite')}'"


def test_files_of_this_project_are_compared(installed):
    folder = installed("numba-cuda-autolink", **{"soup.py": "abcd", "templates/page.html": "abcd"})
    (folder / "soup.py").write_text("abce")
    (folder / "templates" / "page.html").unlink()
    assert list(damaged_files("numba-cuda-autolink")) == ["soup.py has other content", "templates/page.html is missing"]


def test_metadata_of_this_project_that_are_missing_are_named():
    found = [*conflicts({**GOOD, "numba-cuda-autolink": "not installed"}, NO_TRIALS)]
    assert found[0].what.startswith("the metadata of numba-cuda-autolink are missing: ")


def test_without_a_record_pip_cannot_remove_a_package(installed):
    folder = installed("soup", **{"soup.py": "x"}) / "soup-1.0.dist-info"
    (folder / "INSTALLER").write_text("pip\n")
    (folder / "RECORD").unlink()
    assert list(damaged_files("soup")) == ["its RECORD is missing"]
    assert pip_commands.reinstall_command("soup") == "pip install --ignore-installed --no-deps 'soup==1.0'"


@pytest.mark.parametrize(
    ("cuda", "file"),
    [
        ("13", "cu13/lib/libnvrtc.so.13"),
        ("13", "cu13/lib/libnvJitLink.so.13"),
        ("13", "cu13/lib/libnvvm.so.4"),
        ("12", "cuda_nvrtc/lib/libnvrtc.so.12"),
        ("12", "nvjitlink/lib/libnvJitLink.so.12"),
        ("12", "cuda_nvcc/nvvm/lib64/libnvvm.so"),
        ("13", "cu13/nvvm/libdevice/libdevice.10.bc"),
        ("12", "cuda_nvcc/nvvm/libdevice/libdevice.10.bc"),
    ],
)
def test_a_truncated_library_is_an_error_of_the_import(tmp_path, monkeypatch, cuda, file):
    """Loading it would end the process."""
    path = tmp_path / "nvidia" / file
    path.parent.mkdir(parents=True)
    (tmp_path / "nvidia" / "__init__.py").touch()  # as the packages for CUDA 12 have it, which would be found first
    path.write_bytes(BITCODE[:14] if path.suffix == ".bc" else WHOLE.encode()[:100])
    fault = f"is truncated: it has {'14 of 16' if path.suffix == '.bc' else '100 of 134'} bytes"
    monkeypatch.syspath_prepend(tmp_path)
    assert find_damaged(cuda) == (str(path), fault)
    assert find_damaged("14") is None
    if version_of("cuda-bindings").partition(".")[0] != cuda:
        return  # nothing of that CUDA is imported here
    run = [sys.executable, "-W", "ignore", "-c", "import numba.cuda.autolink"]
    done = subprocess.run(run, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"ImportError: {path} {fault}\n  what to do: " in done.stderr


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (BITCODE, ""),
        (BITCODE[:14], "is truncated: it has 14 of 16 bytes"),
        (BITCODE[:10], "is truncated: it has 10 of 12 bytes"),
        (BITCODE[:4], "is truncated: it has 4 of 12 bytes"),
        (b"\xde\xc0\x17\x0b" + BITCODE, ""),  # in a wrapper
        (b"", "is empty"),
        (b"soup", "is not a library"),
    ],
)
def test_bitcode_that_is_not_whole_is_damaged(tmp_path, content, fault):
    """With it a build would end in SIGABRT."""
    (file := tmp_path / "libdevice.10.bc").write_bytes(content)
    assert find_fault(str(file)) == fault


def test_the_doctor_names_libdevice_outside_of_packages():
    state = "cannot be loaded: /opt/libdevice.10.bc is truncated: it has 14 of 16 bytes"
    trials = trial_runs.Trials({"libdevice": state}, {"build": trial_runs.End("SIGABRT")})
    assert trials.parts()["libdevice"] == state
    (found,) = find(GOOD, trials).conflicts
    assert (found.what, found.consequences) == (
        f"libdevice {state}",
        ("building a small kernel ended Python: SIGABRT",),
    )
    lines, _ = trial_runs.run_process(["libdevice"], None)
    assert os.path.isabs(json.loads(lines[-1])[1])


def test_faults_that_have_nothing_to_do_with_each_other_are_apart(installed):
    (installed("soup", **{"soup.py": "x"}) / "soup.py").unlink()
    trials = trial_runs.Trials({"library nvrtc": "not found", "build": "LinkError: no NVRTC"}, {})
    first, second = find(GOOD, trials, "soup").conflicts
    assert (first.what, first.consequences) == (
        "NVRTC was not found",
        ("a small kernel cannot be built: LinkError: no NVRTC",),
    )
    assert (second.what, second.consequences) == ("soup 1.0 is not as it was installed: soup.py is missing", ())
    trials.results.update({"library nvrtc": "/lib/libnvrtc.so", "build": "LinkError: soup"})
    assert {each.what: each.consequences for each in find(GOOD, trials, "soup").conflicts} == {
        second.what: (),
        "a small kernel cannot be built: LinkError: soup": (),
    }


def test_what_a_damaged_library_prevents_is_a_consequence(installed):
    (installed("nvidia-soup", **{"lib/libnvrtc.so.13": WHOLE}) / "lib" / "libnvrtc.so.13").unlink()
    trials = trial_runs.Trials({"library nvrtc": "not found", "build": "LinkError: no NVRTC"}, {})
    (found,) = find(GOOD, trials, "nvidia-soup").conflicts
    assert found.what.endswith("lib/libnvrtc.so.13 is missing")
    assert found.consequences == ("NVRTC was not found", "a small kernel cannot be built: LinkError: no NVRTC")


@pytest.mark.parametrize("line", ["Version:", "Version: ", "Version:\t"])
def test_metadata_with_an_empty_version_are_damage(installed, line):
    text = f"Metadata-Version: 2.1\nName: soup\n{line}\nSummary: hot\n"
    installed("soup", **{"soup-1.0.dist-info/METADATA": text})
    installed_packages.version_of.cache_clear()
    assert installed_packages.version_of("soup") == "1.0"
    assert pip_commands.reinstall_command("soup").endswith(" 'soup==1.0'")
    assert list(damaged_files("soup")) == ["soup-1.0.dist-info/METADATA has no version"]


def test_files_that_hide_packages_are_named(tmp_path, monkeypatch):
    for name in ("cuda", "numba_cuda", "test"):
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.chdir(tmp_path)
    found = [each.what for each in conflicts(GOOD, NO_TRIALS)]
    assert found == [f"{tmp_path}/{name}.py hides the installed package '{name}'" for name in ("cuda", "numba_cuda")]


def test_a_file_next_to_a_package_that_hides_it_is_named(installed, monkeypatch):
    monkeypatch.setattr(installation, "_required_packages", lambda: ["soup", "bowl"])
    folder = installed("soup", **{"soup/part/code.py": "x"})
    installed("bowl", **{"bowl.py": "x"})
    assert installation.read_installation(GOOD, ()).hiding == {}
    (folder / "soup.py").write_text("")
    importlib.invalidate_caches()
    told = f"{folder}/soup.py hides the installed package 'soup'", "rename it, or move it away"
    assert told in conflicts(GOOD, NO_TRIALS)
    (folder / "soup.py").unlink()
    (folder / "soup" / "__init__.py").write_text("")  # its modules are found all the same
    importlib.invalidate_caches()
    assert installation.read_installation(GOOD, ()).hiding == {}


def test_older_metadata_of_a_package_are_named(installed, monkeypatch):
    monkeypatch.setattr(installed_packages, "required_packages", lambda: ["soup"])
    folder = installed("soup", **{"soup.py": "x"})
    for version in ("0.9", "0.10"):
        (older := folder / f"soup-{version}.dist-info").mkdir()
        (older / "METADATA").write_text(f"Metadata-Version: 2.1\nName: soup\nVersion: {version}\n")
    importlib.invalidate_caches()
    assert installed_packages.version_of("soup") == "1.0"
    found = [each.fix for each in remarks(GOOD, NO_TRIALS) if each.what.startswith("soup 1.0 is ins")]
    assert found == [f"rm -r {folder}/soup-0.10.dist-info", f"rm -r {folder}/soup-0.9.dist-info"]


def test_an_error_without_a_first_line_is_told_by_its_cause():
    error = ImportError("\n\nIMPORTANT: PLEASE READ THIS")
    assert doctor_trials._describe(error) == "ImportError: IMPORTANT: PLEASE READ THIS"
    error.__cause__ = ImportError("libsoup.so: file too short\nmore")
    assert doctor_trials._describe(error) == "ImportError: libsoup.so: file too short"


@pytest.mark.parametrize(
    ("how", "why"),
    [(lambda place: place.touch(), "Not a directory"), (lambda place: place.mkdir(mode=0o777), "any user")],
)
def test_why_the_cache_cannot_be_used_is_named(tmp_path, monkeypatch, how, why):
    how(place := tmp_path / "cache")
    if place.is_dir():
        place.chmod(0o777)
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(place))
    reset_store()
    ((what, _),) = doctor_trials.TRIALS["cache"]()
    reset_store()
    assert what.startswith(f"the cache {place} cannot be used: ") and f"{place}" in what.partition(": ")[2]
    assert what.endswith(why)


def test_the_folder_in_which_no_cache_can_be_made_is_named(monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", "/proc/nope")
    reset_store()
    ((what, _),) = doctor_trials.TRIALS["cache"]()
    reset_store()
    assert what.startswith("the cache /proc/nope cannot be used: no file can be written in /proc: ")


def test_an_import_that_a_missing_file_prevents_says_what_to_do(monkeypatch):
    found = ["its own files are damaged: soup.py is missing", "pip install soup"]
    monkeypatch.setattr(_numba_cuda_autolink_command, "find_damage", lambda: found or None)
    monkeypatch.setitem(autolink._WHERE, "soup", "autolink.soup")
    monkeypatch.setattr(autolink, "_start", lambda: autolink.soup)
    cause = "ModuleNotFoundError: No module named 'numba.cuda.autolink.soup'"
    for use in (autolink._start_or_explain, lambda: autolink.soup):
        with pytest.raises(ImportError) as raised:
            use()
        assert f"{raised.value}".splitlines() == [
            "numba-cuda-autolink: its own files are damaged: soup.py is missing",
            f"  {cause}",
            "  what to do: pip install soup",
        ]
    found.clear()
    with pytest.raises(ModuleNotFoundError, match=r"^No module named"):
        autolink._start_or_explain()


def test_a_variable_with_which_no_kernel_can_be_built_is_named(monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_FORCE_CUDA_CC", "9.9")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_JOBS", "1")
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "  with NUMBA_FORCE_CUDA_CC a small kernel cannot be built, and without it it can"
    assert lines[2].startswith("    consequence: a small kernel cannot be built: ")
    assert lines[3] == "    fix: correct it, or: unset NUMBA_FORCE_CUDA_CC"


def test_libraries_of_two_toolkits_are_conflicts_or_remarks(monkeypatch):
    results = {"version nvrtc": [12, 9], "version nvJitLink": [13, 5], "headers cccl": "/opt/cuda/include"}
    trials = trial_runs.Trials(results | {"version cccl headers": [13, 0]}, {})
    monkeypatch.setattr(toolkit_faults, "version_of", {"cuda-bindings": "13.5.0"}.get)
    found = [each.what for each in conflicts(GOOD, trials)]
    assert "NVRTC 12.9 was found, and cuda-bindings 13.5.0 is for CUDA 13" in found
    assert "the headers in /opt/cuda/include are of CUDA 13.0, NVRTC is of CUDA 12.9" in found
    have_packages(monkeypatch, dict.fromkeys(["nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"], "1.0"))
    assert [each.what for each in remarks(GOOD, trials)] == [
        "nvidia-cuda-cccl is not installed: its headers come from /opt/cuda/include, of CUDA 13.0",
        "nvidia-cuda-nvrtc-cu12: not used, since the packages for CUDA 13 are found first",
    ]


def test_a_package_whose_library_is_loaded_is_used(installed, monkeypatch):
    folder = installed("nvidia-cuda-nvrtc-cu12", **{"nvidia/cuda_nvrtc/lib/libnvrtc.so.12": WHOLE})
    have_packages(monkeypatch, dict.fromkeys(["nvidia-nvjitlink", "nvidia-cuda-nvrtc-cu12"], "1.0"))
    for path, is_said in (("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", False), ("nvidia/cu13/lib/libnvrtc.so.13", True)):
        trials = trial_runs.Trials({"library nvrtc": f"{folder}/{path}"}, {})
        assert any("not used" in each.what for each in remarks(GOOD, trials)) is is_said


def test_settings_that_turn_things_off_are_remarks(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    what = "NUMBA_DISABLE_JIT=1: numba.njit compiles nothing, and kernels cannot call its functions"
    assert (what, "unset NUMBA_DISABLE_JIT") in remarks(GOOD, NO_TRIALS)


def test_files_of_cuda_core_for_another_cuda_may_be_removed(installed, monkeypatch):
    folder = installed("cuda-core", **dict.fromkeys(("cuda/core/cu12/code.py", "cuda/core/cu13/code.py"), "x"))
    monkeypatch.setattr(installed_packages, "version_of", {"cuda-core": "1.0", "cuda-bindings": "13.5.0"}.get)
    (folder / "cuda/core/cu12/code.py").unlink()
    assert list(damaged_files("cuda-core")) == []
    (folder / "cuda/core/cu13/code.py").unlink()
    assert list(damaged_files("cuda-core")) == ["cuda/core/cu13/code.py is missing"]


def test_settings_of_an_older_numba_cuda_are_remarks(monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_DRIVER", "/nope/libcuda.so")
    monkeypatch.setenv("NUMBA_CUDA_USE_NVIDIA_BINDING", "0")
    monkeypatch.setenv("NUMBA_CUDA_ENABLE_PYNVJITLINK", "1")
    found = {each.fix: each.what for each in remarks(GOOD, NO_TRIALS)}
    what = found["unset NUMBA_CUDA_DRIVER"]
    assert what.startswith("NUMBA_CUDA_DRIVER is '/nope/libcuda.so', and there is no such file: a setting of an older")
    assert found["unset NUMBA_CUDA_USE_NVIDIA_BINDING"].startswith("NUMBA_CUDA_USE_NVIDIA_BINDING is '0': a setting")
    assert found["unset NUMBA_CUDA_ENABLE_PYNVJITLINK"].startswith("NUMBA_CUDA_ENABLE_PYNVJITLINK is '1': a setting")
    assert not any(name in each.what for each in conflicts(GOOD, NO_TRIALS) for name in found)


@pytest.mark.parametrize(
    ("package", "module", "missing"),
    [
        ("numba", "numba", "llvmlite"),
        ("numba-cuda", "numba.cuda", "numba.cuda.types"),
        ("numba-cuda-mlir", "numba_cuda_mlir", "numba_cuda_mlir.mlir"),
        ("numba-cuda-mlir", "numba_cuda_mlir.cuda", "numba_cuda_mlir.compiler"),
    ],
)
def test_the_error_of_an_import_says_what_to_do(package, module, missing):
    pytest.importorskip(module)
    script = f"import sys; sys.modules[{missing!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    error, *note = done.stderr.splitlines()[-3:]
    assert error.startswith("ModuleNotFoundError: ")
    assert note == [
        f"numba-cuda-autolink: {package} cannot be imported: {error}",
        "  what to do: numba-cuda-autolink doctor says what is missing or damaged",
    ]
    environment = {**os.environ, "NUMBA_CUDA_AUTOLINK": "0"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "doctor" not in done.stderr


def test_why_a_front_end_cannot_be_imported_is_its_own_packages(installed, monkeypatch):
    folder = installed("soup", **{"soup.py": "x"})
    error = ImportError("no spoon")
    with_doctor = "\n  what to do: numba-cuda-autolink doctor says what is missing or damaged"
    assert failed_imports.explain(error, "soup") == f"ImportError: no spoon{with_doctor}"
    unmet = installed_packages.UnmetRequirement("soup", "soup 1.0 is installed, and soup>2 is needed", "pip get soup")
    monkeypatch.setattr(installed_packages, "unmet_requirements", lambda: [unmet._replace(name="rich"), unmet])
    said = "\n  ImportError: no spoon\n  what to do: "
    end = "; numba-cuda-autolink doctor checks all packages"
    assert failed_imports.explain(error, "soup") == f"{unmet.text}{said}{unmet.fix}{end}"
    monkeypatch.setattr(installed_packages, "unmet_requirements", lambda: [])
    (folder / "soup.py").unlink()
    text = failed_imports.explain(error, "soup")
    assert text.startswith(f"soup 1.0 is not as it was installed: soup.py is missing{said}pip install ")


def test_a_note_is_a_part_of_the_text_where_python_has_no_notes(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10))
    for error in (ImportError("no soup"), AttributeError("no soup")):
        failed_imports.add_note(error, "buy some")
        assert str(error) == "no soup\nbuy some"


def test_the_import_names_a_file_that_hides_numba_cuda(tmp_path):
    (tmp_path / "numba_cuda").mkdir()
    (tmp_path / "numba_cuda" / "__init__.py").touch()
    run = [sys.executable, "-c", "from numba.cuda import autolink"]
    done = subprocess.run(run, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert f"{tmp_path}/numba_cuda/__init__.py hides the installed package 'numba_cuda'\n" in done.stderr
    assert "  what to do: rename it, or move it away" in done.stderr


@pytest.mark.parametrize(
    ("nvrtc", "packages", "fix"),
    [
        ([13, 5], ["nvidia-cuda-nvrtc"], "pip install 'numba-cuda-autolink[cu13]'"),
        ([13, 5], ["nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"], "pip install 'numba-cuda-autolink[cu13]'"),
        ([12, 9], ["nvidia-cuda-nvrtc-cu12"], "pip install 'numba-cuda-autolink[cu12]'"),
        ([12, 9], [], "pip install 'numba-cuda-autolink[cu13]'"),
        ([13, 5], [], "pip install 'numba-cuda-autolink[cu12]'"),
    ],
)
def test_bindings_for_another_cuda_are_fixed_in_one_step(monkeypatch, nvrtc, packages, fix):
    """Packages for CUDA 13 are found first, then those for CUDA 12, then a toolkit outside of Python's packages."""
    bindings = "13.0.0" if nvrtc[0] == 12 else "12.9.4"
    have_packages(monkeypatch, dict.fromkeys(packages, "1.0") | {"cuda-bindings": bindings})
    monkeypatch.setattr(toolkit_faults, "version_of", installed_packages.version_of)
    trials = trial_runs.Trials({"version nvrtc": nvrtc}, {})
    what = f"NVRTC {nvrtc[0]}.{nvrtc[1]} was found, and cuda-bindings {bindings} is for CUDA {bindings[:2]}"
    assert (what, fix) in conflicts(GOOD, trials)
    trials.results["build"] = ""
    assert (what, fix) in remarks(GOOD, trials)
    assert what not in {each.what for each in conflicts(GOOD, trials)}


def test_the_pip_of_another_environment_is_not_named(monkeypatch, tmp_path):
    assert pip_commands.pip("install") == "pip install"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pip_commands.pip("install") == f"{sys.executable} -m pip install"
    (tmp_path / "pip").touch(0o755)
    assert pip_commands.pip("install") == f"{sys.executable} -m pip install"
    monkeypatch.setattr(pip_commands.sysconfig, "get_path", lambda name: str(tmp_path))
    (tmp_path / "pip").write_text("#!/opt/copied/bin/python3\n")
    assert pip_commands.pip("install") == f"{sys.executable} -m pip install"
    (tmp_path / "pip").write_text(f"#!{sys.executable}\n")
    assert pip_commands.pip("install") == "pip install"
    (tmp_path / "pip").unlink()
    monkeypatch.setattr(pip_commands.importlib.util, "find_spec", lambda name: None)
    assert pip_commands.pip("install") == f"{sys.executable} -m ensurepip && {sys.executable} -m pip install"
    (tmp_path / "uv").touch(0o755)
    assert pip_commands.pip("uninstall -y") == f"uv pip uninstall --python {sys.executable}"


@pytest.fixture
def copy_of_project(tmp_path):
    """Installs a copy of the command line without its dependencies, and runs it after *damage* was done to a file."""

    def run(file, damage):
        root = PROJECT
        shutil.copytree(root / "numba_cuda_autolink", tmp_path / "numba_cuda_autolink")
        shutil.copy(root / "_numba_cuda_autolink_command.py", tmp_path)
        info = tmp_path / "numba_cuda_autolink-0.2.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numba-cuda-autolink\nVersion: 0.2.0\n")
        (info / "direct_url.json").write_text(json.dumps({"url": f"file://{root}", "dir_info": {}}))
        lines = []
        for each in tmp_path.rglob("*.py"):
            digest = base64.urlsafe_b64encode(hashlib.sha256(each.read_bytes()).digest()).decode().rstrip("=")
            lines.append(f"{each.relative_to(tmp_path)},sha256={digest},{each.stat().st_size}")
        (info / "RECORD").write_text("\n".join(lines))
        damage(tmp_path / file)
        script = "import sys; from _numba_cuda_autolink_command import main; sys.exit(main())"
        return subprocess.run(
            [sys.executable, "-S", "-c", script, "doctor"], cwd=tmp_path, capture_output=True, text=True
        )

    return run


DOCTOR = """
import sys
from _numba_cuda_autolink_command import main
sys.argv[1:] = ["doctor", "--json"]
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("name", "kind"), [("json", "conflicts"), ("argparse", "remarks"), ("dataclasses", "conflicts"), ("test", None)]
)
@pytest.mark.parametrize("is_path", [True, False])
def test_a_file_that_hides_a_module_of_python_is_named(tmp_path, name, kind, is_path):
    """In the working folder, where ``python -m`` and programs find it, or in a folder of PYTHONPATH."""
    (tmp_path / f"{name}.py").write_text("x = 1")
    environment = {**os.environ, **({"PYTHONPATH": str(tmp_path)} if is_path else {})}
    where = "/" if is_path else tmp_path
    done = subprocess.run([sys.executable, "-c", DOCTOR], env=environment, cwd=where, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (int(kind == "conflicts"), "")
    expected = f"{tmp_path}/{name}.py hides Python's own module {name!r}", "rename it, or move it away"
    found = json.loads(done.stdout)
    named = {each: [(one["what"], one["fix"]) for one in found[each]] for each in ("conflicts", "remarks")}
    assert [each for each, all_named in named.items() if expected in all_named] == ([kind] if kind else [])


@pytest.mark.parametrize(("name", "code"), [("json", "x = 1"), ("inspect", "x = 1"), ("ast", "("), ("ast", "1 / 0")])
def test_an_import_names_a_file_that_hides_a_module_of_python(tmp_path, name, code):
    (tmp_path / f"{name}.py").write_text(code)
    (tmp_path / "program.py").write_text("import numba.cuda")
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True)
    assert done.returncode == 1
    assert f" numba cannot be imported: {tmp_path}/{name}.py hides Python's own module {name!r}\n" in done.stderr
    assert "  what to do: rename it, or move it away; numba-cuda-autolink doctor checks all packages" in done.stderr


METADATA = ("METADATA", "RECORD", "entry_points.txt", "WHEEL", "direct_url.json", "INSTALLER")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"\0x\n,,,,\n", b"[1]", b'{"url": 1, "vcs_info": 2}', None])
@pytest.mark.parametrize("name", METADATA)
def test_no_damage_of_metadata_ends_the_doctor(installed, monkeypatch, name, content):
    files = {"soup-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nVersion: 1.0"}
    folder = installed("soup", **files, **{"soup.py": "x"}) / "soup-1.0.dist-info"
    (folder / "INSTALLER").write_text("pip\n")
    (folder / name).unlink(missing_ok=True)
    if content is None:
        (folder / name).mkdir()
    else:
        (folder / name).write_bytes(content)
    installed_packages.version_of.cache_clear()
    assert installed_packages.version_of("soup") == "1.0"
    assert installed_packages.requirements("soup") == {}
    found = [*conflicts({**GOOD, "soup": "1.0"}, NO_TRIALS, "soup")]
    [*remarks({**GOOD, "soup": "1.0"}, NO_TRIALS, "soup")]
    assert pip_commands.reinstall_command("soup").endswith(" 'soup==1.0'")
    damage = [each.what for each in found if each.what.startswith("soup 1.0 is not as it was installed: ")]
    assert len(damage) == (name in ("METADATA", "RECORD"))
    assert all(name in each for each in damage)


def test_trials_that_do_not_start_are_a_conflict(tmp_path, monkeypatch, capsys):
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('no soup')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["doctor"]) == 1
    assert "  Python does not start to try anything: SystemExit: no soup\n" in capsys.readouterr().out


BREAK = {
    "gone": lambda file: file.unlink(),
    "broken": lambda file: file.write_text("def (:"),
    "cut": lambda file: os.truncate(file, 0),
}


@pytest.mark.parametrize("how", BREAK)
@pytest.mark.parametrize(
    "file", ["files.py", "settings.py", "command_entry.py", "commands/doctor_command.py", "installed_packages.py"]
)
def test_damaged_files_of_the_command_itself_are_one_error(copy_of_project, file, how):
    done = copy_of_project(f"numba_cuda_autolink/{file}", BREAK[how])
    first, *lines = done.stderr.splitlines()
    assert done.returncode == 1 and first.startswith("numba-cuda-autolink: its own files are damaged: ")
    assert file.rpartition("/")[2].removesuffix(".py") in first
    assert [line.split(":")[0] for line in lines[1:]] == ["  at", "  what to do"]
    assert lines[-1].startswith("  what to do: ") and "pip install --force-reinstall --no-deps '" in lines[-1]


def test_an_error_of_a_whole_installation_keeps_its_traceback(monkeypatch):
    def fail():
        raise ValueError("soup")

    monkeypatch.setattr(command_entry, "main", fail)
    with pytest.raises(ValueError, match="soup"):
        _numba_cuda_autolink_command.main()


def test_a_damaged_library_is_not_called_missing():
    trials = trial_runs.Trials({"library nvrtc": "cannot be loaded: Failed to dlopen libnvrtc.so"}, {})
    found = [each.what for each in conflicts(GOOD, trials) if each.what.startswith("NVRTC")]
    assert found == ["NVRTC cannot be loaded: Failed to dlopen libnvrtc.so"]


def test_without_packaging_pip_has_a_copy_of_it(monkeypatch):
    known = installed_packages.requirements()
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)
    assert "numpy" in known and installed_packages.requirements() == known


def test_the_fix_for_what_comes_from_one_fault_is_given_once():
    missing = {"library nvrtc": "not found", "build": "LinkError: no NVRTC\n  what to do: install it"}
    (found,) = find(GOOD, trial_runs.Trials(missing, {})).conflicts
    assert (found.what, found.consequences) == (
        "NVRTC was not found",
        ("a small kernel cannot be built: LinkError: no NVRTC",),
    )
    assert found.fix.startswith(INSTALL)


def test_a_kernel_that_the_product_itself_prevents_is_a_conflict():
    failed = {"failed": "ModuleNotFoundError: No module named 'numba.cuda.autolink.c_abi.extern'"}
    found = [each.what for each in conflicts(GOOD, trial_runs.Trials({"build": failed}, {}))]
    assert found[-1] == f"building a small kernel failed: {failed['failed']}"


def test_missing_metadata_are_damage(installed):
    folder = installed("soup", **{"soup-1.0.dist-info/METADATA": "Name: soup", "soup.py": "x"})
    (folder / "soup-1.0.dist-info" / "METADATA").unlink()
    installed_packages.version_of.cache_clear()
    assert list(damaged_files("soup")) == ["soup-1.0.dist-info/METADATA is missing"]
    assert installed_packages.version_of("soup") == "1.0"
    assert pip_commands.reinstall_command("soup").endswith(" 'soup==1.0'")
    assert installed_packages.requirements("soup") == {}
    assert conflicts({**GOOD, "soup": "1.0"}, NO_TRIALS, "soup")[-1].fix.endswith(" 'soup==1.0'")


def test_a_package_without_metadata_and_record_is_not_installed(installed):
    folder = installed("soup", **{"soup.py": "x"}) / "soup-1.0.dist-info"
    (folder / "INSTALLER").write_text("pip\n")
    (folder / "METADATA").unlink()
    (folder / "RECORD").unlink()
    installed_packages.version_of.cache_clear()
    assert [
        each.what for each in conflicts({**GOOD, "soup": installed_packages.version_of("soup")}, NO_TRIALS, "soup")
    ] == ["soup is not installed"]


def test_what_other_packages_require_is_compared(monkeypatch):
    known = installed_packages.version_of
    monkeypatch.setattr(installed_packages, "version_of", lambda name: {"llvmlite": "0.1.0"}.get(name) or known(name))
    needed = installed_packages.requirements("numba")["llvmlite"]
    found = [each for each in conflicts(GOOD, NO_TRIALS) if "llvmlite" in each.what]
    assert found == [(f"llvmlite 0.1.0 is installed, and {needed} is needed by numba", f"pip install '{needed}'")]


def test_what_is_not_installed_is_a_conflict_of_its_own():
    nothing = dict.fromkeys(package_versions.package_versions(), "not installed")
    trials = trial_runs.Trials({"import numpy": "ModuleNotFoundError: No module named 'numpy'"}, {})
    found = [each.what for each in conflicts(nothing, trials)]
    assert "numpy is not installed" in found
    assert "numba-cuda is not installed" in found
    assert not any("cannot be imported" in what for what in found)


def test_the_diagnosis_is_json_for_tools(capsys):
    code = main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (code, bool(found["conflicts"])) in ((0, False), (1, True))
    assert found["format"] == doctor_command.FORMAT
    assert found["numba_cuda"]["autolink"] == "active"


def test_missing_libraries_and_headers_are_installed_with_this_project():
    missing = {f"library {name}": "not found" for name in ("nvrtc", "nvvm", "cudart")} | {"headers cccl": "not found"}
    error = 'DynamicLibNotFoundError: Failure finding "libcudart.so.13 or libcudart.so.12": No such file: libcudart'
    trials = trial_runs.Trials(missing | {"import numba.cuda.cudadrv.driver": error}, {})
    parts = ["NVRTC", "NVVM", "cudart", "the headers of CCCL"]
    told = [f"{each} {'were' if 'headers' in each else 'was'} not found" for each in parts]
    found = [*conflicts(GOOD, trials)]
    assert [each.what for each in found] == told
    assert {each.fix for each in found} == {pip_commands.install_command()}
    works = trial_runs.Trials(missing | {"build": ""}, {})
    assert [*conflicts(GOOD, works)] == []
    assert set(told) <= {each.what for each in remarks(GOOD, works)}


def test_without_nvfatbin_kernels_work():
    trials = trial_runs.Trials({"library nvfatbin": "not found"}, {})
    assert [*conflicts(GOOD, trials)] == []
    assert any(each.what.startswith("nvFatbin was not found") for each in remarks(GOOD, trials))


def test_what_a_trial_only_repeats_is_told_once(installed, monkeypatch):
    folder = installed("nvidia-soup", **{"lib/libsoup.so.13": WHOLE})
    os.truncate(file := folder / "lib/libsoup.so.13", 0)
    results = {"import numba.cuda.autolink.cache": f"ImportError: {file} is empty"}
    trials = trial_runs.Trials(results | {"library nvrtc": f"cannot be loaded: {file}: file too short"}, {})
    assert [each.what for each in conflicts({**GOOD, "numba-cuda-autolink": "0.2.0"}, trials, "nvidia-soup")] == [
        "nvidia-soup 1.0 is not as it was installed: lib/libsoup.so.13 is empty"
    ]


def test_an_import_that_names_the_damage_is_told_once(installed, monkeypatch):
    folder = installed("soup", **{"soup.py": "x", "soups.py": "x"})
    (folder / "soup.py").unlink()
    (folder / "soups.py").unlink()
    text = "ImportError: numba-cuda-autolink: its own files are damaged: soup.py is missing, and 1 more"
    trials = trial_runs.Trials({"import numba.cuda.autolink.cache": text}, {})
    found = [each.what for each in conflicts({**GOOD, "numba-cuda-autolink": "0.2.0"}, trials, "soup")]
    assert found == ["soup 1.0 is not as it was installed: soup.py is missing, and 1 more file"]


def test_a_file_that_is_not_the_driver_is_named(tmp_path, monkeypatch):
    file = tmp_path / "libcuda.so.1"
    shutil.copy(importlib.util.find_spec("_ctypes").origin, file)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nope:{tmp_path}/")
    lines, _ = trial_runs.run_process(["driver"], None)
    results = {name: result[0] for name, *result in map(json.loads, lines) if result}
    trials = trial_runs.Trials(results | {"variables": []}, {})
    found = [*conflicts(GOOD, trials)]
    what = f"{file} is not NVIDIA's driver: it lacks cuInit or cuDriverGetVersion"
    assert (what, f"take {tmp_path} out of LD_LIBRARY_PATH") in found
    file.write_bytes(b"")
    lines, _ = trial_runs.run_process(["driver"], None)
    assert json.loads(lines[-1]) == ["driver", [str(file), "file too short"]]


def test_a_gpu_that_cannot_be_used_is_a_conflict():
    trials = trial_runs.Trials({"state": {"GPU": "cannot be used: RuntimeError: no soup"}, "build": ""}, {})
    what = "the GPU cannot be used: RuntimeError: no soup"
    assert [*conflicts(GOOD, trials)] == [(what, "install NVIDIA's driver again")]


def test_a_variable_that_numba_cannot_read_is_a_remark(monkeypatch):
    monkeypatch.setenv("NUMBA_CUDA_DEFAULT_PTX_CC", "abc")
    monkeypatch.setenv("NUMBA_OPT", "soup")
    names = [each for each in trial_runs.NAMES if each.startswith("import ")]
    lines, _ = trial_runs.run_process([*names, "settings"], None)
    results = {name: result[0] for name, *result in map(json.loads, lines) if result}
    found = {each.fix: each.what for each in remarks(GOOD, trial_runs.Trials(results, {}))}
    for name, value in (("NUMBA_CUDA_DEFAULT_PTX_CC", "abc"), ("NUMBA_OPT", "soup")):
        what = f"{name} is {value!r}, which Numba ignores: ValueError: "
        assert found[f"correct the value, or: unset {name}"].startswith(what)


def test_start_files_that_python_did_not_run_are_the_only_conflict(tmp_path, monkeypatch):
    (tmp_path / "numba_cuda_autolink.pth").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert failed_imports.describe_unrun() is None
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if each is not Finder])
    trials = trial_runs.Trials({"library nvrtc": "not found"}, {})
    ((what, fix),) = conflicts(GOOD, trials)
    assert what == f"Python did not run the .pth files of {tmp_path}, with which it finds numba-cuda"
    assert fix.startswith("unset PYTHONPATH && ") and "numba-cuda-autolink[cu" in fix
    assert [*remarks(GOOD, trials)] == []
    assert failed_imports.explain(ImportError("x"), "numba-cuda").startswith(f"{what}\n  ImportError: x\n")
    monkeypatch.setattr(failed_imports.site, "getsitepackages", lambda: [str(tmp_path)])
    assert failed_imports.describe_unrun() is None


def test_what_works_is_a_remark(installed, monkeypatch):
    monkeypatch.setenv("CUDA_HOME", "/no/such/folder")
    (installed("nvidia-nvfatbin", **{"lib/libnvfatbin.so": WHOLE}) / "lib/libnvfatbin.so").write_text("")
    works = trial_runs.Trials({"build": ""}, {})
    assert [*conflicts(GOOD, works, "nvidia-nvfatbin")] == []
    found = {each.what for each in remarks(GOOD, works, "nvidia-nvfatbin")}
    assert "CUDA_HOME is '/no/such/folder', and there is no such folder" in found
    assert "nvidia-nvfatbin 1.0 is not as it was installed: lib/libnvfatbin.so is empty" in found


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_cache_without_room_is_named(tmp_path, monkeypatch, mode):
    resource = pytest.importorskip("resource")
    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(mode)
    reset_store()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, limits[1]))
    try:
        found = doctor_trials.TRIALS["cache"]()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        reset_store()
    what = f"the cache {tmp_path} cannot be used: no file can be written in {tmp_path}: File too large"
    others = f", and {tmp_path} can be written to by any user" if mode == 0o777 else ""
    assert [each for each, _ in found] == [what + others]


def test_a_copy_in_pythonpath_is_not_repaired_by_pip_alone(installed, tmp_path, monkeypatch):
    """pip installs into the folder of this Python, and Python finds the other one first."""
    folder = installed("soup", **{"soup.py": "abcd"})
    assert pip_commands.reinstall_command("soup").startswith("pip install --force-reinstall --no-deps ")
    monkeypatch.setenv("PYTHONPATH", f"/nope:{folder}/")
    into = f"pip install --target {folder} --upgrade --no-deps 'soup==1.0'"
    assert pip_commands.reinstall_command("soup") == into
    older = tmp_path / "own" / "soup-0.9.dist-info"
    older.mkdir(parents=True)
    (older / "METADATA").write_text("Metadata-Version: 2.1\nName: soup\nVersion: 0.9\n")
    paths = {"purelib": str(older.parent), "platlib": str(older.parent)}
    monkeypatch.setattr(pip_commands.sysconfig, "get_path", lambda name: paths.get(name, "/nope"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(older.parent)])
    importlib.invalidate_caches()
    told = f"soup 1.0 in {folder} hides soup 0.9 in {older.parent}", f"take {folder} out of PYTHONPATH"
    works = trial_runs.Trials({"build": ""}, {})
    assert told in [*remarks(GOOD, works, "soup")]
    assert [*conflicts(GOOD, works, "soup")] == []
    (folder / "soup.py").write_text("abce")
    assert [*conflicts(GOOD, works, "soup")] == [told]
    assert told not in [*remarks(GOOD, works, "soup")]


def test_what_conda_installed_is_installed_by_conda(installed, tmp_path, monkeypatch):
    (installed("soup", **{"soup.py": "x"}) / "soup-1.0.dist-info" / "INSTALLER").write_text("conda\n")
    monkeypatch.setattr(pip_commands, "installer_of", lambda name: {"numpy": "pip"}.get(name, "conda"))
    assert pip_commands.install_command().startswith("pip install ")
    (tmp_path / "conda-meta").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    have_packages(monkeypatch, {"cuda-bindings": "12.9.4", "soup": "1.0"})
    packages = "numba-cuda cuda-nvrtc libnvjitlink cuda-cudart-dev cuda-cccl"
    assert pip_commands.install_command() == f"conda install -c conda-forge cuda-version=12 {packages}"
    assert pip_commands.command_for_cuda(13) == f"conda install -c conda-forge cuda-version=13 {packages}"
    again = "conda install -c conda-forge --force-reinstall --no-deps soup=1.0"
    assert pip_commands.reinstall_command("soup") == again
    assert pip_commands.install_version("soup>2") == "conda install -c conda-forge 'soup>2'"
    assert pip_commands.install_version("numpy<2.5").endswith("pip install 'numpy<2.5'")
    documented = (PROJECT / "docs" / "wheels.md").read_text()
    assert all(name in documented for name in packages.split())
