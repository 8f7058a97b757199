# SPDX-License-Identifier: BSD-2-Clause
"""The command line, and what a shell needs to complete it (``completion``). The exit code is 0, 1 if a command fails or
finds a problem, or 2 if the command line is wrong."""

from __future__ import annotations

import argparse
import codecs
import io
import os
import pathlib
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numba_cuda_autolink

from . import build_command, cache_command, doctor_command, explain_command, job_commands
from .argument_parsing import CommandError, KernelName, Parser, Program, import_autolink, show_error

_COMMANDS = (explain_command, build_command, job_commands, cache_command, doctor_command)
_COMPILING = (explain_command.run, build_command.run, job_commands.capture, job_commands.prebuild)

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
    settings = sys.modules.get("numba.cuda.cudadrv.external_code.cache.settings")
    if settings is not None and issubclass(category, settings.CacheWarning):
        return f"{message}\n"
    return _format_any_warning(message, category, *place, **line)


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="numba-cuda-autolink",
        description="Explain and build what Numba-CUDA kernels link, manage the cache, and diagnose the installation.",
    )
    version = getattr(numba_cuda_autolink, "__version__", "of unknown version")  # without metadata
    made.add_argument("-V", "--version", action="version", version=f"%(prog)s {version}")
    commands = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_to(commands)
    _add_completion(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    used = parser()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments:
        used.print_help(sys.stderr)
        return 2
    if arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    if sys.stdout is None:
        show_error("standard output is closed")
        return 1
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_PLAIN)
    warnings.formatwarning = _format_warning
    try:
        options = used.parse_args(arguments)
        options.parser = used
        if os.environ.get("NUMBA_CUDA_AUTOLINK") == "0" and options.run in _COMPILING:
            raise CommandError("autolink is off: NUMBA_CUDA_AUTOLINK=0\n  what to do: unset it")
        if options.run not in _WITHOUT_NUMBA:
            import_autolink()
        code: int = options.run(options)
        sys.stdout.flush()
    except CommandError as error:
        show_error(str(error))
        return error.code
    except ImportError as error:
        if os.environ.get("NUMBA_CUDA_AUTOLINK_TRACEBACK") == "full":
            traceback.print_exc()
        show_error(f"{error}\n  what to do: numba-cuda-autolink doctor")
        return 1
    except OSError as error:
        if error.errno is None:
            show_error(str(error))
            return 1
        if not isinstance(error, BrokenPipeError):  # the reader of the output has closed it
            show_error(f"{error.filename or 'standard output'}: {error.strerror}")
        if error.filename is None:  # Python flushes standard output again as it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


_EXAMPLES = """examples:
  cd ~/.local/share/bash-completion/completions; numba-cuda-autolink completion bash > numba-cuda-autolink
  cd ~/.config/fish/completions; numba-cuda-autolink completion fish > numba-cuda-autolink.fish
  numba-cuda-autolink completion zsh > ~/.zfunc/_numba-cuda-autolink
  numba-cuda-autolink completion tcsh > ~/.numba-cuda-autolink.tcsh

For zsh, the folder is one of $fpath; for tcsh, ~/.tcshrc sources the file.
"""
_SHELLS = ("bash", "zsh", "fish", "tcsh")
# What completes the names of programs, and the function that bash needs for it.
_PROGRAMS = {"bash": "_numba_cuda_autolink_programs", "zsh": "_command_names -e", "tcsh": "c"}
_PROGRAMS["fish"] = "(__fish_complete_subcommand)"
_PROGRAMS_IN = {"bash": '_numba_cuda_autolink_programs() { compgen -c -- "$1"; }'}


def _add_completion(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        help="write a script that completes commands in a shell",
        description="Write the script that lets a shell complete this program's commands, options and files.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell")
    parser.set_defaults(run=_complete)


def _complete(options: argparse.Namespace) -> int:
    import shtab  # which other commands go without

    completers = {pathlib.Path: shtab.FILE, KernelName: shtab.FILE, Program: _PROGRAMS}
    for action in _arguments(options.parser):
        if action.type in completers:
            action.complete = completers[action.type]  # type: ignore[attr-defined]
    print(shtab.complete(options.parser, options.shell, preamble=_PROGRAMS_IN.get(options.shell, "")))
    return 0


_WITHOUT_NUMBA = (doctor_command.run, _complete)


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _arguments(command)
