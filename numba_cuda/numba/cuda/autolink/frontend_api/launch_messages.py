# SPDX-License-Identifier: BSD-2-Clause
"""The messages of mistakes in launches: of the configuration, and of the number and the kinds of the arguments.

A launch that succeeds passes nothing here. The kernel and its arguments are in the frames of the front end that failed.
"""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from numba_cuda_autolink.errors import at_call
from numba_cuda_autolink.printable_texts import did_you_mean
from numba_cuda_autolink.short_tracebacks import (
    UserPlace,
    find_named_argument,
    is_frame_of_compiler,
    place_in,
    place_of_user,
    raised_by_front_end,
)
from numba_cuda_autolink.source_locations import shown_file, with_place

_LAUNCHES = ("call", "_call_impl")  # the methods of front ends that have the arguments of a launch, as ``args``
_NOT_CONFIGURED = re.compile(r"\s*(?:Kernel )?launch configuration was not specified")
_WORDS = {  # with which front ends say what is wrong with a launch configuration, and how users know it
    "griddim": "blocks",
    "blockdim": "threads",
    "LaunchConfig.grid values": "blocks",
    "LaunchConfig.block values": "threads",
    "Argument 'shmem_size'": "shared_bytes",
    "sharedmem": "shared_bytes",
    "Requested dynamic shared memory": "shared_bytes",
    "Expected a Stream object": "stream must be a Stream object",
    "Unsupported stream type": "stream cannot be of type",
}
_OTHER_TYPE = re.compile(r"(?:Cannot determine Numba type of <class '|Unsupported argument type )(?:\w+\.)*(\w+)")
_ARRAY = "pass an array, as np.array({name})"
_VALUES = "pass numbers, and arrays, tuples and records of numbers"
_COUNT = "pass one argument for each parameter"
USE_AS_CONSTANT = "use it as a global variable, or as a variable of the function that defines the kernel"
_REFUSED: dict[Any, str] = {list: _ARRAY, set: _VALUES, dict: _VALUES, str: _VALUES, bytes: _VALUES}
_CONTAINERS: dict[str, type] = {"List": list, "Set": set, "DictType": dict}
_RAISED = re.compile(  # as numba-cuda words what a kernel raises
    r"(?:In function '.*', file (?P<file>.*), line (?P<line>\d+), )?tid=\[(?P<thread>[\d, ]+)\]"
    r" ctaid=\[(?P<block>[\d, ]+)\](?:: (?P<said>.*))?",
    re.DOTALL,
)
_STRIDED = re.compile(  # as front ends word that they cannot copy what is not contiguous to the GPU
    "Array contains non-contiguous buffer|Buffer size is too small for the layout|Allocation size for a layout"
)
_FRACTION = re.compile(r"got .*\d\.\d")
_OPTIONS = re.compile(r"\s*Printing the options because: (.*?)\.?\n(.*)", re.DOTALL)
_NOT_A_FUNCTION = re.compile(
    r"type object '(\w+)' has no attribute '__\w+__'|'(\w+)' object has no attribute '__\w+__'"
    r"|(.*) is not a callable object"
)
FIX_OPTION = "\n  what to do: correct its name or value, or leave it out"


def not_a_kernel(name: str) -> TypeError:
    """Return the error for a device function *name* that is to be built."""
    return TypeError(
        f"build() builds kernels, and {name} is a device function"
        "\n  what to do: pass a kernel that calls it; cuda.compile makes code of a device function"
    )


class _Launch(NamedTuple):
    kernel: Any  # what ``cuda.jit`` made
    method: str  # of the front end
    args: Sequence[Any] | None  # if the method has them
    place: UserPlace  # where the user calls the front end

    def message(self, diagnosis: str, remedy: str) -> str:
        return self.placed(f"{diagnosis}\n  what to do: {remedy}")

    def placed(self, text: str) -> str:
        return at_call(text, "launched at", self.place)


def wrong_count(kernel: Any, count: int) -> str | None:
    """Return what is wrong with *count* arguments for the Python function *kernel*, ``None`` if nothing is. Numba takes
    keyword-only parameters by position too."""
    parameters = inspect.signature(kernel).parameters.values()
    takes = [each for each in parameters if each.kind is not each.VAR_POSITIONAL]
    required = sum(each.default is each.empty for each in takes)
    if required <= count and (count <= len(takes) or len(takes) < len(parameters)):
        return None
    names = ", ".join("*" * (each not in takes) + each.name for each in parameters)
    most = "" if required == len(takes) else f" to {len(takes)}"
    expected = f"at least {required}" if len(takes) < len(parameters) else f"{required}{most}"
    return f"{kernel.__name__}({names}) takes {expected} argument{'s' * (len(takes) != 1)}, got {count}"


def pass_all(kernel: Any, count: int) -> str:
    """Return what to do where *count* arguments are too few, or too many, for the Python function *kernel*."""
    parameters = inspect.signature(kernel).parameters.values()
    required = [each.name for each in parameters if each.default is each.empty and each.kind is not each.VAR_POSITIONAL]
    missing = required[count:]
    return f"{_COUNT}: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing" if missing else _COUNT


def check_count(kernel: Any, count: int) -> None:
    """Raise `TypeError` if the Python function *kernel* does not take *count* arguments."""
    if (wrong := wrong_count(kernel, count)) is not None:
        raise TypeError(wrong)


def refused_argument(kernel: Any, argtypes: Sequence[Any]) -> TypeError | None:
    """Return the error for an argument of a kind that kernels do not take, where the Python function *kernel* does not
    compile for *argtypes*, which are of the front end; ``None`` if there is none."""
    for name, numba_type in zip(inspect.signature(kernel).parameters, argtypes, strict=False):
        if (kind := _CONTAINERS.get(type(numba_type).__name__)) is not None:
            return TypeError(_refusal(kernel, name, kind) + f"\n  what to do: {_REFUSED[kind].format(name=name)}")
    return None


def _refusal(kernel: Any, name: str, kind: type) -> str:
    return f"argument {name!r} of {kernel.__name__} is of type {kind.__name__}, which kernels do not take"


def refused_kind(kernel: Any, name: str, kind: type) -> tuple[str, str] | None:
    """Return what is wrong with the argument *name* of the Python function *kernel*, and what to do, if it is of a
    *kind* of Python's that kernels never take; else ``None``."""
    return (_refusal(kernel, name, kind), _REFUSED[kind].format(name=name)) if kind in _REFUSED else None


def launch_message(error: Exception) -> str | None:
    """Return the message of an *error* that a mistake in a launch caused, ``None`` for every other."""
    if (named := find_named_argument(error)) is not None:
        where = "; the stream is in the brackets, kernel[blocks, threads, stream]" if named == "stream" else ""
        text = (
            f"a launch takes its arguments by position, got {named}="
            f"\n  what to do: pass them in the order of the parameters{where}"
        )
        return at_call(text, "launched at", place_of_user(error))
    if (launch := _find_launch(error)) is None:
        return None
    name = launch.kernel.py_func.__name__
    if launch.kernel.targetoptions.get("device"):
        return launch.message(
            f"{name} is a device function, which only kernels can call", f"call it in a kernel, or {name}.py_func(...)"
        )
    if word := next((each for each in _WORDS if str(error).startswith(each)), None):
        return _about_configuration(launch, str(error).replace(word, _WORDS[word], 1))
    if launch.args is not None:
        return _about_arguments(launch, launch.args, str(error))
    if launch.method == "__call__" and _NOT_CONFIGURED.match(str(error)):
        return launch.message(
            f"the launch configuration was not specified: {name} is called without the sizes of its grid and blocks",
            f"{name}[blocks, threads](...)",
        )
    if launch.method == "__getitem__":
        return _about_configuration(launch)
    return None


def _about_configuration(launch: _Launch, why: str = "") -> str:
    name = launch.kernel.py_func.__name__
    if why.startswith(("shared_bytes", "stream")):
        return launch.message(
            f"{name}[...] cannot be launched: {why}",
            f"{name}[blocks, threads, stream, shared_bytes](...), with 0 or a stream, and an int that the GPU allows",
        )
    if _FRACTION.search(why):
        return launch.message(
            f"{name}[...] needs the sizes of a grid and its blocks: {why}",
            "divide with //, which makes an int, where / makes a float: (x.size + threads - 1) // threads",
        )
    return launch.message(
        f"{name}[...] needs the sizes of a grid and its blocks{why and ': '}{why}",
        f"{name}[blocks, threads](...), where each is a positive int, or a tuple of up to three",
    )


def _about_arguments(launch: _Launch, args: Sequence[Any], said: str) -> str | None:
    function = launch.kernel.py_func
    if (wrong := wrong_count(function, len(args))) is not None:
        return launch.message(wrong, pass_all(function, len(args)))
    if launch.kernel.extensions:  # which make other arguments of these
        return None
    if _STRIDED.match(said) and (strided := _find_strided(function, args)):
        return launch.message(
            f"argument {strided!r} of {function.__name__} is strided, and front ends copy contiguous arrays to the GPU",
            f"pass a contiguous copy, {strided}_copy = np.ascontiguousarray({strided}); if the kernel writes to it,"
            f" copy back with {strided}[...] = {strided}_copy",
        )
    other = _OTHER_TYPE.match(said)
    for name, value in zip(inspect.signature(function).parameters, args, strict=False):
        kind = type(value)
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            what = (
                f"argument {name!r} of {function.__name__} is an array of objects of Python, which kernels do not take"
            )
            return launch.message(what, f"pass an array of numbers, such as {name}.astype(np.float32)")
        is_constant = hasattr(kind, "__numba_cuda_call__")
        if kind in _REFUSED or is_constant or (other is not None and kind.__name__ == other[1]):
            known = USE_AS_CONSTANT if is_constant or hasattr(kind, "__numba_cuda_link__") else _VALUES
            remedy = _REFUSED.get(kind, known).format(name=name)
            return launch.message(_refusal(function, name, kind), remedy)
        if "is read-only" in said and isinstance(value, np.ndarray) and not value.flags.writeable:
            return launch.message(
                f"{function.__name__} ran, but argument {name!r} is a read-only array: {said}",
                f"pass an array that can be written to; where it is only read, cuda.to_device({name})",
            )
    return None


def _find_strided(function: Any, args: Sequence[Any]) -> str:
    """Return the name of the first array of the host that is not contiguous; empty if all are."""
    for value, name in named_arguments(inspect.signature(function).parameters, args):
        array = getattr(value, "value", value)  # in ``cuda.In`` and the like
        if isinstance(array, np.ndarray) and not array.flags.forc:
            return name
    return ""


def named_arguments(names: Iterable[str], args: Iterable[Any]) -> Iterator[tuple[Any, str]]:
    """Yield arguments of a launch with the *names* of their parameters, also what is in tuples."""
    for name, value in zip(names, args, strict=False):
        yield value, name
        if isinstance(value, tuple):
            yield from named_arguments((f"{name}[{number}]" for number in range(len(value))), value)


def placed_launch(error: Exception) -> str | None:
    """Return the message of an *error* that Python raised in a front end that launches a kernel, with the place of the
    launch; ``None`` for every other."""
    launch = _find_launch(error)
    is_of_python = type(error).__module__ == "builtins" and raised_by_front_end(error)
    if launch is None or not is_of_python:
        return None
    raised = _RAISED.fullmatch(str(error))
    return launch.placed(str(error)) if raised is None else _about_raised(error, launch, **raised.groupdict())


def _about_raised(
    error: Exception, launch: _Launch, file: str | None, line: str | None, thread: str, block: str, said: str | None
) -> str:
    """Return the message of an *error* that a kernel raised in a *file* and *line*, unless they are not known, and in
    one *thread* and *block*, whose indices are given as (z, y, x)."""
    name = launch.kernel.py_func.__name__
    indices = (tuple(map(int, reversed(each.split(", ")))) for each in (thread, block))
    text = "{}\n  thread: {} of block {} of kernel {}".format(
        said or f"{name} raised {type(error).__name__}", *indices, name
    )
    text = launch.placed(text)
    if file is None or line is None:
        return text
    return with_place(text, f"at: {shown_file(file)}:{line}", file, int(line), is_call=False)


def option_message(error: Exception) -> str | None:
    """Return the message of a front end's *error* that lists all options of ``cuda.jit``, with the nearest alone;
    ``None`` for every other."""
    if (found := _OPTIONS.match(str(error))) is None:
        return None
    why, names = found[1], re.findall(r"^(\w+) ", found[2], re.MULTILINE)
    near = did_you_mean(why.rpartition(" ")[2], names) if why.startswith("Got invalid options") else ""
    return f"{why}{near}{FIX_OPTION}"


def decoration_message(error: Exception) -> str | None:
    """Return the message of an *error* that a front end raised over what ``cuda.jit`` is given in place of a function;
    ``None`` for every other."""
    if (found := _NOT_A_FUNCTION.fullmatch(str(error))) is None or not raised_by_front_end(error):
        return None
    given = f"the class {found[1]}" if found[1] else next(filter(None, found.groups()))
    text = f"cuda.jit makes a kernel of a function, got {given}\n  what to do: decorate a function: def kernel(x): ..."
    return at_call(text, "at", place_of_user(error))


def _find_launch(error: Exception) -> _Launch | None:
    """Return the innermost launch that *error* is raised in, by a method of the front end that the user calls; ``None``
    if there is none."""
    frames = [*reversed(list(traceback.walk_stack(sys._getframe(1)))), *traceback.walk_tb(error.__traceback__)]
    for number, (frame, _) in reversed(list(enumerate(frames))):
        if not is_frame_of_compiler(frame):
            continue
        method = frame.f_code.co_name
        if method == "__call__" and number < len(frames) - 1:
            continue
        if method in (*_LAUNCHES, "__getitem__", "__call__") and (kernel := _kernel_of(frame)) is not None:
            user, line = next(each for each in reversed(frames[:number]) if not is_frame_of_compiler(each[0]))
            args = frame.f_locals["args"] if method in _LAUNCHES else None
            return _Launch(kernel, method, args, place_in(user, line))
    return None


def _kernel_of(frame: FrameType) -> Any:
    owner: Any = frame.f_locals.get("self")
    dispatcher = getattr(owner, "_dispatcher", owner)
    has_options = isinstance(getattr(dispatcher, "targetoptions", None), dict)  # others may answer to any name
    return dispatcher if has_options and hasattr(dispatcher, "py_func") else None
