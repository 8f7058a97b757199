# SPDX-License-Identifier: BSD-2-Clause
"""What is wrong with installed packages and their files."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator

from ..hidden_modules import RENAME, describe_hidden
from ..installed_packages import describe_damage
from ..missing_parts import HEADERS, LIBRARIES, is_optional
from ..package_versions import NOT_INSTALLED, parse_version, version_of
from ..pip_commands import install_command, install_version, reinstall_command
from ..printable_texts import number_of
from .finding import Finding
from .installation import OURS, Installation
from .trial_runs import START, Trials


def package_faults(installation: Installation, trials: Trials) -> Iterator[Finding]:
    """Yield what is wrong, whatever the trials failed with."""
    hidden = installation.hidden_copies
    unmet = _unmet(installation)
    yield from (fault for name, fault in unmet.items() if name not in hidden)
    yield from (_hidden_copy(name, installation) for name in hidden if _is_faulty(name, installation, unmet))
    yield from _damage(
        {name: files for name, files in installation.damaged.items() if not (is_optional(name) or name in hidden)}
    )
    yield from hidden_python(installation, trials, is_needed=True)
    for name, file in installation.hiding.items():
        about = frozenset({name, name.replace("_", "-")})
        yield Finding(f"{file} hides the installed package {name!r}", RENAME, about)


def package_suspects(installation: Installation) -> Iterator[Finding]:
    """Yield what is as it should not be, and wrong if a trial fails that nothing else explains."""
    unmet = _unmet(installation)
    for name in installation.hidden_copies:
        if not _is_faulty(name, installation, unmet):
            yield _hidden_copy(name, installation)
    for name, folder in installation.stale:
        what = f"{name} {version_of(name)} is installed, and older metadata are left: {folder}"
        yield Finding(what, f"rm -r {shlex.quote(folder)}", frozenset({name}))
    known = {*installation.hidden_copies, *installation.damaged}
    yield from _damage({name: files for name, files in installation.edited.items() if name not in known})
    yield from _damage({name: files for name, files in installation.damaged.items() if is_optional(name)})


def hidden_python(installation: Installation, trials: Trials, *, is_needed: bool) -> Iterator[Finding]:
    """Yield the files that programs of this folder import in place of modules of Python: of those that kernels need or
    an error names, or of others."""
    needed = _needed_modules(trials)
    for name, file in installation.hiding_python.items():
        if (name in needed) == is_needed:
            yield Finding(*describe_hidden(name, file), signs=(file, repr(name)))


def _needed_modules(trials: Trials) -> set[str]:
    """Return the modules of Python that the trials have imported, or that an error of theirs names."""
    texts = [trials.ended[START].how] if START in trials.ended else []
    texts += [failed[1]] if (failed := trials.failed_import()) else []
    named = (name for name in sys.stdlib_module_names if any(repr(name) in text for text in texts))
    return {*trials.results.get("modules", ()), *named}


def _unmet(installation: Installation) -> dict[str, Finding]:
    """Return the packages that are missing, or whose versions do not fit."""
    found = {}
    versions = installation.versions
    if versions.get(OURS) == NOT_INSTALLED:
        what = f"the metadata of {OURS} are missing: no folder {OURS.replace('-', '_')}-*.dist-info is on Python's path"
        found[OURS] = Finding(what, f"install {OURS} again, from its checkout or its wheel")
    missing = [name for name, version in versions.items() if version == NOT_INSTALLED and name != OURS]
    for name in missing:
        signs = (f"No module named {name.replace('-', '_')!r}",)
        found[name] = Finding(f"{name} is not installed", install_command(), frozenset({name}), signs)
    for each in installation.unmet:
        found.setdefault(each.name, Finding(each.text, each.fix, frozenset({each.name})))
    numba_cuda, numba = (parse_version(versions.get(name, "")) for name in ("numba-cuda", "numba"))
    if numba >= (0, 66) and (0, 30, 2) <= numba_cuda < (0, 30, 4):  # older ones are conflicts already
        what = f"Numba {versions['numba']} with numba-cuda {versions['numba-cuda']}, which needs an older one"
        found["numba-cuda"] = Finding(what, install_version("numba-cuda>=0.30.4"), frozenset({"numba-cuda"}))
    return found


def _is_faulty(package: str, installation: Installation, unmet: Iterable[str]) -> bool:
    return package in {*unmet, *installation.damaged, *installation.edited}


def _hidden_copy(package: str, installation: Installation) -> Finding:
    """Return that *package* is installed twice, and Python finds the copy in a folder of PYTHONPATH."""
    copy = installation.hidden_copies[package]
    what = f"{package} {version_of(package)} in {copy.folder} hides {package} {copy.version} in {copy.other}"
    return Finding(what, f"take {copy.folder} out of PYTHONPATH", frozenset({package}))


def _damage(damaged: dict[str, tuple[str, ...]]) -> Iterator[Finding]:
    """Yield the *damaged* packages, with their files."""
    fix = reinstall_command(*damaged)
    for name, files in damaged.items():
        more = f", and {number_of(len(files) - 1, 'more file')}" if len(files) > 1 else ""
        names = [file.partition(" ")[0] for file in files]
        about = frozenset({name, *(part for each in names for part in _parts_in(each))})
        signs = (*files, *(each for each in names if "/" in each))
        yield Finding(describe_damage(name, files[0]) + more, fix, about, signs)


def _parts_in(file: str) -> Iterator[str]:
    """Yield the parts of the toolkit that are not found, or cannot be loaded, without a *file*."""
    base = os.path.basename(file)
    yield from (f"library {name}" for name in LIBRARIES if base.startswith(f"lib{name}.so"))
    yield from (f"headers {name}" for name, headers in HEADERS.items() if file.endswith(f"/{headers.always}"))
    if base.startswith("libdevice."):
        yield "libdevice"
