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
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..installed_packages import (
    damaged_files,
    describe_unmet,
    install_command,
    reinstall_command,
    requirements,
    toolkit_packages,
    unmet_requirements,
)
from ..package_versions import NOT_INSTALLED, package_versions, version_of
from ..printable_texts import number_of
from ..settings import wrong_settings
from . import doctor_trials
from .doctor_trials import NOT_FOUND, NOT_LOADED

FORMAT = 1  # of the JSON
_LIMIT = 120  # seconds of all trials
_ABOVE = "first what is listed above"


class Conflict(NamedTuple):
    """What is wrong, and how to fix it."""

    what: str
    fix: str


class Trials(NamedTuple):
    """The *results* of trials by their names, and how a trial *ended* the process that ran it."""

    results: dict[str, Any]
    ended: dict[str, str]


def add_to(commands: Any) -> None:
    parser = commands.add_parser("doctor", help="show versions, libraries, and conflicts with their fixes")
    parser.description = (
        "Print the versions of all packages, where libraries were found, and conflicts. It loads the libraries and"
        " builds a small kernel, in a process of its own, and works where Numba or CUDA is missing or broken. The exit"
        " code is 1 if there are conflicts."
    )
    parser.add_argument("--json", action="store_true", help="write JSON, for tools")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the diagnosis. Return 1 if there are conflicts, else 0."""
    trials = run_trials()
    installed = installed_versions()
    found = list(conflicts(installed, trials))
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
        }
        print(json.dumps(diagnosis, indent=2))
        return int(bool(found))
    title = "Python {version} in {prefix}, {system}".format(**python)
    for name, states in {title: installed, "CUDA libraries": libraries, "numba-cuda": state}.items():
        print(name, *(_wrap(f"  {key:20} {value}", 23) for key, value in states.items()), sep="\n")
    print(number_of(len(found), "conflict") if found else "no known conflicts")
    for fix, group in itertools.groupby(found, lambda conflict: conflict.fix):
        print(*(_wrap(f"  {conflict.what}", 4) for conflict in group), f"    fix: {fix}", sep="\n")
    return int(bool(found))


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
        done = [name for name in trials.results if name != "import"]
        lines, code = _run_process([*done, *trials.ended], None if is_full else subprocess.DEVNULL)
        name = ""
        for line in lines:
            name, *result = json.loads(line)
            if result:
                trials.results[name], name = result[0], ""
        if not name:
            return trials
        if code is None:
            trials.ended[name] = f"it took longer than {_LIMIT} s"
        else:
            trials.ended[name] = signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _run_process(arguments: list[str], stderr: int | None) -> tuple[list[str], int | None]:
    """Run trials in a process. Return the lines that it printed, and its exit code; ``None`` if it had to be killed,
    with those that it had started."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        command = [sys.executable, doctor_trials.__file__, *arguments]
        process = subprocess.Popen(command, stdout=output, stderr=stderr, start_new_session=True)
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
            found[key] = result or f"{NOT_LOADED}: {trials.ended[name]}"
    driver = _version(trials, "driver")
    found["driver"] = f"for CUDA {_dotted(driver)}" if driver else NOT_FOUND
    return found


def _state(trials: Trials) -> dict[str, str]:
    if (broken := trials.results.get("import")) is None:
        return {"import": f"ended Python: {trials.ended['import']}"}
    if broken:
        return {"import": f"failed at {broken['module']}: {broken['error']}"}
    state: dict[str, str] = trials.results.get("state") or {"state": f"ended Python: {trials.ended['state']}"}
    return state


def conflicts(installed: dict[str, str], trials: Trials) -> Iterator[Conflict]:
    """Yield what is wrong with the *installed* versions, with the environment, and with what the *trials* tried."""
    known = [*_package_conflicts(installed), *_environment_conflicts(), *_cache_conflicts(trials)]
    known += [*_toolkit_conflicts(trials), *_damage(installed)]
    yield from known
    for each in _failed_trials(installed, trials):
        yield each._replace(fix=_ABOVE) if known else each
        known.append(each)


def _package_conflicts(installed: dict[str, str]) -> Iterator[Conflict]:
    """Yield the packages that are missing, or whose versions do not fit."""
    try:
        required = requirements()
        others = list(unmet_requirements())
    except ImportError:  # of packaging, which is among the packages that are not installed
        required, others = {}, []
    for name, version in installed.items():
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
        yield Conflict(what, "pip install 'numba-cuda>=0.30.4'")


def _damage(installed: dict[str, str]) -> Iterator[Conflict]:
    """Yield the packages of which files are missing or have changed."""
    damaged = {}
    for name in (*installed, *toolkit_packages()):
        if files := list(damaged_files(name)):
            damaged[name] = f"{name} {version_of(name)} is not as it was installed: {files[0]}"
            if len(files) > 1:
                damaged[name] += f", and {number_of(len(files) - 1, 'more file')}"
    fix = reinstall_command(*damaged)
    yield from (Conflict(what, fix) for what in damaged.values())


def _environment_conflicts() -> Iterator[Conflict]:
    """Yield the environment variables that are wrong, and those that turn this project off."""
    if os.environ.get("NUMBA_CUDA_AUTOLINK") == "0":
        yield Conflict("NUMBA_CUDA_AUTOLINK=0 turns this project off", "unset it")
    yield from itertools.starmap(Conflict, wrong_settings(os.environ))
    if os.environ.get("NUMBA_CUDA_USE_NVIDIA_BINDING") == "0":
        yield Conflict("NUMBA_CUDA_USE_NVIDIA_BINDING=0 is a setting of an older numba-cuda", "unset it")
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if (folder := os.environ.get(name)) and not os.path.isdir(folder):
            yield Conflict(f"{name} is {folder!r}, and there is no such folder", "correct it, or unset it")


def _cache_conflicts(trials: Trials) -> Iterator[Conflict]:
    result = trials.results.get("cache") or []
    if isinstance(result, list):
        yield from itertools.starmap(Conflict, result)


def _failed_trials(installed: dict[str, str], trials: Trials) -> Iterator[Conflict]:
    """Yield the trials that failed, with what to do if no other conflict explains them."""
    for name, how in trials.ended.items():
        kind, _, what = name.partition(" ")
        if kind == "version":
            continue  # of a library
        tried = f"loading {what}" if kind == "library" else f"the trial {name!r}"
        yield Conflict(
            f"{tried} {'did not end' if how.startswith('it took') else 'ended Python'}: {how}", install_command()
        )
    if broken := trials.results.get("import"):
        package = doctor_trials.IMPORTED[broken["module"]]
        if installed.get(package) != NOT_INSTALLED:
            what = f"{broken['module']} cannot be imported: {broken['error']}"
            yield Conflict(what, reinstall_command(package))
    for name, library in (("NVRTC", "nvrtc"), ("nvJitLink", "nvJitLink")):
        state = trials.results.get(f"library {library}")
        if isinstance(state, str) and state.startswith((NOT_FOUND, NOT_LOADED)):
            yield Conflict(f"{name} {state if state.startswith(NOT_LOADED) else 'was not found'}", install_command())
    for name in doctor_trials.AFTER_IMPORT:
        if isinstance(result := trials.results.get(name), dict) and "failed" in result:
            yield Conflict(f"the trial {name!r} failed: {result['failed']}", install_command())
    if isinstance(error := trials.results.get("build"), str) and error:
        first, *others = error.splitlines()
        remedies = [line.partition("what to do: ")[2] for line in others if "what to do: " in line]
        yield Conflict(f"a small kernel cannot be built: {first}", (*remedies, install_command())[0])


def _toolkit_conflicts(trials: Trials) -> Iterator[Conflict]:
    nvrtc, nvjitlink, driver = (_version(trials, name) for name in ("nvrtc", "nvJitLink", "driver"))
    if nvrtc and nvjitlink and nvrtc > nvjitlink:
        what = f"NVRTC {_dotted(nvrtc)} is newer than nvJitLink {_dotted(nvjitlink)}, which rejects its LTO-IR"
        package = f"nvidia-nvjitlink{'-cu12' if nvrtc[0] == 12 else ''}"
        fix = f"pip install '{package}=={_dotted(nvrtc)}.*'"
        yield Conflict(what, fix if version_of(package) != NOT_INSTALLED else "install both for one CUDA version")
    if driver and nvrtc and nvrtc[0] > driver[0]:
        what = f"the driver is for CUDA {_dotted(driver)}, the libraries are for CUDA {_dotted(nvrtc)}"
        yield Conflict(what, f"update the driver, or: pip install 'numba-cuda-autolink[cu{driver[0]}]'")
    headers = _version(trials, "headers")
    if nvrtc and headers and nvrtc[0] != headers[0]:
        where = trials.results.get("headers cudart")
        what = f"the headers in {where} are of CUDA {_dotted(headers)}, NVRTC is of CUDA {_dotted(nvrtc)}"
        yield Conflict(what, f"install the headers of CUDA {nvrtc[0]}, and unset CUDA_HOME: {install_command()}")


def _version(trials: Trials, name: str) -> tuple[int, ...]:
    """Return ``(major, minor)`` of what has this *name*; empty if it was not found."""
    result = trials.results.get(f"version {name}")
    return tuple(result) if isinstance(result, list) else ()


def _parse(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; empty if there are none."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", version)[0])))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
