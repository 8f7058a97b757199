# SPDX-License-Identifier: BSD-2-Clause
"""The text of an error of C++: what NVRTC says, without what is ours, in lines of the usual form."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from numba.cuda.cudadrv.external_code.compile.mdspan_indices import BY_CALL

from ..c_abi.c_types import CABIError

_MOST_LINES = 6
_LONGEST = 118
OWN_TEXTS = ("prelude", "__nv_name_map")
NOTE = re.compile(r"(?P<place>.*?)\((?P<line>\d+)\): note(?: #[\w-]+)?: (?P<text>.*)")
BUILT_IN_NOTE = re.compile(r"\s*Note #[\w-]+: (?P<text>.*)")  # of a function of the compiler's own, at no line
_WITH_CALL = re.compile(r"nca_call|nca_T=|cxx_\w+_[0-9a-f]{16}|\bnca::|<error-type>")
NAMESPACE = "namespace of autolink.cxx"  # what NVRTC calls the text that uses it
_LAMBDA = re.compile(r" *inline __device__ auto cxx_\w+_made\(\) \{ return (?P<text>.*); \}$")
CANDIDATE = re.compile(r'\bfunction (?:template )?"')  # with its declaration
# Headers with operators of their own types, which NVRTC lists as candidates for all other types.
_OTHER_OPERATORS = re.compile(r"cuda_(?:fp16|bf16)\.hp?p?$")
# The first line of an error: with what messages call the call, and without where there is no room for it.
CALL_TITLE = "{}: {}", "{}"
_SHORTEST_LABEL = 20
_ALSO_KNOWN = re.compile(r' \(aka "[^"]*"\)')
_TEMPLATE_ARGUMENTS = re.compile(r"<(?!\.\.\.>)(?:[^<>]|<\.\.\.>)+>")
# What a call's text calls a struct that has a dtype, a function that is an argument, and a struct that it declares for
# a record.
_ALIAS = re.compile(r"using (nca_record_[0-9a-f]+)_t = (.*?);")
FUNCTOR = re.compile(r'#line 1 "(.*)"\nstruct (nca_functor_[0-9a-f]+) ')
_STRUCT = re.compile(r"\bnca_(?:(record|functor)|struct)_[0-9a-f]{12}\b")
_DECLARED = re.compile(r" \((?P<what>declared|previous definition) at (?P<place>[^()]*)\)")


class CxxError(CABIError):
    """C++ refuses a call, or does not have a name as it is used. ``log`` is all that NVRTC printed."""

    __module__ = "numba.cuda.autolink"  # as tracebacks show it

    def __init__(self, message: str, log: str = ""):
        self.log = log
        self._explained: CxxError | None = None  # with what the types of the arguments tell, once that is known
        super().__init__(message)


def split_declared(text: str) -> tuple[str, list[str]]:
    """Return the *text* of an error without the place of a declaration, and a line with that, if it has one."""
    found = _DECLARED.search(text)
    return (text, []) if found is None else (text.replace(found[0], ""), [f"{found['what']} at: {found['place']}"])


def refuse_call(label: str, diagnosis: str, remedy: str) -> CxxError:
    """Return the error for what messages call *label*, which C++ accepts and which is wrong."""
    return make_error(write_first_line(CALL_TITLE, label, diagnosis), (), remedy, "")


def name_structs(log: str, text: str) -> str:
    """Return *log* with the names that C++ has for structs; the *text* of a call declares what it calls them."""
    names = dict(_ALIAS.findall(text)) | {functor: f"function {name}" for name, functor in FUNCTOR.findall(text)}
    return _STRUCT.sub(lambda found: names.get(found[0], found[0]) if found[1] else "record", log)


def make_error(
    first_lines: Sequence[str],
    details: Sequence[str],
    remedy: str,
    log: str,
    place: Sequence[str] = (),
    more: Sequence[str] = (),
) -> CxxError:
    """Return the error with these lines: *place* is below the first, and *more* above what to do. Of many others, the
    first are shown."""
    first, *details = *first_lines, *details
    if len(details) > _MOST_LINES + 1:
        details = [*details[:_MOST_LINES], f"and {len(details) - _MOST_LINES} more lines: see the exception's .log"]
    lines = [first, *(f"  {readable(each)}" for each in [*place, *details, *more])]
    return CxxError("\n".join([*lines, *([f"  what to do: {remedy}"] if remedy else [])]), log)


def write_first_line(titles: tuple[str, str], label: str, diagnosis: str) -> list[str]:
    """Return the first of *titles* with what messages call a call and the *diagnosis*, and lines with what it leaves
    out.

    Where it would be too long, other names of types and the template arguments in the diagnosis are left out, and the
    label is shortened, or the second title has none. The diagnosis is never cut.
    """
    with_label, without = titles
    if len(whole := with_label.format(label, diagnosis)) <= _LONGEST:
        return [whole]
    shown, shorter = _ALSO_KNOWN.sub("", diagnosis), ""
    while len(with_label.format("", shown)) > _LONGEST - _SHORTEST_LABEL and shorter != shown:
        shorter, shown = shown, _TEMPLATE_ARGUMENTS.sub("<...>", shown)
    others = [f"call: {label}", *([diagnosis] if shown != diagnosis else [])]
    if len(without.format(shown)) > _LONGEST:
        return [without.format(diagnosis), f"call: {label}"]
    room = _LONGEST - len(with_label.format("", shown))
    if room < _SHORTEST_LABEL:
        return [without.format(shown), *others]
    if len(label) <= room:
        return [with_label.format(label, shown), *others[1:]]
    without_types = f"{label.partition('(')[0]}(...)"
    if len(without_types) > room:
        return [without.format(shown), *others]
    return [with_label.format(without_types, shown), *others]


def find_details(block: Sequence[str], label: str) -> list[str]:
    """Return what follows the first line of an error: candidates, notes, and lines of the library's own source."""
    found = []
    has_source = not block[0].startswith(f"{label}(")  # a line of the library, below its note
    of_half = any("operand types are" in line and re.search("__half|__nv_bfloat16", line) for line in block)
    for line in block[1:] if has_source else (re.sub(r" at line \d+$", "", each) for each in block[1:]):
        if note := NOTE.match(line):
            is_other = not of_half and _OTHER_OPERATORS.search(note["place"]) is not None
            is_own = line.startswith((f"{label}(", *OWN_TEXTS))
            has_source = not (is_own or is_other or CANDIDATE.search(note["text"]))
            if not is_other and not _WITH_CALL.search(note["text"]):
                place = "" if is_own else f" ({os.path.basename(note['place'])}:{note['line']})"
                found.append(f"{note['text']}{place}")
        elif re.fullmatch(r"\s*\^\s*", line) or (not has_source and re.match("  [^ ]", line)):
            continue
        elif built_in := BUILT_IN_NOTE.match(line):
            if CANDIDATE.search(built_in["text"]) and not _WITH_CALL.search(line):
                found.append(built_in["text"])
        elif not _WITH_CALL.search(line):
            found.append(line.strip())
    found = [each for each in dict.fromkeys(found) if each and each != f"{BY_CALL}:"]
    if len(block) > 2 and block[2].strip() == "^":
        lambda_text = _LAMBDA.match(block[1])
        shown = lambda_text["text"] if lambda_text else block[1].strip()
        column = block[2].index("^") - block[1].index(shown)
        if lambda_text and 0 <= column < len(shown):
            found = [shown, *found]
        if found[:1] == [shown]:
            found.insert(1, f"{' ' * column}^")
    return found


def readable(text: str) -> str:
    text = re.sub(r'"[^"]*\b(?:nca::|nca_|cxx_\w+_[0-9a-f]{16})[^"]*" \(aka "([^"]*)"\)', r'"\1"', text)
    text = re.sub(r"\bnca_python_\d+_(\w+)_\1_[0-9a-f]{16}\b", r"\1", text)
    text = re.sub(r"\b(\w+)_[0-9a-f]{16}_struct\d+\b", r"what \1 returns", text)
    text = re.sub(r"\b(cuda::std|cub|thrust)::(?:__\d+|(?:CUB|THRUST|_V)_\w+)::", r"\1::", text)
    return text.replace("18446744073709551615UL", "dynamic_extent").replace("__nv_bool", "bool")


def shorten_log(log: str) -> str:
    lines = [line for line in log.strip("\0\n ").splitlines() if line.strip()]
    return "\n".join(f"  {line.strip()}" for line in lines[:_MOST_LINES])
