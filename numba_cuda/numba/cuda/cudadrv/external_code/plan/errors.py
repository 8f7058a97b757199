# SPDX-License-Identifier: BSD-2-Clause
"""The error of a link, and the form of its messages."""

from __future__ import annotations

import re

from numba.cuda.cudadrv.driver import LinkerError

from numba_cuda_autolink.source_locations import shown_file, with_place

from ..diagnostics.messages import shown_log, with_short_first_line
from .link_plan import LinkPlan

_CALL = re.compile(r"(?:called|with \(.*\)) at (?P<place>(?P<file>\S[^\n]*?):(?P<line>\d+) in [\w.<>]+)")


class LinkError(LinkerError):
    """A kernel's external code could not be compiled or linked.

    ``log`` is all that the compiler or linker printed; its own exception is ``__cause__``. ``source_path`` is the file
    that holds a CUDA C++ source that does not compile, ``None`` if it could not be saved.
    """

    __module__ = "numba.cuda.autolink"  # as tracebacks show it

    def __init__(self, message: str, log: str = "", *, source_path: str | None = None, shown: str | None = None):
        self.log = log.replace("\0", "").strip()
        self.source_path = source_path
        shown = self.log if shown is None else shown
        indented = "\n    ".join(line for line in shown_log(shown).splitlines() if line.strip())
        message = shown_log(message)
        super().__init__(f"{message}\n  log: {indented}" if shown else message)


def link_error(
    plan: LinkPlan,
    diagnosis: str,
    *details: str,
    log: str = "",
    at: tuple[str, int] | None = None,
    kind: type[LinkError] = LinkError,
    **source: str | None,
) -> LinkError:
    """Return the error of a failed link of *plan*: the diagnosis, its place, which is *at* a line of a file, else
    the first call that the *details* name, else the kernel's definition, and one line for each of the details. A first
    line that would be too long begins with the diagnosis, and ends there."""
    first = f"linking {plan.kernel} for {plan.target.arch} failed"
    if diagnosis:
        said = diagnosis.removesuffix(": ")
        whole = f"{first}: {said}"
        first = whole if with_short_first_line(whole) == whole else f"{with_short_first_line(said)}\n  {first}"
    message = "\n  ".join((first, *details))
    if at is not None:
        message = with_place(message, f"at: {shown_file(at[0])}:{at[1]}", *at)
    elif call := _CALL.search(message):
        message = with_place(message, f"called at: {call['place']}", call["file"], int(call["line"]))
    else:
        message = with_definition(message, plan.defined_at)
    return kind(message, log, **source)


def with_definition(message: str, defined_at: tuple[str, int] | None) -> str:
    """Return *message* with the place where its kernel is defined, if that is known."""
    if defined_at is None:
        return message
    filename, line = defined_at
    return with_place(message, f"defined at: {shown_file(filename)}:{line}", filename, line, is_call=False)
