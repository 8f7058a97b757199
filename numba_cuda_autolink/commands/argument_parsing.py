# SPDX-License-Identifier: BSD-2-Clause
"""Signatures and compute capabilities on the command line, the errors of commands, and where a command writes: to a
file, or to standard output, which then has nothing else."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import pathlib
import re
import shlex
import sys
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NewType, NoReturn

from ..files import replace_whole
from ..printable_texts import did_you_mean
from ..short_tracebacks import first_lines

if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability

OUTPUTS = ("cubin", "ptx", "ltoir", "fatbin", "kernels")
# Types of arguments, by which shells complete them; other files are a `pathlib.Path`.
KernelName = NewType("KernelName", str)
Program = NewType("Program", str)
_SIGNATURE_EXAMPLE = "'void(float32[::1], int32)'"


class CommandError(Exception):
    """A message for the user, and the exit code: 2 for an error in the command line itself, else 1."""

    def __init__(self, message: str, code: int = 1):
        self.code = code
        super().__init__(message)


def import_autolink() -> None:
    """Import the rest of this project, and Numba with it. Raise `CommandError` if that fails."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "numba-cuda-autolink is not active")  # the error below says why
            import numba.cuda.autolink  # noqa: F401
    except Exception as error:
        if os.environ.get("NUMBA_CUDA_AUTOLINK_TRACEBACK") == "full":
            traceback.print_exc()
        reason, *_ = str(error).partition("\n  what to do: ")
        raise CommandError(
            f"numba.cuda cannot be imported: {type(error).__name__}: {reason}\n  what to do: numba-cuda-autolink doctor"
        ) from error


def show_error(message: str, program: str = "numba-cuda-autolink") -> None:
    """Write a *message* to stderr; on a terminal its first line, the diagnosis, is red."""
    first, *others = f"{program}: {message}".split("\n")
    if sys.stderr is not None and sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        first = f"\x1b[1;31m{first}\x1b[0m"
    print("\n".join([first, *others]), file=sys.stderr)


class Parser(argparse.ArgumentParser):
    """A parser whose errors begin with what is wrong, not with the usage, and whose examples keep their lines. Its
    ``instead`` is what to do instead of giving it a path too, with ``{}`` for that; ``takes_none`` what to do instead
    of giving it another argument."""

    instead = takes_none = ""

    def __init__(self, **options: Any):
        super().__init__(formatter_class=_Formatter, **options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse *args*; what a command does not know is an error of that command."""
        self._given = sys.argv[1:] if args is None else list(args)
        if self._runs_another and (wrong := self._unknown_options()):  # argparse would say that a command is missing
            self.error(f"unrecognized arguments: {' '.join(wrong)}")
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the help or the version. Raises `OSError`, which argparse ignores."""
        print(message, end="", file=file, flush=True)

    def error(self, message: str) -> NoReturn:
        """Print *message*, what may be meant, and where the arguments are explained, and exit with 2."""
        choices, remedy = "", f"{self.prog} --help lists the arguments"
        if message.startswith("the following arguments are required") and (unknown := self._unknown_options()):
            message = f"unrecognized arguments: {' '.join(unknown)}"
        elif message.startswith("the following arguments are required"):
            for each in (each for each in self._actions if each.required and each.option_strings):
                message = message.replace(each.option_strings[0], f"{each.option_strings[0]} {each.metavar}")
        if wrong := re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message):
            names = [each for each in self._names() if not each.startswith("-")]
            message = f"argument {wrong[1]}: invalid choice: {wrong[2]!r}{did_you_mean(wrong[2], names)}"
            choices, remedy = f"  choose from: {wrong[3]}\n".replace("'", ""), self.takes_none or remedy
        elif wrong := re.match(r"unrecognized arguments: (-[^\s=]*)", message):
            message += did_you_mean(wrong[1], [each for each in self._names() if each.startswith("--")])
            options = ["/".join(each.option_strings) for each in self._actions if each.option_strings]
            choices = f"  options: {', '.join(options)}\n"
        elif (wrong := re.match(r"unrecognized arguments: (.*[(\[].*)", message)) and "--sig" in self._names():
            remedy = f"write the signature after --sig: --sig {shlex.quote(wrong[1])}"
        elif self.instead and message.startswith("unrecognized arguments: "):
            given = message.partition(": ")[2]
            is_path = os.path.exists(given) or os.sep in given
            remedy = self.instead.format(given) if is_path else self.takes_none or remedy
        if self._subparsers is not None and not choices.startswith("  choose from: "):
            commands = [name for each in self._actions if not each.option_strings for name in each.choices or ()]
            choices += f"  commands: {', '.join(commands)}\n"
        show_error(f"{message}\n{choices}  what to do: {remedy}", self.prog)
        self.exit(2)

    @property
    def _runs_another(self) -> bool:
        """Whether another command follows, whose options are its own."""
        return any(each.nargs == argparse.PARSER for each in self._actions)

    def _unknown_options(self) -> list[str]:
        given = itertools.takewhile(lambda each: each != "--", self._given)
        if self._runs_another:
            given = itertools.takewhile(lambda each: each.startswith("-"), given)
        options = [each for each in given if each.startswith("-") and each != "-"]
        return [each for each in options if not self._is_known(each)]

    def _is_known(self, option: str) -> bool:
        if option.startswith("--"):
            return bool(self._get_option_tuples(option))
        return option[:2] in self._option_string_actions

    def _names(self) -> list[str]:
        return [
            name for each in self._actions for name in (*each.option_strings, *(each.choices or ())) if len(name) > 2
        ]


class _Formatter(argparse.HelpFormatter):
    """Fills descriptions to the terminal's width, and continues examples as a shell does."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if not text.startswith("examples:"):
            return super()._fill_text(text, width, indent)
        examples, _, more = text.partition("\n\n")
        lines = [" \\\n".join(_broken(line, width - 2)) for line in examples.splitlines()]
        return "\n".join([*lines, "", super()._fill_text(more, width, indent)]).rstrip()

    def _format_usage(self, *args: Any) -> str:
        lines = super()._format_usage(*args).splitlines()
        return "\n".join("\n".join(_broken(line, self._width)) for line in lines) + "\n\n"


def _broken(line: str, width: int) -> list[str]:
    """Return *line* in parts that have at most *width* columns, where its words allow that."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": indent}
    return textwrap.wrap(line, max(width, 1), **options) if len(line) > width else [line]


def add_kernel(parser: argparse.ArgumentParser, *, listed: bool = False) -> None:
    """Add the arguments for a kernel and what to build it for. With *listed*, a file alone may be named, and device
    functions; without a compute capability, the GPU's is meant."""
    parser.add_argument(
        "kernel",
        type=KernelName,
        metavar="FILE.py[:KERNEL]" if listed else "FILE.py:KERNEL",
        help="a Python file, and a @cuda.jit kernel or Python function in it; a.b is an attribute of a"
        + ("; the file alone lists its kernels" if listed else ""),
    )
    parser.add_argument(
        "--sig",
        metavar="SIGNATURE",
        action=_Once,
        help=f"types of its arguments, as cuda.jit takes them: {_SIGNATURE_EXAMPLE} (default: that of its decorator)",
    )
    add_capabilities(parser, " (default: the GPU's)" if listed else "", required=not listed)


def add_capabilities(parser: argparse.ArgumentParser, default: str = "", *, required: bool = False) -> None:
    """Add the option ``--cc``; the help text ends with the *default*."""
    parser.add_argument(
        "--cc",
        type=compute_capabilities,
        action=_Extend,
        required=required,
        metavar="9.0[,10.0]",
        help=f"compute capabilities{default}",
    )


class _Extend(argparse.Action):
    """An option with a list that may be given again, for more."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, list(dict.fromkeys([*(getattr(namespace, self.dest) or ()), *values])))


class _Once(argparse.Action):
    """An option that is given once: a second one is an error, where argparse would forget the first."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"argument {option_string}: given twice; one call builds one signature")
        setattr(namespace, self.dest, values)


def compute_capabilities(text: str) -> list[ComputeCapability]:
    """Return the compute capabilities that *text* names, separated by commas, for `argparse`."""
    import_autolink()
    from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability

    found = []
    for part in text.split(","):
        try:
            found.append(ComputeCapability.parse(part))
        except ValueError:
            meant = f"; did you mean {part}.0?" if part.isdecimal() and len(part) < 3 else ""
            expected = "9.0, 9.0a or sm_90; several: 8.0,9.0,10.0"
            raise argparse.ArgumentTypeError(
                f"{part!r} is not a compute capability, such as {expected}{meant}"
            ) from None
    return found


def check_known(capabilities: list[ComputeCapability]) -> None:
    """Raise `CommandError` unless the CUDA toolkit knows all *capabilities*. Without NVRTC, which building reports,
    nothing is known."""
    from numba.cuda.autolink.compilation.context import instead_of_unknown
    from numba.cuda.cudadrv import nvrtc
    from numba.cuda.cudadrv.external_code.platform.cuda_libraries import why_missing

    if why_missing("NVRTC"):
        return
    known = nvrtc.get_supported_ccs()
    for capability in capabilities:
        if capability.base not in known:
            instead = instead_of_unknown(capability, known)
            raise CommandError(
                f"--cc {capability}: this CUDA toolkit does not know that compute capability{instead}", 2
            )


def check_signature(text: str, function: Any, may_return: bool) -> tuple[Any, ...]:
    """Return the types of the arguments in *text*, a signature. Raise `CommandError` unless it is one for the Python
    *function* as a kernel; as a device function it *may_return* values."""
    from numba.cuda.autolink.protocol.kernel_signatures import check_count, kernel_argument_types, normalize

    try:
        if not may_return:
            return kernel_argument_types(text, function)
        argtypes, _ = normalize(text)
        check_count(argtypes, function)
        return argtypes
    except ValueError as error:
        raise CommandError(f"--sig {error}", 2) from error
    except TypeError as error:
        raise CommandError(f"--sig {text!r}: {error}", 2) from error


@contextlib.contextmanager
def explained_errors() -> Iterator[None]:
    """Turn the errors of compiling and linking into a `CommandError` with the whole message and no traceback."""
    from numba.cuda.autolink.frontend_api.placed_messages import placed_error

    try:
        yield
    except (CommandError, ImportError, MemoryError):
        raise
    except Exception as error:
        # Messages of several lines name the place in the kernel; other messages need the type of the error.
        text = first_lines(placed_error(error) or str(error))
        raise CommandError(text if "\n" in text else f"{type(error).__name__}: {text}") from error


STANDARD_OUTPUT = pathlib.Path("-")


def check_suffix(path: pathlib.Path, output: str) -> None:
    """Raise `CommandError` if the suffix of *path*, given with ``-o``, says that it has another *output*."""
    suffix = path.suffix.lstrip(".")
    if suffix in OUTPUTS and suffix != output:
        raise CommandError(f"-o {path}: {output} is written there\n  what to do: use the suffix .{output}", 2)


_SOURCES = (".py", ".ipynb", ".cu", ".cuh", ".cpp", ".cxx", ".cc")


def check_folder(path: pathlib.Path) -> None:
    """Raise `CommandError` if *path* is a folder or a source, or is in a folder that does not exist: before anything is
    built."""
    if path == STANDARD_OUTPUT:
        return
    if path.is_dir():
        raise CommandError(f"{path} is a folder\n  what to do: name a file in it")
    if path.suffix in _SOURCES and path.exists():
        raise CommandError(f"{path} is a source, which the output would replace\n  what to do: name another file")
    if path.parent.exists() and not path.parent.is_dir():
        raise CommandError(f"{path}: {path.parent} is a file, not a folder\n  what to do: name a file in a folder")
    if not path.parent.is_dir():
        raise CommandError(f"{path}: there is no folder {path.parent}\n  what to do: mkdir -p {path.parent}")


def write(path: pathlib.Path, content: bytes) -> None:
    """Write *content* to the file *path*, or to standard output. Raises `OSError`, which names the file."""
    if path == STANDARD_OUTPUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    with replace_whole(path) as file:
        file.write(content)


@contextlib.contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Send what is printed inside the ``with`` block to standard error: users' files and libraries may print, also past
    Python, and the result is all that standard output has."""
    sys.stdout.flush()
    saved = None
    with contextlib.suppress(OSError):  # there is no standard output
        saved = os.dup(1)
        os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if saved is not None:
            os.dup2(saved, 1)
            os.close(saved)
