# SPDX-License-Identifier: BSD-2-Clause
"""Kernels, signatures and compute capabilities on the command line."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib.util
import operator
import pathlib
import sys
import traceback
from collections.abc import Iterator
from typing import Any

from numba.cuda.cudadrv.external_code.target import ComputeCapability


class CommandError(Exception):
    """A message for the user, and the exit code: 2 for an error in the command line itself, else 1."""

    def __init__(self, message: str, code: int = 1):
        self.code = code
        super().__init__(message)


def add_kernel(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the arguments for a kernel and what to build it for; the latter may be *required*."""
    parser.add_argument(
        "kernel",
        metavar="FILE.py:KERNEL",
        help="a Python file, and a @cuda.jit kernel or Python function in it; a.b is an attribute of a",
    )
    parser.add_argument(
        "--sig",
        metavar="SIGNATURE",
        action=_Once,
        required=required,
        help="the types of its arguments, as cuda.jit takes them: 'void(float32[::1], int32)'",
    )
    parser.add_argument(
        "--cc",
        type=compute_capabilities,
        required=required,
        metavar="9.0[,10.0]",
        help="compute capabilities" + ("" if required else " (default: the GPU's)"),
    )


class _Once(argparse.Action):
    """An option that is given once: a second one is an error, where argparse would forget the first."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"argument {option_string}: given twice; one call builds one signature")
        setattr(namespace, self.dest, values)


def compute_capabilities(text: str) -> list[ComputeCapability]:
    """Return the compute capabilities that *text* names, separated by commas, for `argparse`."""
    try:
        return list(map(ComputeCapability.parse, text.split(",")))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; several: 8.0,9.0,10.0") from None


def load(text: str) -> Any:
    """Return the object that FILE.py:KERNEL names. The file runs as a module, with its directory first in ``sys.path``.
    Raise `CommandError` if there is no such file or object, or the file raises an exception."""
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise CommandError(f"{text!r} does not name a kernel: write FILE.py:KERNEL", 2)
    file = pathlib.Path(path).absolute()
    if not file.is_file():
        raise CommandError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # Without this function, which is the first, and importlib.
        frames = [each for each in traceback.extract_tb(error.__traceback__)[1:] if "importlib" not in each.filename]
        lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
        raise CommandError(f"{path} cannot be run:\n{''.join(lines).rstrip()}") from error
    try:
        return operator.attrgetter(name)(module)
    except AttributeError as error:
        near = difflib.get_close_matches(error.name or name, dir(error.obj), n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise CommandError(f"{path} has no {name!r}{hint}") from None


@contextlib.contextmanager
def explained_errors() -> Iterator[None]:
    """Turn the errors of compiling and linking into a `CommandError` with the whole message and no traceback."""
    try:
        yield
    except (CommandError, ImportError, MemoryError):
        raise
    except Exception as error:
        # Numba's messages, of several lines, name the place in the kernel; other messages need the type of the error.
        text = str(error)
        raise CommandError(text if "\n" in text else f"{type(error).__name__}: {text}") from error
