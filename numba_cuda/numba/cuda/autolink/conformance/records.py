# SPDX-License-Identifier: BSD-2-Clause
"""What the checks find, and their result: a record, or an error that lists the checks that failed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numba.cuda import types
from numba.cuda.cudadrv.external_code.diagnostics.messages import bounded, with_short_first_line

from numba_cuda_autolink.printable_texts import number_of
from numba_cuda_autolink.short_tracebacks import warn_user

if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput

_MEANT = re.compile(r"; (did you mean .*\?)$")
_REMEDY = re.compile(r"^ *what to do: (.*)(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True)
class Check:
    """One check that passed; where it could not be made, ``skipped`` is the reason."""

    name: str
    skipped: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {f'not checked: {self.skipped}' if self.skipped else 'yes'}"


@dataclass(frozen=True)
class LinkedCode:
    """One piece of code that the object returned: its kind, its name, its size in bytes, its SHA-256 digest, and the
    ``text`` of source and PTX."""

    kind: str
    name: str
    size: int
    digest: str
    text: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, item: LinkInput) -> LinkedCode:
        """Return the record of a link input."""
        text = item.code.decode("utf-8", "replace") if item.kind.name in ("CUDA C++ source", "PTX") else None
        return cls(item.kind.name, item.name, len(item.code), item.digest, text)

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} ({number_of(self.size, 'byte')}, SHA-256 {self.digest[:12]})"


@dataclass(frozen=True)
class Linkable:
    """An object that is linkable in the call that was checked.

    ``call`` is the call as text; ``argtypes`` are the Numba types that the object was asked about: those of the call,
    defaults included; ``symbols`` are the symbols that the call references, and ``code`` is the code that the object
    returned, without repetitions. ``checks`` are the checks, in order.
    """

    call: str
    argtypes: tuple[types.Type, ...]
    symbols: tuple[str, ...]
    code: tuple[LinkedCode, ...]
    checks: tuple[Check, ...]

    def __str__(self) -> str:
        lines = [f"{self.call} is linkable", *(f"  {check}" for check in self.checks)]
        return "\n".join([*lines, *(f"  links {code}" for code in self.code)])


@dataclass(frozen=True)
class FailedCheck:
    """A check that failed: its name, the result, the expected result, and what to do."""

    name: str
    got: str
    expected: str
    todo: str

    def __str__(self) -> str:
        parts = ("got", self.got), ("expected", self.expected), ("what to do", self.todo)
        texts = (f"{label}: {text.strip()}".replace("\n", "\n    ") for label, text in parts)
        return "\n  ".join([self.name, *texts])


class NotLinkableError(AssertionError):
    """An object is not linkable in the call that was checked: ``wrong`` are the checks that failed, ``checks`` those
    that passed or were skipped."""

    __module__ = "numba.cuda.autolink"  # as tracebacks show it

    def __init__(self, name: str, call: str, wrong: tuple[FailedCheck, ...], checks: tuple[Check, ...]):
        self.wrong = wrong
        self.checks = checks
        made = len(wrong) + sum(not check.skipped for check in checks)
        first = wrong[0].got.partition("\n")[0].removeprefix(f"{name}.").removeprefix(f"{name}: ")
        diagnosis = with_short_first_line(f"{name} is not linkable: {first}")
        text = [diagnosis, f"  call: {call}: {len(wrong)} of {made} checks failed"]
        for number, each in enumerate(wrong, 1):
            text.append(f"  {number}. " + str(each).replace("\n", "\n     "))
        super().__init__(bounded("\n".join([*text, *(f"  {check}" for check in checks if check.skipped)])))


def take_remedy(text: str) -> tuple[str, str]:
    """Return the *text* of an error without what it says to do, and that, which is empty if it says nothing or several
    things."""
    remedies = _REMEDY.findall(text) or _MEANT.findall(text.partition("\n")[0])
    return (_REMEDY.sub("", text).strip("\n"), remedies[0]) if len(remedies) == 1 else (text, "")


class FailedError(Exception):
    """A check failed: the result, the expected result, and what to do, unless the result says so itself."""


class SkippedError(Exception):
    """A check cannot be made; the message is the reason."""


class FailedRunError(SkippedError):
    """A check cannot be made since what it runs failed: so the user is warned."""


@dataclass
class Findings:
    """The checks of a *call* of the object *name*: those that passed or were skipped, and those that failed, in
    order."""

    name: str
    call: str
    checks: list[Check] = field(default_factory=list)
    wrong: list[FailedCheck] = field(default_factory=list)

    @contextlib.contextmanager
    def check(self, name: str) -> Iterator[None]:
        """Add the check that the ``with`` block makes. It failed or was skipped if the block raises that."""
        try:
            yield
        except FailedError as error:
            got, remedy = take_remedy(error.args[0])
            self.wrong.append(FailedCheck(name, got, error.args[1], remedy or error.args[2]))
        except SkippedError as error:
            if isinstance(error, FailedRunError):
                reason = str(error).replace("\n", "\n  ")
                warn_user(f"{self.call} is not checked to the end: {name}\n  not checked: {reason}")
            self.checks.append(Check(name, str(error)))
        else:
            self.checks.append(Check(name))

    def raise_failed(self) -> None:
        if self.wrong:
            raise NotLinkableError(self.name, self.call, tuple(self.wrong), tuple(self.checks))
