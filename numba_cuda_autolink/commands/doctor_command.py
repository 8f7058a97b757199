# SPDX-License-Identifier: BSD-2-Clause
"""``doctor``: prints what is installed, where libraries were found, and what is wrong.

It works where packages are missing or broken: this process reads their metadata, and another one tries them.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..failed_imports import describe_unrun
from ..hidden_modules import RENAME, describe_hidden, hidden_modules, moved_folders
from ..installed_packages import (
    IS_DAMAGED,
    damaged_files,
    describe_damage,
    describe_older_nvjitlink,
    describe_other_headers,
    describe_unmet,
    dotted,
    has_file_in,
    hiding_files,
    required_packages,
    requirements,
    stale_metadata,
    unmet_requirements,
)
from ..missing_parts import HEADERS, LIBRARIES, OPTIONAL, is_optional, missing_library
from ..package_versions import NOT_INSTALLED, metadata_folder, package_versions, version_of
from ..pip_commands import (
    command_for_cuda,
    folder_of_pythonpath,
    hidden_copy,
    install_command,
    install_version,
    reinstall_command,
    toolkit_packages,
)
from ..printable_texts import number_of
from ..settings import wrong_settings
from . import doctor_trials
from .doctor_trials import NOT_FOUND, NOT_LOADED

FORMAT = 1  # of the JSON
NOT_TRIED = "not tried"
_START = "start"  # in place of a trial, if Python does not get to the first
_LIMIT = 120  # seconds of all trials
_OURS = "numba-cuda-autolink"
# Settings of Numba, and what they do.
_OFF = {
    "NUMBA_ENABLE_CUDASIM": "Numba's simulator runs kernels; nothing is compiled or linked",
    "NUMBA_DISABLE_CUDA": "Numba uses no GPU",
    "NUMBA_DISABLE_JIT": "numba.njit compiles nothing, and kernels cannot call its functions",
}
# Settings that Numba's own CUDA target or an older numba-cuda has read.
_OLD_SETTINGS = (
    "NUMBA_CUDA_DRIVER",
    "NUMBA_CUDA_ENABLE_MINOR_VERSION_COMPATIBILITY",
    "NUMBA_CUDA_ENABLE_PYNVJITLINK",
    "NUMBA_CUDA_USE_NVIDIA_BINDING",
)
_TRIED = {
    **{f"headers {name}": f"looking for the headers of {headers.what}" for name, headers in HEADERS.items()},
    **{f"version {name} headers": f"reading the headers of {headers.what}" for name, headers in HEADERS.items()},
    "driver": "loading the driver",
    "state": "asking numba-cuda what it uses",
    "settings": "reading the environment variables of Numba",
    "cache": "checking the cache",
    "build": "building a small kernel",
}
_ABOVE = "first what is listed above"
# What changes how libraries are found, and how kernels are compiled.
_VARIABLES = ("NUMBA_", "CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT", "LD_LIBRARY_PATH", "LD_PRELOAD")


class Conflict(NamedTuple):
    """What is wrong, and how to fix it."""

    what: str
    fix: str


class End(NamedTuple):
    """*How* a trial ended the process that ran it, and whether the process *was_killed* since it took too long."""

    how: str
    was_killed: bool = False


class Trials(NamedTuple):
    """The *results* of trials by their names, and those that *ended* the process that ran them."""

    results: dict[str, Any]
    ended: dict[str, End]

    def failed_import(self) -> tuple[str, str] | None:
        """Return the module that cannot be imported, and why; ``None`` if all can."""
        for name, result in self.results.items():
            kind, _, module = name.partition(" ")
            if kind == "import" and result:
                return module, result["failed"] if isinstance(result, dict) else result
        return None

    def have_failed(self) -> bool:
        """Whether packages may be damaged: a trial ended its process, or something cannot be imported or built."""
        return bool(self.ended or self.failed_import() or self.results.get("build"))


def add_to(commands: Any) -> None:
    parser = commands.add_parser("doctor", help="show versions, libraries, and conflicts with their fixes")
    parser.description = (
        "Print conflicts with their fixes, the versions of all packages, and where libraries were found. It loads the"
        " libraries and builds a small kernel, in a process of its own, and works where Numba or CUDA is missing or"
        " broken. Conflicts are what is wrong with this project, its settings, the driver, or packages and modules that"
        " it needs, also where kernels can be built: the exit code is 1 if there are any. Remarks are about what no"
        " kernel needs, and what may be as you want it."
    )
    parser.add_argument("--json", action="store_true", help="write JSON, for tools")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the diagnosis. Return 1 if there are conflicts, else 0."""
    trials = run_trials()
    installed = installed_versions()
    found, remarked = list(conflicts(installed, trials)), list(remarks(installed, trials))
    python = {
        "version": platform.python_version(),
        "prefix": sys.prefix,
        "system": f"{platform.system()} {platform.machine()}",
    }
    libraries, state = _libraries(trials), _state(trials)
    if options.json:
        diagnosis = {
            "format": FORMAT,
            "python": python,
            "packages": installed,
            "cuda_libraries": libraries,
            "numba_cuda": state,
            "conflicts": [conflict._asdict() for conflict in found],
            "remarks": [remark._asdict() for remark in remarked],
        }
        print(json.dumps(diagnosis, indent=2))
        return int(bool(found))
    _print_findings(number_of(len(found), "conflict") if found else "no known conflicts", found)
    if remarked:
        _print_findings(number_of(len(remarked), "remark"), remarked)
    title = "Python {version} in {prefix}, {system}".format(**python)
    packages = os.path.join(sysconfig.get_path("purelib"), "")
    places = {name: place.removeprefix(packages) for name, place in libraries.items()}
    where = f"CUDA libraries, in {packages}" if places != libraries else "CUDA libraries"
    for name, states in {where: places, "numba-cuda": state, title: installed}.items():
        print(name, *(_wrap(f"  {key:20} {value}", 23) for key, value in states.items()), sep="\n")
    return int(bool(found))


def _print_findings(title: str, found: list[Conflict]) -> None:
    print(title)
    for fix, group in itertools.groupby(found, lambda conflict: conflict.fix):
        print(*(_wrap(f"  {conflict.what}", 4) for conflict in group), f"    fix: {fix}", sep="\n")


def _wrap(line: str, indent: int) -> str:
    """Return *line* in lines that the terminal has room for. Commands, which are copied, are not wrapped."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    if len(line) <= width or width <= indent:
        return line
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False, "drop_whitespace": False}
    return "\n".join(textwrap.wrap(line, width, subsequent_indent=" " * indent, **options))


def run_trials() -> Trials:
    """Run all trials in a process, and those after one that ends it in another."""
    trials = Trials({}, {})
    is_full = os.environ.get("NUMBA_CUDA_AUTOLINK_TRACEBACK") == "full"
    while True:
        done = [name for name in trials.results if not name.startswith("import ")]
        lines, code = _run_process([*done, *trials.ended], None if is_full else subprocess.DEVNULL)
        name = ""
        for line in lines:
            name, *result = json.loads(line)
            if result:
                trials.results[name], name = result[0], ""
        if not lines and code:
            trials.ended[_START] = End(_why_none_starts())
            return trials
        if not name:
            trials.results["variables"] = _variables_at_fault(trials)
            return trials
        if code is None:
            trials.ended[name] = End(f"it took longer than {_LIMIT} s", was_killed=True)
        else:
            trials.ended[name] = End(signal.Signals(-code).name if code < 0 else f"exit code {code}")


def _why_none_starts() -> str:
    """Return the last line that Python prints where it cannot run trials."""
    others = [name for name in doctor_trials.TRIALS if name != "version driver"]
    command = [sys.executable, doctor_trials.__file__, *others]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    return done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"


def _run_process(
    arguments: list[str], stderr: int | None, environment: dict[str, str] | None = None
) -> tuple[list[str], int | None]:
    """Run the trials in a process but those that *arguments* name. Return the lines that it printed, and its exit code;
    ``None`` if it had to be killed, with those that it had started."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        command = [sys.executable, doctor_trials.__file__, *arguments]
        process = subprocess.Popen(command, stdout=output, stderr=stderr, start_new_session=True, env=environment)
        code: int | None = None
        try:
            code = process.wait(_LIMIT)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if code is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return output.read().splitlines(), code


def _variables_at_fault(trials: Trials) -> list[str]:
    """Return the environment variable without which a kernel can be built, if with it it cannot; or all of them, if it
    takes more than one."""
    given = sorted(name for name in os.environ if name.startswith(_VARIABLES))
    if not (trials.results.get("build") or "build" in trials.ended) or not _builds_without(given):
        return []
    return next(([name] for name in given if len(given) == 1 or _builds_without([name])), given)


def _builds_without(variables: list[str]) -> bool:
    """Whether a kernel can be built without these environment variables; not if there are none."""
    others = [name for name in doctor_trials.TRIALS if name != "build" and not name.startswith("import ")]
    environment = {name: value for name, value in os.environ.items() if name not in variables}
    lines, _ = _run_process(others, subprocess.DEVNULL, environment) if variables else ([], None)
    return bool(lines) and json.loads(lines[-1]) == ["build", ""]


def installed_versions() -> dict[str, str]:
    """Return the versions of what this project requires and builds on."""
    try:
        required = list(requirements())
    except ImportError:  # of packaging, which reads them
        required = ["packaging"]
    mlir = ("numba-cuda-mlir",) if version_of("numba-cuda-mlir") != NOT_INSTALLED else ()
    return {**package_versions(), **{name: version_of(name) for name in (*required, *mlir)}}


def _libraries(trials: Trials) -> dict[str, str]:
    """Return where each library and header directory of the CUDA toolkit is, and what the driver is for."""
    found = {}
    for name in doctor_trials.TRIALS:
        kind, _, what = name.partition(" ")
        if kind in ("library", "headers"):
            result = trials.results.get(name)
            if isinstance(result, dict):
                return {"cuda.pathfinder": result["failed"]}
            key = f"{what} headers" if kind == "headers" else what
            end = trials.ended.get(name)
            found[key] = result or (f"{NOT_LOADED}: {end.how}" if end else NOT_TRIED)
    driver = _version(trials, "driver")
    found["driver"] = f"for CUDA {dotted(driver)}" if driver else f"{NOT_FOUND}: kernels run in the emulator only"
    return found


def _state(trials: Trials) -> dict[str, str]:
    if failed := trials.failed_import():
        return {"import": f"failed at {failed[0]}: {failed[1]}"}
    for name, end in trials.ended.items():
        if name == "state" or name.startswith("import "):
            return {name: f"ended Python: {end.how}"}
    state: dict[str, str] = trials.results.get("state", {"state": NOT_TRIED})
    return state


def conflicts(installed: dict[str, str], trials: Trials) -> Iterator[Conflict]:
    """Yield what is wrong with the *installed* versions, with the environment, and with what the *trials* tried."""
    if unrun := describe_unrun():
        yield Conflict(*unrun)  # from which all others follow
        return
    hidden = _hidden_copies(installed)
    known = [*_package_conflicts(installed), *(_stale_metadata() if trials.have_failed() else ())]
    known = [each for each in known if each.what.partition(" ")[0] not in hidden]
    causes = [
        *(each for name, each in hidden.items() if _is_faulty(name, installed, trials)),
        *_damage(
            (each for each in _packages(installed) if not (is_optional(each) or each in hidden)),
            compared=trials.have_failed(),
        ),
        *_hidden_packages(trials),
        *_wrong_driver(trials),
        *_variables(trials),
    ]
    known += [*causes, *_environment_conflicts(), *_cache_conflicts(trials), *_toolkit_conflicts(trials)]
    if trials.results.get("build") != "":
        known += _missing_toolkits()
        damaged = [each.what.partition(IS_DAMAGED)[2].partition(" ")[0] for each in causes]
        missing = [each for each in _missing_parts(trials) if not any(file and file in each.what for file in damaged)]
        known += [each._replace(fix=_ABOVE) for each in missing] if causes else missing
    yield from known
    for each in _failed_trials(installed, trials):
        if not any(_says_the_same(each, other) for other in known):
            yield each._replace(fix=_ABOVE) if known else each
            known.append(each)


def _says_the_same(failed: Conflict, known: Conflict) -> bool:
    """Whether what a trial *failed* with is what is *known*: that a library is missing, or a file damaged."""
    if missing := missing_library(failed.what):
        return missing[0] == known.what
    damage = known.what.partition(IS_DAMAGED)[2].partition(", and ")[0]
    if damage and damage in failed.what:
        return True
    return known.what in failed.what or failed.what.rpartition("/")[2] in known.what


def remarks(installed: dict[str, str], trials: Trials) -> Iterator[Conflict]:
    """Yield what no kernel needs, and what may be as the user wants it: packages that were edited or have older
    metadata, settings that turn GPUs off, and parts of the CUDA toolkit from another place or for another CUDA."""
    if describe_unrun():
        return
    hidden = _hidden_copies(installed)
    yield from (each for name, each in hidden.items() if not _is_faulty(name, installed, trials))
    if not trials.have_failed():
        yield from _stale_metadata()
        others = [
            name
            for name in _packages(installed)
            if not (is_optional(name) or name in hidden or next(damaged_files(name), None))
        ]
        yield from _damage(others, compared=True)
    yield from _damage(filter(is_optional, _packages(installed)), compared=True)
    if os.environ.get("NUMBA_CUDA_AUTOLINK") == "0":
        yield Conflict("NUMBA_CUDA_AUTOLINK=0 turns this project off", "unset NUMBA_CUDA_AUTOLINK")
    for name, what in _OFF.items():
        if os.environ.get(name, "0").strip() not in ("", "0"):
            yield Conflict(f"{name}={os.environ[name]}: {what}", f"unset {name}")
    needed = _needed_modules(trials)
    yield from (each for name, each in _hidden_modules().items() if name not in needed)
    yield from _ignored_settings()
    settings = trials.results.get("settings")
    for name, value, why in settings if isinstance(settings, list) else ():
        yield Conflict(f"{name} is {value!r}, which Numba ignores: {why}", f"correct the value, or: unset {name}")
    found = [result for name, result in trials.results.items() if name.startswith(("library ", "headers "))]
    used = [result for result in found if isinstance(result, str) and os.path.isabs(result)]
    ours = toolkit_packages()
    others = [each for each in toolkit_packages(of_other_cuda=True) if not has_file_in(each, used)]
    if any(name.startswith("nvidia-cuda-nvrtc") for name in ours):
        for name, package in (("cudart", "nvidia-cuda-runtime"), ("cccl", "nvidia-cuda-cccl")):
            where = trials.results.get(f"headers {name}")
            if isinstance(where, str) and os.path.isabs(where) and not any(each.startswith(package) for each in ours):
                version = _version(trials, f"{name} headers")
                cuda = f", of CUDA {dotted(version)}" if version else ""
                what = f"{package} is not installed: its headers come from {where}{cuda}"
                yield Conflict(what, install_command())
    if others:
        what = f"{', '.join(others)}: not used, since the packages for CUDA 13 are found first"
        yield Conflict(what, "none is needed")
    if trials.results.get("build") == "":
        yield from _mixed_bindings(trials)
        yield from _missing_parts(trials)
        yield from _missing_toolkits()
    if trials.results.get("library nvfatbin") == NOT_FOUND:
        what = "nvFatbin was not found, with which the command build puts kernels for several GPUs into one file"
        yield Conflict(what, install_command())


def _package_conflicts(installed: dict[str, str]) -> Iterator[Conflict]:
    """Yield the packages that are missing, or whose versions do not fit."""
    try:
        required = requirements()
        others = list(unmet_requirements())
    except ImportError:  # of packaging, which is among the packages that are not installed
        required, others = {}, []
    if installed.get(_OURS) == NOT_INSTALLED:
        what = (
            f"the metadata of {_OURS} are missing: no folder {_OURS.replace('-', '_')}-*.dist-info is on Python's path"
        )
        yield Conflict(what, f"install {_OURS} again, from its checkout or its wheel")
    for name, version in installed.items():
        if name == _OURS:
            continue
        text = describe_unmet(name, version, required.get(name, name)) if required else None
        if text is None and version == NOT_INSTALLED:
            text = f"{name} is not installed"
        if text is not None:
            yield Conflict(text, install_command())
            others = [each for each in others if each.name != name]
    yield from (Conflict(each.text, each.fix) for each in others)
    numba_cuda, numba = (_parse(installed.get(name, "")) for name in ("numba-cuda", "numba"))
    if numba >= (0, 66) and (0, 30, 2) <= numba_cuda < (0, 30, 4):  # older ones are conflicts already
        what = f"Numba {installed['numba']} with numba-cuda {installed['numba-cuda']}, which needs an older one"
        yield Conflict(what, install_version("numba-cuda>=0.30.4"))


def _stale_metadata() -> Iterator[Conflict]:
    """Yield the packages that are installed twice, as their metadata say."""
    with contextlib.suppress(ImportError):  # of packaging
        for package, folder in stale_metadata():
            what = f"{package} {version_of(package)} is installed, and older metadata are left: {folder}"
            yield Conflict(what, f"rm -r {shlex.quote(folder)}")


def _hidden_copies(installed: dict[str, str]) -> dict[str, Conflict]:
    """Return the packages that are installed twice, of which Python finds the copy in a folder of PYTHONPATH."""
    found = {}
    for name in _packages(installed):
        if (hidden := hidden_copy(name)) is not None:
            folder, other = folder_of_pythonpath(name), os.path.dirname(metadata_folder(hidden))
            what = f"{name} {version_of(name)} in {folder} hides {name} {hidden.version} in {other}"
            found[name] = Conflict(what, f"take {folder} out of PYTHONPATH")
    return found


def _is_faulty(package: str, installed: dict[str, str], trials: Trials) -> bool:
    """Whether an installed *package* may be why kernels cannot be built: something failed, or it is damaged, or its
    version does not fit."""
    if trials.have_failed() or next(damaged_files(package, compared=True), None) is not None:
        return True
    return any(each.what.partition(" ")[0] == package for each in _package_conflicts(installed))


def _packages(installed: dict[str, str]) -> list[str]:
    """Return the packages whose files are checked."""
    return list(dict.fromkeys((*installed, *_required_packages(), *toolkit_packages())))


def _damage(packages: Iterable[str], *, compared: bool) -> Iterator[Conflict]:
    """Yield the *packages* of which files are missing or damaged, and if they are *compared*, have changed."""
    damaged = {}
    for name in packages:
        if files := list(damaged_files(name, compared=compared)):
            damaged[name] = describe_damage(name, files[0])
            if len(files) > 1:
                damaged[name] += f", and {number_of(len(files) - 1, 'more file')}"
    fix = reinstall_command(*damaged)
    yield from (Conflict(what, fix) for what in damaged.values())


def _wrong_driver(trials: Trials) -> Iterator[Conflict]:
    """Yield the file that is taken for the driver and is not; or that the driver cannot be used."""
    if isinstance(wrong := trials.results.get("driver"), list):
        file, why = wrong
        folder = os.path.normpath(os.path.dirname(file))
        is_set = folder in map(os.path.normpath, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
        fix = f"take {folder} out of LD_LIBRARY_PATH" if is_set else "remove it, and install NVIDIA's driver for a GPU"
        yield Conflict(f"{file} is not NVIDIA's driver: {why}", fix)
    elif (gpu := _state(trials).get("GPU", "")).startswith(doctor_trials.NOT_USABLE):
        yield Conflict(f"the GPU {gpu}", "install NVIDIA's driver again")


def _variables(trials: Trials) -> Iterator[Conflict]:
    """Yield the environment variables with which no kernel can be built."""
    if names := trials.results.get("variables"):
        it = "it" if len(names) == 1 else "them"
        what = f"with {', '.join(names)} a small kernel cannot be built, and without {it} it can"
        yield Conflict(what, f"correct {it}, or: unset {' '.join(names)}")


def _missing_parts(trials: Trials) -> Iterator[Conflict]:
    """Yield the libraries and headers that kernels are built with and that were not found, or cannot be loaded."""
    for name, library in LIBRARIES.items():
        state = trials.results.get(f"library {name}")
        if name not in OPTIONAL and isinstance(state, str) and state.startswith((NOT_FOUND, NOT_LOADED)):
            yield Conflict(f"{library} {state if state.startswith(NOT_LOADED) else 'was not found'}", install_command())
    for name in doctor_trials.HEADERS:
        if trials.results.get(f"headers {name}") == NOT_FOUND:
            yield Conflict(f"the headers of {HEADERS[name].what} were not found", install_command())


def _environment_conflicts() -> Iterator[Conflict]:
    """Yield the environment variables of this project that are wrong."""
    yield from itertools.starmap(Conflict, wrong_settings(os.environ))


def _missing_toolkits() -> Iterator[Conflict]:
    """Yield the variables that name a toolkit that is not there."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if (folder := os.environ.get(name)) and not os.path.isdir(folder):
            yield Conflict(f"{name} is {folder!r}, and there is no such folder", f"correct it, or: unset {name}")


def _ignored_settings() -> Iterator[Conflict]:
    """Yield the settings of an older numba-cuda, which do nothing."""
    for name in _OLD_SETTINGS:
        if value := os.environ.get(name, ""):
            is_missing = name == "NUMBA_CUDA_DRIVER" and not os.path.exists(value)
            missing = ", and there is no such file" if is_missing else ""
            what = f"{name} is {value!r}{missing}: a setting of an older numba-cuda, which does nothing here"
            yield Conflict(what, f"unset {name}")


def _hidden_packages(trials: Trials) -> Iterator[Conflict]:
    """Yield the files that Python imports in place of an installed package, or of a module of its own that kernels need
    or an error names, at least in programs of this folder."""
    needed = _needed_modules(trials)
    yield from (each for name, each in _hidden_modules().items() if name in needed)
    for name, file in hiding_files(_required_packages(), _path_of_programs()):
        yield Conflict(f"{file} hides the installed package {name!r}", RENAME)


def _hidden_modules() -> dict[str, Conflict]:
    """Return the modules of Python in place of which programs of this folder import a file."""
    found = hidden_modules(sys.stdlib_module_names, _path_of_programs())
    return {name: Conflict(*describe_hidden(name, file)) for name, file in found.items()}


def _path_of_programs() -> list[str]:
    return [os.getcwd(), *moved_folders, *sys.path]


def _needed_modules(trials: Trials) -> set[str]:
    """Return the modules of Python that the trials have imported, or that an error of theirs names."""
    texts = [trials.ended[_START].how] if _START in trials.ended else []
    texts += [failed[1]] if (failed := trials.failed_import()) else []
    named = (name for name in sys.stdlib_module_names if any(repr(name) in text for text in texts))
    return {*trials.results.get("modules", ()), *named}


def _required_packages() -> list[str]:
    try:
        return required_packages()
    except ImportError:  # of packaging, which reads what they require
        return list(package_versions())


def _cache_conflicts(trials: Trials) -> Iterator[Conflict]:
    result = trials.results.get("cache") or []
    if isinstance(result, list):
        yield from itertools.starmap(Conflict, result)


def _failed_trials(installed: dict[str, str], trials: Trials) -> Iterator[Conflict]:
    """Yield the trials that failed, with what to do if no other conflict explains them."""
    for name, end in trials.ended.items():
        kind, _, what = name.partition(" ")
        if name == _START:
            yield Conflict(f"Python does not start to try anything: {end.how}", "correct what that line is about")
        if kind == "version" or name == _START:  # the version of a library, which is tried itself
            continue
        tried = {"library": f"loading {what}", "import": f"importing {what}"}.get(kind, _TRIED.get(name, name))
        fix = reinstall_command(doctor_trials.IMPORTED[what]) if kind == "import" else install_command()
        yield Conflict(f"{tried} {'did not end' if end.was_killed else 'ended Python'}: {end.how}", fix)
    if failed := trials.failed_import():
        module, why = failed
        package = doctor_trials.IMPORTED[module]
        if installed.get(package) != NOT_INSTALLED:
            _, fix = missing_library(why) or ("", reinstall_command(package))
            yield Conflict(f"{module} cannot be imported: {why}", fix)
    for name in doctor_trials.AFTER_IMPORT:
        if isinstance(result := trials.results.get(name), dict) and "failed" in result:
            yield Conflict(f"{_TRIED[name]} failed: {result['failed']}", install_command())
    if isinstance(error := trials.results.get("build"), str) and error:
        first, *others = error.splitlines()
        remedies = [line.partition("what to do: ")[2] for line in others if "what to do: " in line]
        yield Conflict(f"a small kernel cannot be built: {first}", (*remedies, install_command())[0])


def _toolkit_conflicts(trials: Trials) -> Iterator[Conflict]:
    nvrtc, nvjitlink, driver = (_version(trials, name) for name in ("nvrtc", "nvJitLink", "driver"))
    if nvrtc and nvjitlink and nvrtc > nvjitlink:
        yield Conflict(*describe_older_nvjitlink(nvrtc, nvjitlink))
    if driver and nvrtc and nvrtc[0] > driver[0]:
        what = f"the driver is for CUDA {dotted(driver)}, the libraries are for CUDA {dotted(nvrtc)}"
        other = f", or: {command_for_cuda(driver[0])}" if driver[0] >= 12 else ""
        yield Conflict(what, f"update the driver{other}")
    if trials.results.get("build") != "":
        yield from _mixed_bindings(trials)
    for name in ("cudart", "cccl"):
        headers = _version(trials, f"{name} headers")
        if nvrtc and headers:
            what, fix = describe_other_headers(f"{trials.results.get(f'headers {name}')}", headers, nvrtc)
            if what:
                yield Conflict(what, fix)


def _mixed_bindings(trials: Trials) -> Iterator[Conflict]:
    """Yield the libraries that are of another CUDA than cuda-bindings. Kernels may be built all the same."""
    bindings = _parse(version_of("cuda-bindings"))
    for name, library in (("NVRTC", "nvrtc"), ("nvJitLink", "nvJitLink")):
        version = _version(trials, library)
        if version and bindings and version[0] != bindings[0]:
            what = f"{name} {dotted(version)} was found, and cuda-bindings {dotted(bindings)} is for CUDA {bindings[0]}"
            yield Conflict(what, install_command())


def _version(trials: Trials, name: str) -> tuple[int, ...]:
    """Return ``(major, minor)`` of what has this *name*; empty if it was not found."""
    result = trials.results.get(f"version {name}")
    return tuple(result) if isinstance(result, list) else ()


def _parse(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; empty if there are none."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", version)[0])))
