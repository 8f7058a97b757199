# SPDX-License-Identifier: BSD-2-Clause
"""Generate the page of the command line, command_line.md, from the parsers of the commands.

python docs/commands.py            # write docs/command_line.md
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from pathlib import Path

from numba_cuda_autolink.commands.main_command import parser

PAGE = Path(__file__).resolve().parent / "command_line.md"

_INTRODUCTION = """\
# Command line

The program is `numba-cuda-autolink`; `python -m numba_cuda_autolink` and `python -m numba.cuda.autolink` are the same.
This page is generated from its parsers (`python docs/commands.py`). Each command prints the same with `--help`.

The exit code is 0, 1 if a command fails or finds a problem, 2 if the command line is wrong, 4 if `prebuild` could not
write all to the shared cache, and 130 after Ctrl-C, which ends a command and its compilers at once. Results go to
standard output; messages, and what your own files print while they are imported, go to standard error.

"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


def page() -> str:
    """Return the page as Markdown."""
    program = parser()
    return _INTRODUCTION + "\n".join(_sections(program, 2))


def _sections(program: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """Yield a section for each command of *program*, and for each action of a command."""
    for action in program._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _section(command, level)
                yield from _sections(command, level + 1)
        elif level == 2 and isinstance(action, argparse._VersionAction):
            yield f"`{program.prog} --version` prints the version.\n"


def _section(command: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * level} `{command.prog}`\n"
    yield f"{_fill(command.description or '')}\n"
    shown = [each for each in command._actions if not isinstance(each, _LEFT_OUT)]
    options = [name for each in shown for name in each.option_strings if name.startswith("--")]
    yield f"```{{index}} ! {', ! '.join([command.prog, *options])}\n```\n"
    if rows := list(map(_row, shown)):
        yield "\n".join(["| Argument | Meaning |", "|---|---|", *rows, ""])
    if command.epilog:
        # The examples are commands, in lines of their own; what follows them is text.
        examples, _, rest = command.epilog.strip().partition("\n\n")
        lines = textwrap.dedent("\n".join(examples.splitlines()[1:]))
        yield f"```text\n{lines}\n```\n"
        if rest:
            yield f"{_fill(rest)}\n"


_LEFT_OUT = (argparse._HelpAction, argparse._SubParsersAction)


def _row(action: argparse.Action) -> str:
    values = "{" + ",".join(action.choices) + "}" if action.choices else action.dest.upper()
    value = "" if action.nargs == 0 else str(action.metavar or values)
    if not action.option_strings:
        name = f"`{value}`" + (" (optional)" if action.nargs == "?" else "")
    else:
        name = ", ".join(f"`{f'{option} {value}'.strip()}`" for option in action.option_strings)
    required = " (required)" if action.option_strings and action.required else ""
    meaning = (action.help or "").replace("%(default)s", str(action.default)).replace("|", "\\|")
    return f"| {name}{required} | {meaning} |"


def _fill(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 118, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    main()
