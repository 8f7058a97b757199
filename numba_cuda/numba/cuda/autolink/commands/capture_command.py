# SPDX-License-Identifier: BSD-2-Clause
"""``capture``: runs an application and writes a list of the kernels that it compiles."""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any

from .argument_parsing import CommandError, check_folder

_EXAMPLES = """examples:
  numba-cuda-autolink capture -o jobs.json -- python app.py
  numba-cuda-autolink capture -o jobs.json -- pytest tests
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "capture",
        help="run an application, and list the kernels that it compiles",
        description="Run a command, and write a list of all kernels, signatures and compute capabilities that it and"
        " its child processes compile. The command prebuild builds them. The exit code is the command's own.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "-o", dest="out", metavar="JOBS.json", type=pathlib.Path, required=True, help="the list to write"
    )
    parser.add_argument("command", nargs=argparse.PARSER, metavar="COMMAND", help="what to run, with its arguments")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..many_kernels.job_list import VARIABLE, read_captured

    name, *arguments = options.command[options.command[0] == "--" :]
    if (program := shutil.which(name)) is None:
        hint = f"\n  what to do: run it as python {name}" if name.endswith(".py") else ""
        raise CommandError(f"{name}: there is no such program{hint}")
    check_folder(options.out)
    with tempfile.TemporaryDirectory(prefix="numba-cuda-autolink-capture-") as folder:
        code = subprocess.run([program, *arguments], env={**os.environ, VARIABLE: folder}).returncode
        jobs = read_captured(folder)
    code = code if code >= 0 else 128 - code
    if not jobs.jobs:
        raise CommandError(f"{name} compiled no kernels: {options.out} is not written", code or 1)
    jobs.write(options.out)
    print(f"{options.out}: {len(jobs.jobs)} job{'s'[: len(jobs.jobs) != 1]}")
    return code
