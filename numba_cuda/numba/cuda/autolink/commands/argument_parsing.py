# SPDX-License-Identifier: BSD-2-Clause
"""Signatures and compute capabilities on the command line, and the errors of commands."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

from numba.cuda.cudadrv.external_code.target import ComputeCapability

SIGNATURE_EXAMPLE = "'void(float32[::1], int32)'"


class CommandError(Exception):
    """A message for the user, and the exit code: 2 for an error in the command line itself, else 1."""

    def __init__(self, message: str, code: int = 1):
        self.code = code
        super().__init__(message)


class Parser(argparse.ArgumentParser):
    """A parser whose errors begin with what is wrong, not with the usage."""

    def error(self, message: str) -> NoReturn:
        """Print *message* and where the arguments are explained, and exit with 2."""
        self.exit(2, f"{self.prog}: {message}\n  what to do: {self.prog} --help lists the arguments\n")


def add_kernel(parser: argparse.ArgumentParser, *, listed: bool = False) -> None:
    """Add the arguments for a kernel and what to build it for. With *listed*, a file alone may be named, and device
    functions; without a compute capability, the GPU's is meant."""
    parser.add_argument(
        "kernel",
        metavar="FILE.py[:KERNEL]" if listed else "FILE.py:KERNEL",
        help="a Python file, and a @cuda.jit kernel or Python function in it; a.b is an attribute of a"
        + ("; the file alone lists its kernels" if listed else ""),
    )
    parser.add_argument(
        "--sig",
        metavar="SIGNATURE",
        action=_Once,
        help=f"types of its arguments, as cuda.jit takes them: {SIGNATURE_EXAMPLE} (default: that of its decorator)",
    )
    parser.add_argument(
        "--cc",
        type=compute_capabilities,
        required=not listed,
        metavar="9.0[,10.0]",
        help="compute capabilities" + (" (default: the GPU's)" if listed else ""),
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


def check_known(capabilities: list[ComputeCapability]) -> None:
    """Raise `CommandError` unless the CUDA toolkit knows all *capabilities*. Without NVRTC, which building reports,
    nothing is known."""
    from numba.cuda.cudadrv import nvrtc
    from numba.cuda.cudadrv.external_code.toolkit import why_missing

    if why_missing("NVRTC"):
        return
    known = nvrtc.get_supported_ccs()
    for capability in capabilities:
        if capability.base not in known:
            names = ", ".join(f"{major}.{minor}" for major, minor in known)
            raise CommandError(
                f"--cc {capability}: this CUDA toolkit does not know that compute capability\n  known: {names}", 2
            )


def check_signature(text: str) -> None:
    """Raise `CommandError` unless *text* is a signature."""
    from ..kernel_signatures import normalized

    try:
        normalized(text)
    except ValueError as error:
        raise CommandError(f"--sig {error}", 2) from error


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
