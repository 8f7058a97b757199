# SPDX-License-Identifier: BSD-2-Clause
"""The errors that users see when a called object gives no usable answer."""

from __future__ import annotations

import contextlib
import os
import re
import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv import external_code
from numba.cuda.cudadrv.external_code.diagnostics.messages import bounded, with_short_first_line

from numba_cuda_autolink.errors import PrintableError
from numba_cuda_autolink.printable_texts import did_you_mean
from numba_cuda_autolink.short_tracebacks import is_raised_by_statement
from numba_cuda_autolink.source_locations import shown_file, with_place

from ..compilation.context import compilation
from ..frontend_api.type_names import readable_types
from .callee import HOOK, place_of

if TYPE_CHECKING:
    from .call_sites import CallSite
    from .callee import Callee


_MEANT = re.compile(r"; (did you mean .*\?)$")


TAKE_ARGUMENTS = "let the hook take one parameter for each argument type"


class HookError(PrintableError):
    """A ``__numba_cuda_link__`` gave no usable answer. It becomes a `CallError` where the call site is known.

    ``callee`` is the object, ``argtypes`` are the Numba types that it was asked with, ``hook`` is the name of the
    method, that of the link key too, ``said`` is what it did, and ``raised_at`` is the file, line and function in which
    it raised an exception, or None.
    """

    __module__ = "numba.cuda.autolink"  # as tracebacks show it

    def __init__(
        self, callee: Callee, argtypes: tuple[Any, ...], said: str, raised_at: str | None = None, hook: str = HOOK
    ):
        self.callee = callee
        self.argtypes = argtypes
        self.said = said
        self.raised_at = raised_at
        self.hook = hook
        super().__init__(said if hook == HOOK else f"{hook} {said}")

    @property
    def is_of_parameters(self) -> bool:
        """Whether the hook does not take the arguments that it is called with."""
        return not self.raised_at and self.said.startswith("raised TypeError: ")

    def describe(self, call_site: CallSite, last_column: int | None = None) -> str:
        """Return the whole message for users: the diagnosis, where it is called, the object, where its hook raised. In
        its line, the call ends in *last_column*."""
        signature = readable_types(", ".join(map(str, self.argtypes)))
        said = bounded(f"{self.callee.name}.{self.hook} {self.said}")
        if self.raised_at:
            said = with_fix(said, self.callee.name, "hook" if self.hook == HOOK else self.hook, self.__cause__)
        elif self.is_of_parameters:
            hook = self.callee.hook if self.hook == HOOK else self.callee.link_key
            place = place_of(hook)
            said += (place and f"\n  defined at: {place}") + f"\n  what to do: {TAKE_ARGUMENTS}"
        first, *others = said.split("\n")
        details = [f"  object: {self.callee}", f"  argument types: ({signature})"]
        details += [f"  raised at: {self.raised_at}"] if self.raised_at else []
        text = with_short_first_line("\n".join([first, *details, *others]))
        place = f"called at: {call_site.place}"
        return with_place(text, place, call_site.filename, call_site.line, last_column=last_column)


def with_fix(said: str, name: str, hook: str, raised: BaseException | None) -> str:
    """Return what the *hook* of the object *name* has *said*, where it *raised* an exception, with what to do as its
    last line: what the exception suggests, if it suggests something."""
    if "what to do: " in said:
        return said
    first, *others = said.split("\n")
    if meant := _MEANT.search(first):
        first, remedy = first[: meant.start()], meant[1]
    elif not (remedy := _near_name(raised)):
        remedy = f"change its {hook} where it raised"
        if isinstance(raised, FileNotFoundError):
            remedy = f"correct the path: a relative one begins in {os.getcwd()}"
        elif not isinstance(raised, (NameError, ImportError, OSError)) and not _is_bug(raised):
            remedy = f"pass arguments that {name} takes, or {remedy}"
    return "\n".join([first, *others, f"  what to do: {remedy}"])


def _is_bug(error: BaseException | None) -> bool:
    """Return whether other arguments would not help: a library raised the *error*, a name is not in an object other
    than the type of an argument, or Python refused an operation, without a ``raise`` of the hook."""
    if error is None or error.__traceback__ is None:
        return False
    if isinstance(error, AttributeError) and error.obj is not None:
        return not any(each.__name__ == "Type" for each in type(error.obj).__mro__)  # of either front end
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    is_of_library = frame.f_code.co_filename.startswith(_LIBRARIES)
    return is_of_library or (isinstance(error, TypeError) and not is_raised_by_statement(error))


def _near_name(error: BaseException | None) -> str:
    """Return which name a hook may have meant that Python did not find; empty if there is none, or another error."""
    known: Iterable[str] = ()
    with contextlib.suppress(Exception):  # of __dir__, which an object may define
        if isinstance(error, AttributeError):
            known = dir(error.obj)
        elif isinstance(error, NameError):
            *_, (frame, _) = traceback.walk_tb(error.__traceback__)
            known = {**frame.f_builtins, **frame.f_globals, **frame.f_locals}
    return did_you_mean(getattr(error, "name", None), known).removeprefix("; ")


class AskedAgainError(HookError):
    """A ``__numba_cuda_link__`` is asked the question that it is still answering."""


def typing_error(
    message: str, loc: Any = None, cause: BaseException | None = None, error: type[Exception] = TypingError
) -> Any:
    """Return the *error* of a kernel that uses a called object in a way that it cannot be used: for a *cause*, which
    will be its ``__cause__``, and whose ``log`` it will have. The class of the error is the front end's."""
    _note(message, cause)
    return error(message, loc=loc)  # type: ignore[call-arg]


def assignment_error(name: str, owner: Any, loc: Any, error: type[Exception]) -> Any:
    """Return the *error* of a kernel that assigns to the attribute *name* of the object with the type *owner*."""
    is_cxx = hasattr(type(getattr(owner, "numba_cuda_link_object", None)), "_cxx_reads_files")
    set_before = "let a function of C++ set a variable of C++" if is_cxx else "set it before the kernel is compiled"
    message = (
        f"cannot assign to the attribute {name!r} in a kernel: attributes of device callables are constants\n"
        f"  object: {owner}\n"
        f"  what to do: {set_before}; keep what changes in a variable or an array of the kernel"
    )
    return typing_error(message, loc, error=error)


def _note(message: str, cause: BaseException | None = None) -> None:
    """Remember that *message* begins with a diagnosis: Numba makes another exception of it, and puts a line first."""
    if (in_progress := compilation()) is not None:
        in_progress.diagnoses[readable_types(message.partition("\n")[0])] = cause


class CallError(TypingError):
    """A called object provides no linkable code for these argument types: a typing error at the line of the call.

    ``call_site`` is the `CallSite`, which ends in *last_column* if that is known, ``hook_error`` the `HookError`; the
    object's own exception is ``__cause__``.
    """

    __module__ = "numba.cuda.autolink"  # as tracebacks show it

    def __init__(self, error: HookError, call_site: CallSite, loc: Any, last_column: int | None = None):
        self.call_site = call_site
        self.hook_error = error
        _note(message := error.describe(call_site, last_column))
        super().__init__(message, loc=loc)


_OWN_FOLDERS = (
    os.path.dirname(os.path.dirname(__file__)) + os.sep,
    os.path.dirname(external_code.__file__) + os.sep,
    contextlib.__file__,
)
_MOST_CALLERS = 3
_INSTALLED = tuple(sysconfig.get_path(each) + os.sep for each in ("purelib", "platlib"))
_LIBRARIES = (*_INSTALLED, *(sysconfig.get_path(each) + os.sep for each in ("stdlib", "platstdlib")))


def raised_at(error: BaseException) -> str | None:
    """Return file, line and function of the innermost frame of *error* that is not this package's, nor that of what it
    called in an installed package or in Python's library, and the calls that led there; or None."""
    outside = _frames(error)[1]
    own = [each for each in outside if not each.filename.startswith(_LIBRARIES)]
    installed = [each for each in outside if each.filename.startswith(_INSTALLED)]
    if not (found := own or installed or outside):
        return None
    *callers, innermost = found
    called = [f"      called at: {_place(each)}" for each in reversed(callers[-_MOST_CALLERS:])]
    return "\n".join([_describe(innermost), *called])


def raised_by_hook(error: BaseException) -> str | None:
    """Return the same of the outermost such frame, which is the hook's own."""
    outside = _frames(error)[1]
    return _describe(outside[0]) if outside else None


def raised_by_user_code(error: BaseException) -> str:
    """Return the same as `raised_at`, else the innermost frame."""
    return raised_at(error) or _describe(_frames(error)[0][-1])


def _describe(frame: traceback.FrameSummary) -> str:
    source = f"\n      {frame.line}" if frame.line else ""
    return f"{_place(frame)}{source}"


def _place(frame: traceback.FrameSummary) -> str:
    return f"{shown_file(frame.filename)}:{frame.lineno} in {frame.name}"


def _frames(error: BaseException) -> tuple[Sequence[traceback.FrameSummary], Sequence[traceback.FrameSummary]]:
    frames = traceback.extract_tb(error.__traceback__)
    return frames, [frame for frame in frames if not frame.filename.startswith(_OWN_FOLDERS)]
