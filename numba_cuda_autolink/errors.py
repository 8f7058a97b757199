# SPDX-License-Identifier: BSD-2-Clause
"""The errors of finished kernels: of their files, of the arguments of a launch, and of the launch; of damaged code; of
values of a wrong type.

The text of every error is short enough to read, and printable.
"""

from __future__ import annotations

from .printable_texts import bounded
from .short_tracebacks import UserPlace, place_of_user, print_short


class PrintableError(Exception):
    """An error whose text is `bounded`, whatever the files, sources and objects say that it is about."""

    def __str__(self) -> str:
        return bounded(super().__str__())


class UserError(PrintableError):
    """An error about what the user's code does, which is printed without the frames of the compiler."""

    def __init__(self, *args: object):
        super().__init__(*args)
        print_short(self)


class FormatError(PrintableError, ValueError):
    """Bytes do not have the structure that their format requires."""


class FinishedKernelError(UserError):
    """A finished kernel cannot be saved, loaded or launched. The base class of the errors below."""

    __module__ = "numba_cuda_autolink"  # as tracebacks show it


class KernelFileError(FinishedKernelError, ValueError):
    """A file is not a file of finished kernels, or is damaged."""

    __module__ = "numba_cuda_autolink"  # as tracebacks show it


class ArgumentError(FinishedKernelError, TypeError):
    """An argument does not fit its parameter. Nothing was launched.

    Attributes
    ----------
    position, parameter:
        The number of the argument, counted from 1, and the name of its parameter; 0 and empty if the number of the
        arguments is wrong.
    expected, got, remedy:
        What the parameter takes, what the argument is, and what to do, as text; the last may be empty.
    """

    __module__ = "numba_cuda_autolink"  # as tracebacks show it

    position = 0
    parameter = expected = got = remedy = ""


class LaunchError(FinishedKernelError, RuntimeError):
    """A launch is not possible as it is configured, or the driver refused it."""

    __module__ = "numba_cuda_autolink"  # as tracebacks show it


def flag(what: str, value: object) -> bool:
    """Return *value*, which is given to *what*, as a bool. Raise `TypeError` for others: the text ``"no"`` is true."""
    if value is not None and not isinstance(value, int) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{what} takes True or False, got {type(value).__name__} {value!r:.60}")
    return bool(value)


def of_type(what: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raise `TypeError` unless *value*, which is given to *what*, is of one of *kinds*, which *expected* describes."""
    if not isinstance(value, kinds):
        raise TypeError(f"{what} takes {expected}, got {type(value).__name__} {value!r:.40}")


def at_call(message: str, word: str = "called at", place: UserPlace | None = None) -> str:
    """Return *message* with the *place* of a call, by default of the user's call of this package, as its second line,
    after a *word*, and the call underlined."""
    from .source_locations import shown_file, with_place

    filename, line, column = place or place_of_user()
    return with_place(message, f"{word}: {shown_file(filename)}:{line}", filename, line, last_column=column)
