# SPDX-License-Identifier: BSD-2-Clause
"""Tracebacks without the frames of the compiler: a failed build or launch shows the user's own lines, and the message.

They are taken from the traceback, except those that the error has still to leave: these get the local variable
``__tracebackhide__``, which pytest and debuggers follow. What Python, its threads and IPython print of uncaught errors
leaves them out, and all but the first lines of a message. ``NUMBA_CUDA_AUTOLINK_TRACEBACK=full`` shows all.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

from .printable_texts import bound_text

VARIABLE = "NUMBA_CUDA_AUTOLINK_TRACEBACK"
_HIDE = "__tracebackhide__"
_IS_SHORTENED = "_numba_cuda_autolink_is_shortened"
_IS_PRINTED = "_numba_cuda_autolink_is_printed"  # by this hook, around a hook of others, which calls this one again
_IS_WHOLE = "_numba_cuda_autolink_is_whole"  # of the errors of which all lines are printed
_MESSAGE = "_numba_cuda_autolink_message"  # of the errors whose frames are hidden: what returns their text
_ENTERED = ("numba.cuda", "numba_cuda", "numba_cuda_mlir", "numba_cuda_autolink")  # what users call of compilers
_COMPILERS = {"numba", "numba_cuda", "numba_cuda_mlir", "numba_cuda_autolink", "cuda", "llvmlite"}
_COMPILERS |= {"contextlib", "functools", "importlib", "threading"}  # which stand between frames of compilers
_OURS = ("numba_cuda_autolink", "numba.cuda.autolink", "numba.cuda.cudadrv.external_code")
_TESTS = "numba.cuda.tests."
_MOST_LINES = 13  # of a message
_NAMED_ARGUMENT = re.compile(
    r"_(?:LaunchConfiguration|ArgMarshaller)\.__call__\(\) got an unexpected keyword argument '(\w+)'"
)
_is_reading = contextvars.ContextVar("is_reading", default=False)
_shown: contextvars.ContextVar[set[str] | None] = contextvars.ContextVar("shown", default=None)
_explain: Callable[[Any], str | None] | None = None  # returns the messages of errors that nothing here has met


class _Message(str):
    """The text of an error, also of a `KeyError`, which prints the ``repr`` of what it has."""

    __repr__ = str.__str__


class short_traceback:
    """Take the frames of the compiler from the traceback of an error that the compiler raises about the user's code,
    and that leaves the ``with`` block: others are faults of a compiler. The error's text is bounded. What is printed of
    it where nothing handles it begins as the text that *message* returns of it, if it returns one; by default, as that
    of `explain_uncaught`."""

    def __init__(self, message: Callable[[Any], str | None] | None = None):
        self._message = message or _message

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if not isinstance(error, (Exception, KeyboardInterrupt)):
            return
        message = self._message(error)
        if message is None and not _is_of_user(error):
            return
        for each in _chain(error):
            bound_text(each)
        if not is_full():
            print_short(error, message)
            if message is not None and is_raised_in_compiler(error):
                _replace_text(error, message)
            for each in _chain(error):
                if (cause := each.__cause__) is not None and _says_no_more(cause, message or str(each)):
                    cause.__context__ = None  # which may be the error, of an earlier time that it was raised
                    each.__cause__, each.__context__ = None, cause
                if (before := each.__context__) is not None and _is_all_of_compiler(before):
                    each.__suppress_context__ = True
            shorten_traceback(error)
            outer: FrameType | None = sys._getframe(1)
            while outer is not None and _hide(outer):
                outer = outer.f_back


def print_short(error: BaseException, message: str | None = None, *, is_cut: bool = True) -> None:
    """Let Python and IPython print *error* without frames of the compiler, and with the first lines of *message*, or
    all of them unless it *is_cut*."""
    vars(error)[_MESSAGE] = message
    if not is_cut:
        vars(error)[_IS_WHOLE] = True
    _replace_hooks()


def explain_uncaught(explain: Callable[[Any], str | None] | None) -> None:
    """Let Python and IPython print uncaught errors, of front ends too that nothing here has met, without frames of the
    compiler, and with the first lines of what *explain* returns, if it does; with ``None``, leave these as they are."""
    global _explain
    _explain = explain
    _replace_hooks()


def _replace_hooks() -> None:
    for module, function in ((sys, _print_error), (threading, _print_error_of_thread)):
        if getattr(module.excepthook, "func", None) is not function:
            module.excepthook = functools.partial(function, module.excepthook)  # type: ignore[attr-defined]
    shell = running_shell()
    if shell is not None and getattr(shell.showtraceback, "func", None) is not _show_error:
        shell.showtraceback = functools.partial(_show_error, shell.showtraceback, shell)


def _message(error: BaseException) -> str | None:
    known = message_of(error)
    return _explain(error) if known is None and _explain is not None and isinstance(error, Exception) else known


def message_of(error: BaseException) -> str | None:
    """Return the message with which *error* is printed, None if it is its own."""
    return vars(error).get(_MESSAGE)


def is_full() -> bool:
    return os.environ.get(VARIABLE) == "full"


def _replace_text(error: BaseException, text: str) -> None:
    """Let *error* have this *text*, also where it is handled, and below it all that the front end said, which programs
    may look for. An error whose text is not its argument, such as an `OSError`, keeps its own."""
    said = str(error)
    if said == str(error.args[0] if error.args else "") and not said.startswith(text):
        is_in_text = said in text
        if isinstance(error, ImportError):  # of a library that is missing: its lines have empty ones between
            is_in_text = all(line.strip(" :.") in text for line in said.splitlines())
        error.args = (text if is_in_text else f"{text}\n\n{said}", *error.args[1:])
        if isinstance(error, ImportError):  # whose text is not that of its arguments
            error.msg = error.args[0]


def first_lines(message: str) -> str:
    """Return the first lines of a long *message*, and all that it says about what to do."""
    lines = [line for line in message.split("\n") if line.strip()]
    if len(lines) <= _MOST_LINES + 1 or is_full():
        return message
    begin = next((number for number, line in enumerate(lines) if line.startswith("  what to do: ")), len(lines))
    advice = list(itertools.takewhile(lambda line: line is lines[begin] or line.startswith("    "), lines[begin:]))
    shown = min(begin, max(_MOST_LINES - len(advice), 1))
    left_out = len(lines) - shown - len(advice)
    more = f"  and {left_out} more line{'s' * (left_out > 1)}: {VARIABLE}=full shows them"
    return "\n".join([*lines[:shown], more, *advice])


def warn_user(message: str) -> None:
    shown = _shown.get()
    if not _is_reading.get() and (shown is None or message not in shown):
        if shown is not None:
            shown.add(message)
        warnings.warn(message, stacklevel=_find_user()[1] - 1)


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Let what is compiled again to be shown, or emulated, not repeat the warnings of its build."""
    token = _is_reading.set(True)
    try:
        yield
    finally:
        _is_reading.reset(token)


@contextlib.contextmanager
def each_warning_once() -> Iterator[None]:
    """Let what is compiled several times for one call of the user repeat none of its warnings."""
    token = _shown.set(set())
    try:
        yield
    finally:
        _shown.reset(token)


class UserPlace(NamedTuple):
    """Where the user calls the compiler: a file, a line, and the column, in bytes, where the call ends, which Python
    3.10 does not know."""

    filename: str
    line: int
    last_column: int | None


def place_of_user(error: BaseException | None = None) -> UserPlace:
    """Return the place where the user calls the compiler, now, or where it did when *error* left the compiler."""
    if error is not None and (frames := _user_frames(error)):
        frame, place = frames[-1]
        return place_in(frame, place.tb_lineno, place.tb_lasti)
    frame, _ = _find_user()
    return place_in(frame, frame.f_lineno)


def place_in(frame: FrameType, line: int, instruction: int | None = None) -> UserPlace:
    """Return the place of a *line* of *frame*, and of its last *instruction*, or of another one if that is given."""
    column = None
    if sys.version_info >= (3, 11):
        number = (frame.f_lasti if instruction is None else instruction) // 2
        first, _, _, column = next(itertools.islice(frame.f_code.co_positions(), number, None), (None,) * 4)
        column = column if first == line else None
    return UserPlace(frame.f_code.co_filename, line, column)


def frame_of_user() -> FrameType:
    """Return the frame of the user's code that calls the compiler."""
    return _find_user()[0]


def _find_user() -> tuple[FrameType, int]:
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and is_frame_of_compiler(frame):
        frame, level = frame.f_back, level + 1
    return frame, level


def user_frames(error: BaseException) -> list[tuple[CodeType, int]]:
    """Return the code and the line of each frame in the traceback of *error* that is not the compiler's."""
    return [(frame.f_code, place.tb_lineno) for frame, place in _user_frames(error)]


def _user_frames(error: BaseException) -> list[tuple[FrameType, TracebackType]]:
    return [(frame, place) for frame, place in _frames(error.__traceback__) if not is_frame_of_compiler(frame)]


def running_shell() -> Any:
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def _is_of_user(error: BaseException) -> bool:
    """Return whether *error* tells the user something: it is of a class of the compiler, or about a file, or a
    ``raise`` statement of the compiler raised it, and not what Python does there."""
    if isinstance(error, (KeyboardInterrupt, OSError)) or _MESSAGE in vars(error):
        return True
    if any(is_name_of_compiler(each.__module__) for each in type(error).__mro__):
        return True
    is_about_use = isinstance(error, (TypeError, ValueError, RuntimeError, AttributeError))
    return is_about_use and is_raised_by_statement(error) and is_raised_in_compiler(error)


def is_raised_by_statement(error: BaseException) -> bool:
    """Return whether a ``raise`` statement raised *error*, which has a traceback, and not what Python does."""
    import dis

    *_, (frame, innermost) = _frames(error.__traceback__)
    return frame.f_code.co_code[innermost.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def is_raised_in_compiler(error: BaseException) -> bool:
    """Return whether *error* was raised in a frame of a compiler, and not in code of the user that it called."""
    return any(is_frame_of_compiler(frame) for frame, place in _frames(error.__traceback__) if place.tb_next is None)


def raised_by_front_end(error: BaseException) -> bool:
    """Return whether the innermost frame of a compiler in the traceback of *error* is not one of this project."""
    names = [str(frame.f_globals.get("__name__", "")) for frame, _ in _frames(error.__traceback__)]
    innermost = next((name for name in reversed(names) if is_name_of_compiler(name)), "")
    return innermost != "" and not innermost.startswith(_OURS)


def _show_error(show: Callable[..., None], shell: Any, *args: Any, **named: Any) -> None:
    given = args[0] if args else named.get("exc_tuple")
    error = (given or sys.exc_info())[1]
    if error is not None and _is_printed_short(error):
        vars(error)["_render_traceback_"] = functools.partial(_render, shell, error)
    show(*args, **named)


def _render(shell: Any, error: BaseException) -> Any:
    with _shortened(error):
        return shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__, tb_offset=1)


def _hide(frame: FrameType) -> bool:
    if is_hidden := is_frame_of_compiler(frame):
        frame.f_locals[_HIDE] = True
    return is_hidden


def is_frame_of_compiler(frame: FrameType) -> bool:
    if frame.f_code.co_filename == "<string>" and frame.f_code.co_name == "<module>" and frame.f_back is not None:
        return is_frame_of_compiler(frame.f_back)  # it evaluates a text
    name = str(frame.f_globals.get("__name__", ""))
    if name.partition(".")[0] == "numpy" and frame.f_back is not None:  # that a compiler asks for a name
        return is_frame_of_compiler(frame.f_back)
    return is_name_of_compiler(name)


def _is_all_of_compiler(error: BaseException) -> bool:
    return all(is_frame_of_compiler(frame) for frame, _ in _frames(error.__traceback__))


def _is_placed(cause: BaseException, said: str) -> bool:
    """Return whether what is *said* of an error names the place where its *cause* was raised, or that is within the
    compiler."""
    frames = _frames(cause.__traceback__)
    named = [f":{place.tb_lineno} in {frame.f_code.co_name}" in said for frame, place in frames]
    return any(named) or _is_all_of_compiler(cause)


def _says_no_more(cause: BaseException, said: str) -> bool:
    return _is_all_of_compiler(cause) and str(cause).partition("\n")[0] in said


def is_name_of_compiler(name: str) -> bool:
    return name.partition(".")[0] in _COMPILERS and not name.startswith(_TESTS)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield *error*, and the errors that Python prints before it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, TracebackType]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback
        traceback = traceback.tb_next


def _print_error(
    print_error: Callable[..., None],
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
) -> None:
    if _IS_PRINTED in vars(error) or not _is_printed_short(error):
        print_error(kind, error, traceback)
        return
    with _shortened(error) as hidden:
        print_error(kind, error, error.__traceback__)
    if (hidden or _IS_SHORTENED in vars(error)) and sys.stderr is not None:
        print(f"(the compiler's own frames are hidden: {VARIABLE}=full shows them)", file=sys.stderr)


def _print_error_of_thread(print_error: Callable[[Any], None], failed: Any) -> None:
    def print_shortened(kind: Any, error: Any, traceback: Any) -> None:
        print_error(threading.ExceptHookArgs((kind, error, traceback, failed.thread)))

    _print_error(print_shortened, failed.exc_type, failed.exc_value, failed.exc_traceback)


def _is_printed_short(error: BaseException) -> bool:
    """Return whether *error* is printed without frames of the compiler, which it is also where it left a front end that
    called nothing of this project, as over a mistake in a launch."""
    if any(_MESSAGE in vars(each) for each in _chain(error)):
        return True
    if is_full() or not isinstance(error, Exception):
        return False
    frames = [frame for frame, _ in _frames(error.__traceback__)]
    entered = next((i for i in range(len(frames), 0, -1) if not is_frame_of_compiler(frames[i - 1])), 0)
    module = "" if entered == len(frames) else str(frames[entered].f_globals.get("__name__", ""))
    is_of_front_end = f"{module}.".startswith(tuple(f"{name}." for name in _ENTERED))
    if not is_of_front_end and find_named_argument(error) is None:
        return False
    try:
        message = _message(error)
    except Exception:  # a fault of what explains it: the error is printed as it is
        return False
    if message is None and not (is_of_front_end and _is_of_user(error)):
        return False
    vars(error)[_MESSAGE] = message
    return True


def find_named_argument(error: BaseException) -> str | None:
    """Return the name of the argument for which Python refuses the launch of a front end's kernel, which enters no
    function of it; ``None`` for every other *error*."""
    found = _NAMED_ARGUMENT.match(str(error)) if isinstance(error, TypeError) else None
    return found[1] if found else None


@contextlib.contextmanager
def _shortened(error: BaseException) -> Iterator[bool]:
    """Take the hidden frames from *error* and its causes inside the ``with`` block, and causes whose other frames the
    message of *error* names; take the last lines of long messages. Give whether there are hidden frames."""
    with contextlib.ExitStack() as restored:
        vars(error)[_IS_PRINTED] = True
        restored.callback(vars(error).pop, _IS_PRINTED, None)
        yield any([_shorten(each, restored) for each in _chain(error)])


def _shorten(error: BaseException, restored: contextlib.ExitStack) -> int:
    """Take the hidden frames from *error*, until *restored* closes, and return how many there are."""
    message = message_of(error) or (str(error) if _MESSAGE in vars(error) and len(error.args) == 1 else None)
    if message is not None:
        restored.callback(setattr, error, "args", error.args)
        error.args = (_Message(message if _IS_WHOLE in vars(error) else first_lines(message)),)
        if isinstance(error, (AttributeError, NameError)) and message_of(error):  # to which Python adds a name
            _set(error, restored, name=None)
        if isinstance(error, ImportError):  # whose text is not that of its arguments
            _set(error, restored, msg=error.args[0])
        if isinstance(error, SyntaxError) and message_of(error):  # of a text in the compiler: the message has its place
            _set(error, restored, **dict.fromkeys(("filename", "lineno", "offset", "text")), msg=error.args[0])
        if isinstance(error, OSError) and message_of(error):  # whose text is made of these
            error.args = error.args[:1]
            for name in ("errno", "filename"):
                restored.callback(setattr, error, name, getattr(error, name))
                delattr(error, name)
        if isinstance(error, AttributeError) and "did you mean" in message:  # Python adds names near it again
            _set(error, restored, name=None)
    before = [each for _, each in _frames(error.__traceback__)]
    shown = [each for each in before if not is_frame_of_compiler(each.tb_frame)]
    restored.callback(error.with_traceback, error.__traceback__)
    error.__traceback__ = functools.reduce(_copied, reversed(shown), None)
    caused_by = error.__cause__
    if caused_by is not None and _is_placed(caused_by, str(error)):
        _set(error, restored, __cause__=None)
    if not error.__suppress_context__ and error.__context__ is not None and _is_all_of_compiler(error.__context__):
        _set(error, restored, __suppress_context__=True)
    return len(before) - len(shown)


def _set(error: BaseException, restored: contextlib.ExitStack, **values: Any) -> None:
    """Set attributes of *error*, until *restored* closes."""
    for name, value in values.items():
        restored.callback(setattr, error, name, getattr(error, name))
        setattr(error, name, value)


def _copied(following: Any, traceback: TracebackType) -> TracebackType:
    return TracebackType(following, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)


def shorten_traceback(error: BaseException) -> None:
    """Take the frames of the compiler from the traceback of an *error* that is printed without them, and from its
    causes'. Python 3.10 keeps the outermost, where the error is raised again: so its others are taken from it."""
    if _MESSAGE not in vars(error) or is_full():
        return
    for each in _chain(error):
        entries = [entry for _, entry in _frames(each.__traceback__)]
        kept = [entry for entry in entries if not is_frame_of_compiler(entry.tb_frame)]
        if len(kept) < len(entries):
            vars(error)[_IS_SHORTENED] = True
        for entry, following in zip([*entries[:1], *kept], [*kept, None], strict=False):
            if entry is not following:
                entry.tb_next = following
        each.__traceback__ = kept[0] if kept else None
