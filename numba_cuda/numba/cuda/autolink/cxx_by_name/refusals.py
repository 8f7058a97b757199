# SPDX-License-Identifier: BSD-2-Clause
"""Why C++ refuses a call: what NVRTC says of it, without the text that is ours."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator

from numba.cuda.cudadrv.external_code.compile import diagnostics
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError

from ..device_callable.c_abi import CABIError

_MOST_LINES = 14
_LONGEST = 118
_OWN = ("prelude(", "__nv_name_map(")
_ERROR = re.compile(r"(?P<place>.*?)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.*)")
_NOTE = re.compile(r"(?P<place>.*?)\((?P<line>\d+)\): note(?: #[\w-]+)?: (?P<text>.*)")
_WITH_CALL = re.compile(r"nca_call|cxx_\w+_[0-9a-f]{16}|\bnca::|<error-type>")
_UNKNOWN = (
    re.compile(r'identifier "(?P<name>\w+)" is undefined'),
    re.compile(r'namespace "[^"]*" has no member "(?P<name>\w+)"'),
    re.compile(r'class "[^"]*" has no member "(?P<name>\w+)"'),
)
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w{2,}(?=\s*[(<{;])")


class CxxError(CABIError):
    """C++ refuses a call, or a name is not what is asked for. ``log`` is all that NVRTC said."""

    def __init__(self, message: str, log: str = ""):
        self.log = log
        super().__init__(message)


def refusal(
    label: str, error: CompileError, include_paths: Iterable[str], texts: Callable[[], Iterable[str]]
) -> CxxError:
    """Return the error for what messages call *label*, which does not compile. *texts* returns the texts in which a
    misspelt name is looked for."""
    blocks = [block.strip("\n\0").splitlines() for block in re.split(r"\n\s*\n", error.log)]
    errors = [block for block in blocks if block and _ERROR.match(block[0]) and not block[0].startswith(_OWN)]
    of_call = [
        block for block in errors if block[0].startswith(f"{label}(") or any(label in each for each in block[1:])
    ]
    if not errors:
        return CxxError(f"{label} does not compile\n{_shortened(error.log)}", error.log)
    found = _ERROR.match(errors[0][0])
    is_of_source = found is not None and "(" not in found["place"] and errors[0] not in of_call
    if is_of_source or not of_call:
        found = _ERROR.match(errors[0][0])
        assert found is not None
        first = f"the C++ source of {label} does not compile: {found['text']}"
        remedy = diagnostics.remedy(error.log, list(include_paths))
        return _error(first, [f"at: {found['place']}:{found['line']}", *_details(errors[0], label)], remedy, error.log)
    block = of_call[0]
    found = _ERROR.match(block[0])
    assert found is not None
    at = [] if block[0].startswith(f"{label}(") else [f"at: {found['place']}:{found['line']}"]
    return _error(f"{label}: {found['text']}", [*at, *_details(block, label)], _near(found["text"], texts), error.log)


def _error(first: str, details: list[str], remedy: str, log: str) -> CxxError:
    first = _readable(first)
    if len(first) > _LONGEST:
        details = [first, *details]
        first = f"{first[: _LONGEST - 3]}..."
    if len(details) > _MOST_LINES:
        details = [*details[:_MOST_LINES], f"and {len(details) - _MOST_LINES} more lines: see the exception's .log"]
    lines = [first, *(f"  {_readable(each)}" for each in details)]
    return CxxError("\n".join([*lines, *([f"  what to do: {remedy}"] if remedy else [])]), log)


def _details(block: list[str], label: str) -> list[str]:
    """Return what follows the first line of an error: candidates, notes, and lines of the library's own source."""
    found = []
    is_own = block[0].startswith(f"{label}(")
    for line in block[1:]:
        if note := _NOTE.match(line):
            is_own = line.startswith((f"{label}(", *_OWN))
            if not _WITH_CALL.search(note["text"]):
                place = "" if is_own else f" ({os.path.basename(note['place'])}:{note['line']})"
                found.append(f"{note['text']}{place}")
        elif re.fullmatch(r"\s*\^\s*", line) or (is_own and re.match("  [^ ]", line)):
            continue
        elif not _WITH_CALL.search(line):
            found.append(line.strip())
    return [each for each in dict.fromkeys(found) if each and not each.startswith("detected during:")]


def _readable(text: str) -> str:
    text = re.sub(r'"[^"]*\b(?:nca::|nca_|cxx_\w+_[0-9a-f]{16})[^"]*" \(aka "([^"]*)"\)', r'"\1"', text)
    text = re.sub(r"\b(cuda::std|cub|thrust)::(?:__\d+|(?:CUB|THRUST|_V)_\w+)::", r"\1::", text)
    return text.replace("18446744073709551615UL", "dynamic_extent")


def _near(text: str, texts: Callable[[], Iterable[str]]) -> str:
    """Return which known names are close to the one that is unknown."""
    for pattern in _UNKNOWN:
        if found := pattern.search(text):
            known = set(_identifiers(texts())) - {found["name"]}
            near = difflib.get_close_matches(found["name"], known, n=3, cutoff=0.75)
            return f"did you mean {' or '.join(near)}?" if near else ""
    return ""


def _identifiers(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from _IDENTIFIER.findall(text)


def _shortened(log: str) -> str:
    lines = [line for line in log.strip("\0\n ").splitlines() if line.strip()]
    return "\n".join(f"  {line.strip()}" for line in lines[:_MOST_LINES])
