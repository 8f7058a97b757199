# SPDX-License-Identifier: BSD-2-Clause
"""Why a front end cannot be imported, and what to do."""

from __future__ import annotations

import contextlib
import os
import shlex
import site
import sys
from collections.abc import Iterable, Iterator

from .hidden_modules import RENAME, find_hidden

_HOOK = "numba_cuda_autolink.import_hook"
_START = "numba_cuda_autolink.pth"
_DOCTOR = "numba-cuda-autolink doctor"


def explain(error: BaseException, package: str) -> str:
    """Return why a front end, the installed *package*, cannot be imported, the *error*, and what to do, in lines. Where
    neither the packages that it requires nor their files show why, `doctor` may."""
    said = f"{type(error).__name__}: {error}".partition("\n")[0]
    with contextlib.suppress(Exception):  # of packages so broken that nothing can be read of them
        for what, fix in _findings(error, package):
            return f"{what}\n  {said}\n  what to do: {fix}; {_DOCTOR} checks all packages"
    return f"{said}\n  what to do: {_DOCTOR} says what is missing or damaged"


def describe_unrun() -> tuple[str, str] | None:
    """Return that Python did not run the .pth files of the folder in which this project is, which let numba-cuda be
    found, and what to do; ``None`` if it did."""
    if any(getattr(each, "__module__", "") == _HOOK for each in sys.meta_path):
        return None
    started = () if sys.flags.no_site else (*site.getsitepackages(), site.getusersitepackages())
    run = {*map(os.path.realpath, started)}
    for folder in sys.path:
        if os.path.isfile(os.path.join(folder, _START)) and os.path.realpath(folder) not in run:
            what = f"Python did not run the .pth files of {folder}, with which it finds numba-cuda"
            python = os.path.normpath(os.path.join(folder, "..", "..", "..", "bin", "python"))
            if os.path.exists(python):
                return what, f"run {shlex.quote(python)}, of that environment"
            from .pip_commands import install_command

            return what, f"unset PYTHONPATH && {install_command()}"
    return None


def _findings(error: BaseException, package: str) -> Iterator[tuple[str, str]]:
    if hidden := find_hidden(error):  # perhaps one that the modules below import
        yield hidden
    if unrun := describe_unrun():
        yield unrun
    from .installed_packages import hiding_files, required_packages, unmet_requirements
    from .missing_parts import missing_library
    from .package_versions import NOT_INSTALLED, version_of
    from .pip_commands import install_command

    if missing := missing_library(str(error)):
        yield missing
    try:
        packages = required_packages(package)
    except ImportError:  # of packaging, which reads what they require
        packages = [package]
    for name, file in hiding_files(packages, sys.path):
        yield f"{file} hides the installed package {name!r}", RENAME
    for name in packages:
        if version_of(name) == NOT_INSTALLED:
            yield f"{name} is not installed", install_command()
    with contextlib.suppress(ImportError):
        yield from ((each.text, each.fix) for each in unmet_requirements() if each.name in packages)
    yield from _damage(packages)


def _damage(packages: Iterable[str]) -> Iterator[tuple[str, str]]:
    from .installed_packages import damaged_files, describe_damage
    from .pip_commands import reinstall_command

    for package in packages:
        if (damage := next(damaged_files(package), None)) is not None:
            yield describe_damage(package, damage), reinstall_command(package)


def add_note(error: BaseException, text: str) -> None:
    """Let Python print *text* after an *error*."""
    if sys.version_info >= (3, 11):
        error.add_note(text)
    elif isinstance(error, (ImportError, SyntaxError)):
        error.msg = f"{error.msg}\n{text}"
    elif error.args and str(error) == str(error.args[0]):
        error.args = (f"{error}\n{text}", *error.args[1:])
