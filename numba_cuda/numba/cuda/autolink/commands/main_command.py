# SPDX-License-Identifier: BSD-2-Clause
"""The command line. The exit code is 0, 1 if a command fails or finds a problem, or 2 if the command line is wrong."""

from __future__ import annotations

import argparse
import codecs
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numba_cuda_autolink

from . import (
    build_command,
    cache_command,
    capture_command,
    completion_command,
    doctor_command,
    explain_command,
    prebuild_command,
)
from .argument_parsing import CommandError, Parser, show_error

_COMMANDS = (
    explain_command,
    build_command,
    capture_command,
    prebuild_command,
    cache_command,
    doctor_command,
    completion_command,
)


_COMPILING = (explain_command.run, build_command.run, capture_command.run, prebuild_command.run)

# What terminals without Unicode show.
_PLAIN = "numba_cuda_autolink.plain"
_PLAIN_LETTERS = {"µ": "u", "→": "->", "…": "..."}


def _in_plain_letters(error: Any) -> tuple[str, int]:
    unknown = error.object[error.start : error.end]
    return "".join(_PLAIN_LETTERS.get(letter, "?") for letter in unknown), error.end


codecs.register_error(_PLAIN, _in_plain_letters)


_format_any_warning = warnings.formatwarning


def _format_warning(message: Any, category: type[Warning], *place: Any, **line: Any) -> str:
    """Return a warning as text: of the cache, without the line of Python."""
    from numba.cuda.cudadrv.external_code.cache.settings import CacheWarning

    if issubclass(category, CacheWarning):
        return f"{message}\n"
    return _format_any_warning(message, category, *place, **line)


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="numba-cuda-autolink",
        description="Explain and build what Numba-CUDA kernels link, manage the cache, and diagnose the installation.",
    )
    made.add_argument("--version", action="version", version=f"%(prog)s {numba_cuda_autolink.__version__}")
    commands = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_to(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    used = parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        used.print_help(sys.stderr)
        return 2
    if sys.stdout is None:
        show_error("standard output is closed")
        return 1
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_PLAIN)
    warnings.formatwarning = _format_warning
    options = used.parse_args(arguments)
    options.parser = used
    if os.environ.get("NUMBA_CUDA_AUTOLINK") == "0" and options.run in _COMPILING:
        show_error("autolink is off: NUMBA_CUDA_AUTOLINK=0\n  what to do: unset it")
        return 1
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except CommandError as error:
        show_error(str(error))
        return error.code
    except OSError as error:
        show_error(f"{error.filename or 'standard output'}: {error.strerror}")
        return 1
    return code
