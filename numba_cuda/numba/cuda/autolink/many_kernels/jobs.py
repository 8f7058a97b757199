# SPDX-License-Identifier: BSD-2-Clause
"""Jobs: what `build_many` builds, and the error that lists what could not be built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numba.cuda.cudadrv.external_code.diagnostics.messages import safe_text, shown, suggest_names
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapabilityLike

from numba_cuda_autolink.short_tracebacks import is_full, message_of, print_short

from ..frontend_api.front_end import check_options
from ..frontend_api.jit_options import JitOptions

if TYPE_CHECKING:
    from ..builds.result import LinkedKernel

_MOST_DESCRIBED, _MOST_PRINTED = 10, 3
_OF_PLACE = 4  # the lines of a message with the diagnosis and the place
_ADVICE = "  what to do: "


@suggest_names
@dataclass(frozen=True)
class Job:
    """One kernel to build: the arguments of `build`, which describes them.

    Attributes
    ----------
    kernel, signature, cc, output, entry_name:
        As for `build`. ``cc`` is one compute capability; by default that of this machine's GPU.
    options:
        Options of ``cuda.jit``, as `JitOptions`. One that there is not raises `TypeError`, or `ValueError` for
        numba-cuda-mlir.
    for_launch:
        Build exactly what a launch on such a GPU builds, which then finds it in the cache, and not a kernel for other
        programs, which may set its variables. ``output`` and ``entry_name`` do not apply.
    """

    kernel: Any
    signature: Any
    cc: ComputeCapabilityLike | None = None
    output: str = "cubin"
    entry_name: str | None = None
    options: JitOptions | Mapping[str, Any] = field(default_factory=dict)
    for_launch: bool = False

    def __post_init__(self) -> None:
        if self.options:
            check_options(self.kernel, self.options)

    @classmethod
    def of(cls, given: Any) -> Job:
        """Return *given*, a job or a tuple ``(kernel, signature)`` or ``(kernel, signature, cc)``, as a job. Raise
        `TypeError` if it is something else, or names several compute capabilities."""
        job = cls(*given) if isinstance(given, tuple) and len(given) in (2, 3) else given
        if not isinstance(job, cls):
            expected = "(kernel, signature), (kernel, signature, cc) or an autolink.Job"
            raise TypeError(f"a job is {expected}\n  got: {shown(given)}")
        if isinstance(job.cc, list):
            raise TypeError(f"a job is for one compute capability, got {job.cc!r}: make one job for each")
        return job

    def __str__(self) -> str:
        target = "" if self.cc is None else f" for {self.cc}"
        return f"{kernel_name(self.kernel)} with {_shown(self.signature)}{target}"


def _shown(signature: Any) -> str:
    """Return a signature as it is written: ``(float32[::1], int32)``; what is not one as its text."""
    if not isinstance(signature, tuple):
        return str(signature)
    from ..protocol.kernel_signatures import arguments_text

    return arguments_text(signature)


def kernel_name(kernel: Any) -> str:
    """Return the name of *kernel* for people; of what is not a function, that of its type."""
    function = getattr(kernel, "py_func", kernel)
    return str(getattr(function, "__qualname__", type(function).__name__))


def note_lost(error: BaseException) -> None:
    """Say in the notes of an executor's *error* what it means for the job that was lost."""
    notes = [
        "The executor did not return this job. If its worker ended, it was killed, had no memory left, or a compiler"
        " crashed in it. An executor that broke then runs nothing more, unless build_many made it: pass a function"
        " that makes it.",
        "what to do: build the kernel alone in this process, by build(), to see which",
    ]
    vars(error)["__notes__"] = notes  # what add_note() of Python 3.11 appends to


def error_text(error: BaseException) -> str:
    """Return the type, the text that is printed and the notes of *error*."""
    return "\n".join(
        [f"{type(error).__name__}: {message_of(error) or safe_text(error)}", *getattr(error, "__notes__", ())]
    )


def _shorten(text: str, place: int) -> list[str]:
    """Return what is printed of the *text* of an error that is at this *place* among all: of the first ones the
    diagnosis, the line with its caret, and what to do; of others the diagnosis alone."""
    lines, advice = text.splitlines(), text.find(_ADVICE)
    if place >= _MOST_PRINTED:
        return lines[:1]
    return [
        *lines[:_OF_PLACE],
        *(text[advice:].splitlines()[:1] if advice >= len("\n".join(lines[:_OF_PLACE])) else []),
    ]


class BuildManyError(RuntimeError):
    """Some jobs of `build_many` failed; the others are built.

    Attributes
    ----------
    results:
        For each job, in order, the `LinkedKernel` or the exception that it raised.
    errors:
        The exceptions, by the number of the job.
    """

    __module__ = "numba.cuda.autolink"  # as tracebacks show it

    def __init__(self, jobs: Sequence[str], results: Iterable[LinkedKernel | BaseException]):
        self.jobs = tuple(jobs)
        self.results = tuple(results)
        self.errors = {number: each for number, each in enumerate(self.results) if isinstance(each, BaseException)}
        described = list(self.errors.items())[:_MOST_DESCRIBED]
        super().__init__(self._describe([(number, error_text(each).splitlines()) for number, each in described]))
        if not is_full():
            texts = [(number, _shorten(error_text(each), place)) for place, (number, each) in enumerate(described)]
            print_short(self, self._describe(texts), is_cut=False)

    def _describe(self, texts: Iterable[tuple[int, list[str]]]) -> str:
        lines = [f"{len(self.errors)} of {len(self.jobs)} kernels could not be built"]
        for number, text in texts:
            lines += [f"  job {number}, {self.jobs[number]}:", *(f"    {line}" for line in text)]
        if (more := len(self.errors) - _MOST_DESCRIBED) > 0:
            lines.append(f"  and {more} more, in this error's attribute errors")
        return "\n".join(lines)

    def __reduce__(self) -> Any:
        return type(self), (self.jobs, self.results)
