# SPDX-License-Identifier: BSD-2-Clause
"""``completion``: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

_EXAMPLES = """examples:
  cd ~/.local/share/bash-completion/completions; numba-cuda-autolink completion bash > numba-cuda-autolink
  cd ~/.config/fish/completions; numba-cuda-autolink completion fish > numba-cuda-autolink.fish
  numba-cuda-autolink completion zsh > ~/.zfunc/_numba-cuda-autolink
  numba-cuda-autolink completion tcsh > ~/.numba-cuda-autolink.tcsh

For zsh, the folder is one of $fpath; for tcsh, ~/.tcshrc sources the file.
"""
_SHELLS = ("bash", "zsh", "fish", "tcsh")
_FILES = ("FILE", "OUT")  # how the metavars of arguments that are files begin


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        help="write a script that completes commands in a shell",
        description="Write the script that lets a shell complete this program's commands, options and files.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    import shtab  # which other commands go without

    for action in _arguments(options.parser):
        if isinstance(action.metavar, str) and action.metavar.startswith(_FILES):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(options.parser, options.shell))
    return 0


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _arguments(command)
