# SPDX-License-Identifier: BSD-2-Clause
"""The messages of a front end's errors: the diagnosis first, then the place with its line of source, then what to do
about plain Python that kernels do not have."""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import os
import re
import traceback
from collections.abc import Iterator
from typing import Any

from numba_cuda_autolink.errors import at_call
from numba_cuda_autolink.printable_texts import did_you_mean
from numba_cuda_autolink.short_tracebacks import is_raised_in_compiler, message_of, place_of_user, raised_by_front_end
from numba_cuda_autolink.source_locations import shown_file, with_place
from numba_cuda_autolink.source_syntax import find_argument, find_call, write_element

from .kernel_syntax import (
    MADE_BY_NUMPY,
    NO_ARRAYS,
    NO_RECURSION,
    NO_TEXT,
    NOT_ALLOCATED,
    calls_itself,
    find_statement,
    lines_of_assignments,
)
from .launch_messages import decoration_message, launch_message, option_message, placed_launch
from .signature_messages import signature_message
from .type_names import readable_types
from .unsupported_python import AS_LOOP, IN_CXX, OTHER_COMPILER, PRINT_VALUES, with_remedy

_CONDITION = re.compile(r">>> (truth\((?:readonly )?array\(.*\)\))\s*$", re.MULTILINE)
_STEPS = re.compile(
    r"(?:Failed in \w+ mode pipeline \(step: [^\n]*\)\n|- Resolution failure for (?:non-)?literal arguments:\n)+"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # with NUMBA_COLOR_SCHEME
_PLACES = re.compile(r"\n(?:During: |\n*File \")")
_PLACE = re.compile(r'\n(?:File "(?P<file>.*)", line |During: .* at (?P<path>.*) \()(?P<line>\d+)')
_FUNCTION = re.compile(r":\n *def (\w+)")
_CALL = re.compile(
    r"\nDuring: typing of call at (?P<path>.*) \((?P<line>\d+)(?::(?P<column>\d+))?\)"
    r"(?:\s*File .*, line (?P=line):\n *def (?P<function>\w+))?"
)
_NO_OVERLOAD = re.compile(r"No implementation of function .* found for signature:\s*>>> (.*\))\s*\n")
_REASON = re.compile(
    r"the implementation raised a specific error:\n\s*Numba\w+Error: (?:Failed in .*\n\s*)*"
    r"(?!No implementation of )(.*)"
)
_LITERAL_OR_PLAIN = re.compile(r"(?:Uni)?Tuple\(.*\)|Literal\[\w+\]\(.*?\)|unicode_type|int64")  # Numba tries both
_MAKES_TEXT = re.compile(r"unicode_type|_empty_string")
_NO_DRIVER = '"cuda" is an NVIDIA driver library'  # of cuda.pathfinder
_OPCODE = re.compile(r"Use of unsupported opcode .*Raised from (?P<file>.*) \((?P<line>\d+)\)")
_SIGNATURE = re.compile(r"^ *\* (\(.*\) -> .*)$", re.MULTILINE)
_DEFINED_AT = re.compile(r"(?: for '\$[^\n']*')?, defined at (?:None|[^\n]* \(\d+\))$", re.MULTILINE)
_INLINED = re.compile(r"(?<= for ')\w+_v\d+_(\w+)(?=(?:\.\d+)*')")  # a variable of an inlined function
_RAISED_IN_COMPILER = re.compile(r"\n *raised from [^\n]*[/\\](?:numba|numba_cuda|numba_cuda_mlir)[/\\][^\n]*")
_ALLOCATES = re.compile(r"NRT required.*|Only accept returning of array passed into the function.*")
_OF_NUMPY = re.compile(
    r"No implementation of function Function\(<function ([a-z]\w*) at [^\n]*\n"
    r".*?Overload in function '[^\n]*File: numba/cuda/np/",
    re.DOTALL,
)
_OF_COMPILER = re.compile(r".*[/\\](?:numba|numba_cuda|numba_cuda_mlir)[/\\](?!.*[/\\]tests[/\\])")
_DO_NOT_ALLOCATE = (
    "\n  what to do: make the array with cuda.local.array or cuda.shared.array, or before the kernel and pass it;"
    "\n    or set NUMBA_CUDA_ENABLE_NRT=1 before numba.cuda is imported, for memory that kernels allocate"
)
_WITHOUT_GPU = (
    "\n  what to do: set NUMBA_CUDA_AUTOLINK_EMULATE=1, and kernels run on the CPU, in an emulator;"
    "\n    autolink.build(kernel, signature, cc=(9, 0)) compiles and links without a GPU"
)
_PASS_FAILED = re.compile(r'Failure while executing pass pipeline.*?"(?P<file>[^"\n]+)":(?P<line>\d+)', re.DOTALL)
_ARRAY_FOR_NUMBER = re.compile(
    r"(?:(?P<called>.*?)\(.*: )?argument (?P<number>\d+) is an array, where C\+\+ takes a number"
)
_ELEMENT = re.compile(r"pass one element of it, such as x\[(?P<indices>[\w, ]+)\]$")
_MOST_NAMES = 20
_IN_OTHER_WORDS = "write it with indices, numbers and operators"
_RECURSION = f"{NO_RECURSION}\n  what to do: {AS_LOOP}"
IS_PLACED = re.compile(r".*\n  (?:called )?at: ")


def placed(text: str, function: Any = None) -> str:
    """Return the *text* of a front end's error, about the Python *function* if that is known, with its place as the
    second line, and without the front end's lines about steps. The place of an error in a device function that
    *function* calls stays; that of the call is last."""
    text = _COLOUR.sub("", text)
    steps = _STEPS.match(text)
    message, *_ = _PLACES.split(text[steps.end() :] if steps else text)
    length = len(message)
    message = _INLINED.sub(r"\1", _DEFINED_AT.sub("", _RAISED_IN_COMPILER.sub("", message)))
    places = _PLACE.finditer(text, length)
    said = message
    found = next((each for each in places if not _OF_COMPILER.match(each["file"] or each["path"])), None)
    if no_overload := _NO_OVERLOAD.match(message):
        reasons = {_LITERAL_OR_PLAIN.sub("", reason): reason for reason in _REASON.findall(message)}
        if len(reasons) == 1:
            message = f"{next(iter(reasons.values()))}\n  no implementation of {no_overload[1]}"
        else:
            signatures = list(dict.fromkeys(_SIGNATURE.findall(message)))
            expected = f"\n  expected: {' or '.join(signatures)}" if 0 < len(signatures) <= 4 else ""
            candidates = f"\n{message[no_overload.end() :]}" if reasons else expected
            message = (
                f"No implementation of {no_overload[1].replace('<unknown function>', 'this function')}{candidates}"
            )
    if condition := _CONDITION.search(text):
        message = f"No implementation of {condition[1]}"
    elif (allocates := _ALLOCATES.search(message)) and (of_numpy := _OF_NUMPY.match(said)):
        name = of_numpy[1]
        message = f"kernels have no numpy.{name}, which allocates memory\n  what to do: {IN_CXX}"
        message = f"{NO_ARRAYS}{_DO_NOT_ALLOCATE}" if re.fullmatch(MADE_BY_NUMPY, name) else message
    elif allocates and _MAKES_TEXT.search(text):
        message = f"{NO_TEXT}\n  what to do: {PRINT_VALUES}"
    elif allocates:
        message = f"{NOT_ALLOCATED if 'NRT' in allocates[0] else NO_ARRAYS}{_DO_NOT_ALLOCATE}"
    place = None if found is None else (_normal(found["file"] or found["path"]), int(found["line"]))
    message = readable_types(with_remedy(message.rstrip(), place))
    if found is None or place is None:
        return message.rstrip()
    filename, line = place
    message = _with_element(message, filename, line)
    name, caller = _functions(text, found, function)
    at = f"{shown_file(filename)}:{line}"
    where = at + (f" in {name}" if name else "")
    message = re.sub(rf"\n  in the function: {re.escape(at)} in .*\n.*\n *\^+", "", message)
    if IS_PLACED.match(message):
        is_known = re.search(rf" {re.escape(at)}(?: in .*)?$", message, re.MULTILINE)
        return message.rstrip() if is_known else before_advice(message.rstrip(), f"called from: {where}")
    called_at = [(_normal(call["path"]), call["line"], call) for call in _CALL.finditer(text, length)]
    calls = {f"{shown_file(path)}:{line}": call["function"] for path, line, call in called_at}
    columns = {(path, int(line)): int(call["column"]) for path, line, call in called_at if call["column"]}
    called = [
        f"  called from: {call}" + (f" in {caller}" if caller else "") for call, caller in calls.items() if call != at
    ]
    called += caller
    first, *others = message.rstrip().split("\n")
    text = "\n".join([first, *called, *others])
    last_column = columns.get((filename, line))
    return _at(text, filename, line, last_column=last_column, function=name, is_named=at not in calls)


def _at(
    text: str,
    filename: str,
    line: int,
    *,
    last_column: int | None = None,
    function: str = "",
    is_call: bool = True,
    is_named: bool = False,
) -> str:
    """Return *text* with its place: a *line*, of a *function* if that is known, or what in it the text is about, which
    may be a call: only one that it names, if *is_named*."""
    statement = find_statement(text, filename, line)
    if len(lines := lines_of_assignments(text, filename, line)) > 1:
        text = before_advice(text, f"assigned in lines: {', '.join(map(str, lines))}")
    columns = None
    if statement is not None:
        line, columns = statement
        is_call = False
    place = f"at: {shown_file(filename)}:{line}{function and ' in '}{function}"
    return with_place(
        text, place, filename, line, is_call=is_call, is_named=is_named, last_column=last_column, columns=columns
    )


def _with_element(message: str, filename: str, line: int) -> str:
    """Return the *message* of a call in a *line* of a file, with the element of its own array where it takes one."""
    refused, todo = _ARRAY_FOR_NUMBER.search(message), _ELEMENT.search(message)
    if refused is None or todo is None:
        return message
    array = find_argument(filename, line, refused["called"], int(refused["number"]))
    element, dimensions = ("", 0) if array is None else write_element(array, todo["indices"].count(",") + 1)
    if array is None or not element:
        return message
    is_row = f": {ast.unparse(array)} is a row of a {dimensions}d array" if dimensions else ""
    return f"{message[: todo.start()]}pass one element of it, {'' if is_row else 'such as '}{element}{is_row}"


def before_advice(message: str, *details: str) -> str:
    """Return *message* with *details* as lines before what to do, which is last."""
    said, is_advised, advice = message.partition("\n  what to do: ")
    return "\n".join([said, *(f"  {each}" for each in details)]) + is_advised + advice


def _functions(text: str, found: re.Match[str], function: Any) -> tuple[str, list[str]]:
    """Return the name of the function with the place *found* in *text*, and lines about its call: where a front end has
    inlined it in the Python *function*, its *text* names none."""
    if function is None:
        defined = _FUNCTION.match(text, found.end())
        return (defined[1] if defined else ""), []
    code = function.__code__
    inlined = re.compile(rf"line {found['line']}:\n *def (?!{code.co_name}\b)(\w+)").search(text)
    is_own = int(found["line"]) in (line for *_, line in code.co_lines())
    if inlined is None or (is_own and _normal(found["file"] or found["path"]) == _normal(code.co_filename)):
        return function.__qualname__, []
    call = find_call(code.co_filename, code.co_firstlineno, inlined[1])
    shown = "" if call is None else f"{shown_file(call[0])}:{call[1]} in "
    return inlined[1], [f"  called from: {shown}{function.__qualname__}"]


def _normal(filename: str) -> str:
    """Return the path of a file as every place has it; other names as they are."""
    return filename if filename.startswith("<") else os.path.abspath(filename)


def placed_error(error: Exception) -> str | None:
    """Return the message of a front end's *error* as `placed` does. Where it names no place, it is that of the
    statement whose types were inferred, or of the launch. Where there is no GPU, it says what runs without one. Return
    ``None`` for an error of another class, unless a front end raised it over a statement of the user, or a launch."""
    if (known := message_of(error)) is not None:
        return known
    if _is_of_class(error, "CudaSupportError"):
        diagnosis, *advice = " ".join(str(error).split()).rstrip(" :.").split(". ")
        text = "\n  ".join([diagnosis, *advice]) + _WITHOUT_GPU
        return at_call(text, "at", place_of_user(error))
    if _is_of_class(error, "DynamicLibNotFoundError") and (missing := _missing_library(error)):
        return at_call(missing, "at", place_of_user(error))
    for explain in (launch_message, option_message, decoration_message, signature_message):
        if (message := explain(error)) is not None:
            return message
    if at := _OPCODE.match(str(error)) or _PASS_FAILED.match(str(error)):
        return _at(with_remedy(str(error)), at["file"], int(at["line"]), is_call=False)
    is_of_front_end = _is_of_class(error, "NumbaError")
    text = placed(str(error)) if is_of_front_end else readable_types(with_remedy(str(error)))
    place = next(_statements(error), None)
    is_advised = "what to do: " in text or "; did you mean " in text
    if isinstance(error, AttributeError) and isinstance(error.name, str) and not is_advised:
        text += _name_meant(error.name, error.obj)
    if place is not None and not text and is_raised_in_compiler(error):
        text = f"the compiler has no rule for this statement: {_raised(error)}\n  what to do: {_IN_OTHER_WORDS}"
    if place is not None and not IS_PLACED.match(text):
        filename, line = place.filename, place.line
        text = _at(text, filename, line, last_column=place.col)
    return text if is_of_front_end or (place is not None and raised_by_front_end(error)) else placed_launch(error)


def _missing_library(error: Exception) -> str:
    """Return which library was not found, and what to do; empty if that is unknown. Without nvJitLink, cuda.core lets
    the driver link, which may not be there either."""
    from numba_cuda_autolink.missing_parts import missing_library  # which nothing needs where all are there

    if str(error).startswith(_NO_DRIVER):
        from numba.cuda.cudadrv.external_code.platform.cuda_libraries import why_missing

        return missing[0] if (missing := why_missing("nvJitLink")) else ""
    found = missing_library(str(error))
    return "{}\n  what to do: {}; numba-cuda-autolink doctor checks all packages".format(*found) if found else ""


def _raised(error: Exception) -> str:
    """Return the class of an *error* without a text, and the module and line that raised it."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return f"{type(error).__name__} in {frame.f_globals.get('__name__')}, line {line}"


def _name_meant(name: Any, owner: Any) -> str:
    """Return the end of a message about a *name* that its *owner* does not have: which one is meant, or what it has."""
    if meant := did_you_mean(name, dir(owner)):
        return meant
    if hasattr(builtins, str(name)):
        return f"\n  what to do: write {name}(...), a function of Python"
    if inspect.ismodule(owner):
        return f"\n  what to do: use a name that {owner.__name__} has, or a function of C++, autolink.cxx(...)"
    names = [each for each in dir(owner) if not each.startswith("_")]
    return f"\n  what to do: use one of its names: {', '.join(names)}" if 0 < len(names) <= _MOST_NAMES else ""


def message_of_python(error: Exception) -> str | None:
    """Return the message of an *error* of a class of Python's own, which a front end raised over a statement of the
    user, if it says what to do; ``None`` for every other."""
    is_of_python = type(error).__module__ == "builtins" and raised_by_front_end(error) and is_raised_in_compiler(error)
    if not is_of_python or next(_statements(error), None) is None or launch_message(error) is not None:
        return None
    text = placed_error(error)
    is_advised = text is not None and ("\n  what to do: " in text or "; did you mean " in text)
    return text if is_advised else None


def lines_of(error: Exception) -> set[int]:
    """Return the lines that a front end names in its *error*, or else was at when it raised it."""
    named = {int(each["line"]) for each in _PLACE.finditer(str(error))} if _is_of_class(error, "NumbaError") else set()
    return named or {place.line for place in itertools.islice(_statements(error), 1)}


def not_compiled(error: Exception) -> str | None:
    """Return the message for a statement that a front end does not compile, where its *error* calls that a bug of its
    own, with the reason as context; ``None`` where the statement is not the user's."""
    reason = error.__context__
    own = next(_statements(reason), None) if isinstance(reason, Exception) else None
    if (place := own or next(_statements(error), None)) is None:
        return None
    said = str(reason).partition("\n")[0]
    text = with_remedy(said)
    if "'func.call' op" in str(reason) and calls_itself(place.filename, place.line):
        text = _RECURSION
    elif own is None:
        text = "numba-cuda-mlir cannot compile a function of Python or NumPy that this line calls"
    elif text == said:
        text = f"numba-cuda-mlir cannot compile this statement: {said}"
    text = text if "\n" in text else f"{text}\n  what to do: {OTHER_COMPILER}"
    filename, line = place.filename, place.line
    return _at(text, filename, line, last_column=place.col)


def add_place(error: Any) -> None:
    """Add to the text of a front end's typing *error* the place of the statement, if it names none, as where a name is
    not defined: of a device function, the front end would add the place of the call alone."""
    loc = None if _PLACES.search(str(error)) else next(_statements(error), None)
    if loc is not None:
        error.patch_message(f"{error}\n{loc.strformat()}")


def _is_of_class(error: Exception, name: str) -> bool:
    """Return whether *error* is of a class of this *name*, which each front end has of its own."""
    return any(each.__name__ == name for each in type(error).__mro__)


def _statements(error: Exception) -> Iterator[Any]:
    """Yield the places of the user's statements that a front end was at when it raised *error*, the innermost first."""
    frames = [frame.f_locals for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__)))]
    states: list[Any] = [each["state"] for each in frames if type(each.get("state")).__name__ == "StateDict"]
    inner = [each.get(name) for each in frames for name in ("inst", "stmt", "self")]
    for each in (*inner, *(state.func_ir for state in states)):  # of the function, where no statement is known
        loc: Any = inspect.getattr_static(each, "loc", None)  # of any object, which may raise
        if type(loc).__name__ == "Loc" and not _OF_COMPILER.match(loc.filename):
            yield loc
