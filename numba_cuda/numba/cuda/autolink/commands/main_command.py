# SPDX-License-Identifier: BSD-2-Clause
"""The command line. The exit code is 0, 1 if a command fails or finds a problem, or 2 if the command line is wrong."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from . import (
    build_command,
    cache_command,
    capture_command,
    doctor_command,
    explain_command,
    prebuild_command,
)
from .argument_parsing import CommandError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="numba-cuda-autolink",
        description="Explain and build what Numba-CUDA kernels link, manage the cache, and diagnose the installation.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (
        *(explain_command, build_command, capture_command, prebuild_command),
        *(cache_command, doctor_command),
    ):
        command.add_to(commands)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (CommandError, OSError) as error:
        print(f"numba-cuda-autolink: {error}", file=sys.stderr)
        return error.code if isinstance(error, CommandError) else 1
    return code
