# SPDX-License-Identifier: BSD-2-Clause
"""What ``doctor`` finds: faults, what each prevents, and how to fix it.

A failed trial is a consequence of a fault if the fault is about what the trial needs, and else a fault of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ..failed_imports import describe_unrun
from ..missing_parts import HEADERS, LIBRARIES, OPTIONAL, is_optional, missing_library
from ..package_versions import NOT_INSTALLED
from ..pip_commands import install_command, reinstall_command
from .finding import DRIVER, VARIABLES, Finding
from .installation import OURS, Installation
from .package_faults import hidden_python, package_faults, package_suspects
from .setting_faults import setting_faults, setting_remarks
from .toolkit_faults import toolkit_faults, toolkit_suspects, unused_packages
from .trial_runs import AFTER_IMPORT, IMPORTED, PARTS, START, Trials
from .trial_script import NOT_FOUND, NOT_LOADED

_CALLED = {
    **{f"library {name}": called for name, called in LIBRARIES.items()},
    **{f"headers {name}": f"the headers of {headers.what}" for name, headers in HEADERS.items()},
}
_TRIED = {
    **{f"version {name} headers": f"reading the headers of {headers.what}" for name, headers in HEADERS.items()},
    "driver": "loading the driver",
    "state": "asking numba-cuda what it uses",
    "settings": "reading the environment variables of Numba",
    "cache": "checking the cache",
    "build": "building a small kernel",
}
_OPTIONAL_PARTS = {f"library {name}" for name in OPTIONAL}


class Findings(NamedTuple):
    """*conflicts* are what is wrong; *remarks* are about what no kernel needs, and what may be as the user wants it."""

    conflicts: list[Finding]
    remarks: list[Finding]


class _Failure(NamedTuple):
    """What a trial failed with, as a *finding* for where no other explains it, and what the trial *needs* of what a
    fault is about. A failure that *is_harmless* prevents no kernel."""

    finding: Finding
    needs: frozenset[str] = frozenset()
    is_harmless: bool = False


def find(installation: Installation, trials: Trials) -> Findings:
    """Return what is wrong with an *installation*, with the environment, and with what the *trials* tried."""
    if unrun := describe_unrun():
        return Findings([Finding(*unrun)], [])  # from which all others follow
    faults = [*package_faults(installation, trials), *setting_faults(trials), *toolkit_faults(trials)]
    suspects = [*package_suspects(installation)]
    remarks: list[Finding] = []
    (remarks if trials.builds() else faults).extend(toolkit_suspects(trials))
    for failure in _failures(installation, trials):
        if (cause := _cause_of(failure, faults)) is None:
            blamed = [each for each in suspects if each.about & failure.needs]
            if failure.is_harmless:
                remarks += [] if blamed else [failure.finding]
                continue
            faults += blamed or [failure.finding]
            suspects = [each for each in suspects if each not in blamed]
            cause = blamed[0] if blamed else None
        if cause is not None and not _says_the_same(failure, cause):
            known = replace(cause, consequences=(*cause.consequences, failure.finding.what))
            faults[faults.index(cause)] = known
    faults.sort(key=lambda fault: not fault.consequences)
    remarks += [
        *setting_remarks(trials),
        *hidden_python(installation, trials, is_needed=False),
        *unused_packages(trials),
    ]
    return Findings(faults, [*suspects, *remarks])


def _says_the_same(failure: _Failure, fault: Finding) -> bool:
    return any(sign in failure.finding.what for sign in fault.signs)


def _cause_of(failure: _Failure, faults: list[Finding]) -> Finding | None:
    """Return which fault the *failure* is a consequence of: one that it names; or one that is about what it needs, and
    of these variables, without which there is no failure, before parts of the toolkit, before packages."""
    if named := [fault for fault in faults if _says_the_same(failure, fault)]:
        return named[0]
    causes = [fault for fault in faults if fault.about & failure.needs]
    return min(causes, key=_rank, default=None)


def _rank(fault: Finding) -> tuple[bool, ...]:
    return VARIABLES not in fault.about, fault.about.isdisjoint(PARTS), not fault.consequences


def _failures(installation: Installation, trials: Trials) -> Iterator[_Failure]:
    """Yield what the trials failed with, in their order."""
    kernels = _needed_by_kernels(installation)
    if end := trials.ended.get(START):
        yield _Failure(Finding(f"Python does not start to try anything: {end.how}", "correct what that line is about"))
    for name in PARTS:
        if isinstance(state := trials.results.get(name), str) and state.startswith((NOT_FOUND, NOT_LOADED)):
            yield _missing_part(name, state, trials)
    for name, end in trials.ended.items():
        kind, _, what = name.partition(" ")
        if kind == "version" or name == START:  # the version of a library, which is tried itself
            continue
        tried = {"library": f"loading {what}", "import": f"importing {what}"}.get(kind) or _TRIED.get(
            name, f"looking for {_CALLED.get(name, name)}"
        )
        told = f"{tried} {'did not end' if end.was_killed else 'ended Python'}: {end.how}"
        fix = reinstall_command(IMPORTED[what]) if kind == "import" else install_command()
        needs = _needed_by_import(what, installation, kernels) if kind == "import" else kernels
        yield _Failure(Finding(told, fix, frozenset({name})), frozenset({name}) if name in PARTS else needs)
    if failed := trials.failed_import():
        module, why = failed
        package = IMPORTED[module]
        if installation.versions.get(package) != NOT_INSTALLED:
            _, fix = missing_library(why) or ("", reinstall_command(package))
            told = f"{module} cannot be imported: {why}"
            yield _Failure(Finding(told, fix), _needed_by_import(module, installation, kernels))
    for name in AFTER_IMPORT:
        if isinstance(result := trials.results.get(name), dict) and "failed" in result:
            yield _Failure(Finding(f"{_TRIED[name]} failed: {result['failed']}", install_command()), kernels)
    if isinstance(error := trials.results.get("build"), str) and error:
        first, *others = error.splitlines()
        remedies = [line.partition("what to do: ")[2] for line in others if "what to do: " in line]
        fix = (*remedies, install_command())[0]
        yield _Failure(Finding(f"a small kernel cannot be built: {first}", fix), kernels)


def _missing_part(name: str, state: str, trials: Trials) -> _Failure:
    """Return that a part of the toolkit was not found, or cannot be loaded, as its *state* says."""
    why = state if state.startswith(NOT_LOADED) else f"{'were' if name.startswith('headers') else 'was'} not found"
    what = f"{_CALLED.get(name, name)} {why}"
    if name in _OPTIONAL_PARTS and state == NOT_FOUND:
        what += ", with which the command build puts kernels for several GPUs into one file"
    is_harmless = trials.builds() or name in _OPTIONAL_PARTS
    return _Failure(Finding(what, install_command(), frozenset({name})), frozenset({name, VARIABLES}), is_harmless)


def _needed_by_kernels(installation: Installation) -> frozenset[str]:
    toolkit = {name for name in installation.damaged if name.startswith("nvidia-") and not is_optional(name)}
    return installation.needed_by(OURS) | toolkit | set(PARTS) - _OPTIONAL_PARTS | {"numba-cuda", DRIVER, VARIABLES}


def _needed_by_import(module: str, installation: Installation, kernels: frozenset[str]) -> frozenset[str]:
    """Return what an import needs; those of numba-cuda and of this project need what kernels do."""
    if module.startswith("numba.cuda."):
        return kernels
    return installation.needed_by(IMPORTED[module]) | {module.partition(".")[0]}
