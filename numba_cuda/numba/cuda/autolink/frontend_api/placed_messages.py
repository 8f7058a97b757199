# SPDX-License-Identifier: BSD-2-Clause
"""The messages of a front end's errors: the diagnosis first, then the place with its line of source."""

from __future__ import annotations

import os
import re
import traceback

from numba.core.errors import NumbaError
from numba.cuda.core import ir
from numba.cuda.cudadrv.external_code.diagnostics.source_locations import shown_file, with_place

_STEPS = re.compile(r"(?:Failed in \w+ mode pipeline \(step: [^\n]*\)\n)+")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # with NUMBA_COLOR_SCHEME
_PLACES = re.compile(r"\n(?:During: |\n*File \")")
_PLACE = re.compile(r'\n(?:File "(?P<file>.*)", line |During: .* at (?P<path>.*) \()(?P<line>\d+)')
_FUNCTION = re.compile(r":\n *def (\w+)")
_CALL = re.compile(r"\nDuring: typing of call at (?P<path>.*) \((?P<line>\d+)\)")
_NO_OVERLOAD = re.compile(r"No implementation of function .* found for signature:\s*>>> (\w+\(.*\))\s*\n")
_REASON = re.compile(r"the implementation raised a specific error:\n\s*NumbaTypeError: (.*)")
_IS_PLACED = re.compile(r".*\n  (?:called )?at: ")


def placed(text: str, function: str = "") -> str:
    """Return the *text* of a front end's error with its place as the second line, and without the front end's lines
    about steps. The place of an error in a device function that *function* calls stays; that of the call is last."""
    text = _COLOUR.sub("", text)
    steps = _STEPS.match(text)
    message, *_ = _PLACES.split(text[steps.end() :] if steps else text)
    found, length = _PLACE.search(text, len(message)), len(message)
    if no_overload := _NO_OVERLOAD.match(message):
        reasons = set(_REASON.findall(message))
        if len(reasons) == 1:
            message = f"{reasons.pop()}\n  no implementation of {no_overload[1]}"
        else:
            message = f"No implementation of {no_overload[1]}\n{message[no_overload.end() :]}"
    if found is None:
        return message.rstrip()
    filename, line = found["file"] or found["path"], int(found["line"])
    filename = filename if filename.startswith("<") else os.path.abspath(filename)
    if not function and (defined := _FUNCTION.match(text, found.end())):
        function = defined[1]
    place = f"{shown_file(filename)}:{line}" + (f" in {function}" if function else "")
    if _IS_PLACED.match(message):
        return message.rstrip() if f" {place}\n" in message else f"{message.rstrip()}\n  called from: {place}"
    calls = dict.fromkeys(f"{shown_file(call['path'])}:{call['line']}" for call in _CALL.finditer(text, length))
    called = [f"  called from: {call}" for call in calls if call != f"{shown_file(filename)}:{line}"]
    first, *others = message.rstrip().split("\n")
    return with_place("\n".join([first, *called, *others]), f"at: {place}", filename, line)


def placed_error(error: Exception) -> str:
    """Return the message of a front end's *error* as `placed` does. Where it names no place, it is that of the
    statement whose types were inferred. The message of any other error is as it is."""
    if not isinstance(error, NumbaError):
        return str(error)
    text = placed(str(error))
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        for name in ("inst", "self"):
            loc = getattr(frame.f_locals.get(name), "loc", None)
            if isinstance(loc, ir.Loc) and not _IS_PLACED.match(text):
                text = with_place(text, f"at: {shown_file(loc.filename)}:{loc.line}", loc.filename, loc.line)
    return text
