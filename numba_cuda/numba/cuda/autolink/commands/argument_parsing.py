# SPDX-License-Identifier: BSD-2-Clause
"""Kernels, signatures and compute capabilities on the command line."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib.util
import os
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


def add_kernel(parser: argparse.ArgumentParser, *, signature_required: bool) -> None:
    """Add the arguments that name a kernel to a command's *parser*."""
    parser.add_argument(
        "kernel",
        metavar="FILE.py:KERNEL",
        help="a Python file, and a @cuda.jit kernel or Python function in it; a.b is an attribute of a",
    )
    parser.add_argument(
        "--sig",
        metavar="SIGNATURE",
        required=signature_required,
        help="the types of its arguments, as cuda.jit takes them: 'void(float32[::1], int32)'",
    )


def compute_capabilities(text: str) -> list[ComputeCapability]:
    """Return the compute capabilities that ``"8.0,9.0a"`` lists; for argparse."""
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
    if not os.path.isfile(path):
        raise CommandError(f"{path}: no such file")
    module_name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(module_name, os.path.abspath(path))
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CommandError(f"{path} cannot be run:\n{_trace(error)}") from error
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            near = difflib.get_close_matches(part, dir(found), n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise CommandError(f"{path} has no {name!r}{hint}") from None
    return found


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


def _trace(error: BaseException) -> str:
    """Return the traceback of *error*, starting in the user's file."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    return "".join([*traceback.format_list(own), *traceback.format_exception_only(error)]).rstrip()
