# SPDX-License-Identifier: BSD-2-Clause
"""``doctor``: prints what is installed, where libraries were found, and what is wrong.

It works where packages are missing or broken: this process reads their metadata (`doctor.installation`), another one
tries them (`doctor.trial_runs`), and `doctor.findings` says what is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import sysconfig
import textwrap
from typing import Any

from ..doctor.finding import Finding
from ..doctor.findings import find
from ..doctor.installation import read_installation
from ..doctor.trial_runs import run_trials
from ..printable_texts import number_of

FORMAT = 1  # of the JSON


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
    installation, trials = read_installation(), run_trials()
    installed = installation.versions
    found, remarked = find(installation, trials)
    python = {
        "version": platform.python_version(),
        "prefix": sys.prefix,
        "system": f"{platform.system()} {platform.machine()}",
    }
    libraries, state = trials.parts(), trials.state()
    if options.json:
        diagnosis = {
            "format": FORMAT,
            "python": python,
            "packages": installed,
            "cuda_libraries": libraries,
            "numba_cuda": state,
            "conflicts": list(map(_describe, found)),
            "remarks": list(map(_describe, remarked)),
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


def _describe(finding: Finding) -> dict[str, Any]:
    return {"what": finding.what, "fix": finding.fix, "consequences": finding.consequences}


def _print_findings(title: str, findings: list[Finding]) -> None:
    print(title)
    for fix in dict.fromkeys(finding.fix for finding in findings):
        for each in (finding for finding in findings if finding.fix == fix):
            lines = _wrap(f"  {each.what}", 4), *(_wrap(f"    consequence: {one}", 6) for one in each.consequences)
            print(*lines, sep="\n")
        print(f"    fix: {fix}")


def _wrap(line: str, indent: int) -> str:
    """Return *line* in lines that the terminal has room for. Commands, which are copied, are not wrapped."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    if len(line) <= width or width <= indent:
        return line
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False, "drop_whitespace": False}
    return "\n".join(textwrap.wrap(line, width, subsequent_indent=" " * indent, **options))
