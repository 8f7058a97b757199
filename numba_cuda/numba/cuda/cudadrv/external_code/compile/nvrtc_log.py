# SPDX-License-Identifier: BSD-2-Clause
"""Explain why a source does not compile: the errors in NVRTC's log, what to do, and a file with the source."""

from __future__ import annotations

import contextlib
import hashlib
import linecache
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from numba_cuda_autolink.files import read_regular_file
from numba_cuda_autolink.given_sources import place_in_text, replaced_escape
from numba_cuda_autolink.source_locations import shown_file, with_place

from ..cache.disk import FAILED_SOURCES
from ..cache.store import current_store
from ..inputs.cuda_source import HOST_HEADERS, CompileOptions
from .damaged_toolkit import explain_damage, explain_missing_headers
from .header_packages import explain_misspelt, explain_package
from .later_standards import explain_later
from .mdspan_indices import explain_indices, what_to_index
from .template_deduction import explain_conflict, explain_constraint
from .unknown_names import NOT_ON_DEVICES, explain_undeclared, explain_unknown, find_similar_header

_MOST_OTHERS = 2
_PTX = re.compile(r"\s*\.(?:version|target|visible|address_size)\b")
_MOST_SHOWN = 5
FOR_THE_HOST = "put what only the host needs between #ifndef __CUDACC_RTC__ and #endif"
_MOST_ERRORS = 100  # with which NVRTC ends
_ERROR = re.compile(
    r"(?:(?P<place>.*?)\((?P<line>\d+)\)|(?P<options>nvrtc)|At end of source): (?:catastrophic )?error"
    r"(?: #[\w-]+)?: (?P<text>.*)"
)
NO_RTTI = "use a virtual function or a number for the kind of an object: device code has no typeid and no dynamic_cast"
ASSEMBLY = "correct that instruction of PTX in asm(...)"
_PTXAS = re.compile(r"ptxas .*line \d+; error\s*: (?P<text>.*)")
_DECLARED_AT = re.compile(r'\((declared|previous definition) at line (\d+)(?: of "?([^"()]*)"?)?\)')
_TO_MATCH, _NOT_CLOSED = " to match this", "missing closing quote"
_NOT_MARKED = "is not marked __device__"
_OPENED = re.compile(rf'(?P<place>.*)\((?P<line>\d+)\): note(?: #[\w-]+)?:{_TO_MATCH} (?P<opening>"[({{\[]")')
_DIRECTIVE = re.compile(r'#error directive: "?(?P<text>[^"\n]+)')
_WARNINGS = "NVRTC log messages: "
_MESSAGE = re.compile(rf"^(?P<before>{_WARNINGS})?(?P<place>[^\n()]+)\((?P<line>\d+)\): (?=warning|note)", re.MULTILINE)
_LINE_MARKER = re.compile(r'^#line 1 "(.*)"$', re.MULTILINE)
_REMARK = re.compile(r'^Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"$', re.MULTILINE)
_FIX_LINE = "fix the source at that line"
# What to write for an error of a source, where its text alone tells that.
_FIXES = [
    (re.compile(pattern), todo)
    for pattern, todo in (
        (
            "expression must be a modifiable lvalue",
            "do not assign to what is const: leave out that const where it is declared, or write to a copy",
        ),
        ("too many arguments in function call", "pass no more arguments than the function there declares"),
        ("too few arguments in function call", "pass all arguments that the function there declares"),
        ('use the "typename" keyword', "write typename before that type"),
        ('use the "template" keyword', "write template before that name"),
        (
            r'no operator "[^"]+" matches these operands',
            "define that operator for the class, as a __device__ function, or use an operator that it has",
        ),
        (
            "object of abstract class type",
            "make an object of a derived class that overrides the pure virtual functions, or override them there",
        ),
    )
]
_SUMMARY = re.compile(r"\d+ (?:catastrophic )?errors? detected|Compilation terminated")
_MISSING_HEADER = re.compile(r'cannot open source file "([^"]+)"')
_UNKNOWN = re.compile(
    r'identifier "(?P<name>\w+)" is undefined'
    r'|(?:namespace "(?P<scope>[^"]*)"|(?:class|enum) "[^"]*") has no member "(?P<member>\w+)"'
)
_HOST_HEADER = re.compile(r"features\.h$|(?:bits|gnu|sys|asm|linux)/")
_ENDED = "NVRTC ended "  # in the middle of a compile
_BUILT_IN = "__nv_nvrtc_builtin_header.h"
# What NVRTC has without a header, by the name of C's header.
_NEED_NO_HEADER = {
    "stdio": "printf",
    "assert": "assert",
    "stdlib": "what it has of them, such as malloc and abs,",
    "math": "what it has of them, such as sqrtf and fmax,",
    "string": "what it has of them, such as memcpy and memset,",
}
_TYPES = re.compile(r" *(?:argument|operand|object) types? (?:are|is): ")
# Of a type of the host's library that host_headers=True declares only.
_INCOMPLETE = re.compile(r'incomplete (?:type|class) "(?:const )?std::(?:basic_)?(\w+)')
_VERSION = re.compile(r"::__\d+::")  # of a namespace
# C++'s have no suffix; C's are listed.
_STANDARD_HEADER = re.compile(r"[a-z_]+|(?:assert|float|limits|math|std(?:arg|bool|def|int|io|lib)|string|time)\.h")


@dataclass(frozen=True)
class Diagnostic:
    """An error of NVRTC: its *text*, the *place* (a file, or what a line directive names) and *line*, and all *lines*
    of the log about it, the first with the text. One without a line is about the end of the source or, if its place is
    ``nvrtc``, about options; if it is ``ptxas``, about assembly."""

    text: str
    place: str = ""
    line: str = ""
    lines: tuple[str, ...] = ()

    @property
    def unknown(self) -> str:
        """The name that C++ does not know, with its namespace where that is known; empty for another error."""
        if found := _UNKNOWN.search(self.text):
            return f"{found['scope']}::{found['member']}" if found["scope"] else found["name"] or found["member"]
        if not ("no storage class or type specifier" in self.text or "a class or namespace name" in self.text):
            return ""
        word = re.sub(r"[^\w:].*", "", self.marked)
        return word if word.startswith(("cub::", "cuda::")) else word.partition("::")[0]

    @property
    def is_unclosed(self) -> bool:
        """Whether something is not closed, as its opening shows."""
        return _TO_MATCH in self.text or self.text == _NOT_CLOSED

    @property
    def marked(self) -> str:
        """The text at which NVRTC points; empty if it points at none."""
        is_marked = len(self.lines) > 2 and self.lines[2].strip() == "^"
        return self.lines[1][self.lines[2].index("^") :] if is_marked else ""

    def explain_standard(self, options: CompileOptions) -> str:
        """Return what to do where its line has what a later C++ standard has than that of *options*; empty for another
        error."""
        return explain_later(_VERSION.sub("::", self.text), self.marked, "".join(self.lines[1:2]), options.options)


@dataclass(frozen=True)
class CodePlace:
    """A *line* of a *file* with C++, or with what makes it, and the *columns* that an error is about, if they are
    known: there, or in the *text* of C++ if the line has another, as one of a formatted literal."""

    file: str
    line: int
    columns: tuple[int, int] | None = None
    text: str = ""

    @classmethod
    def of(cls, error: Diagnostic, file: str, line: int) -> CodePlace:
        """Return the place of an *error*, which is at a *line* of a *file*."""
        words = re.match(r"\w+|[^\w\s]+", error.marked)
        if words is None:
            return cls(file, line)
        shown, written = error.lines[1].strip(), linecache.getline(file, line)
        is_there = shown in written
        begin = (written.index(shown) if is_there else 0) + len(error.lines[1].lstrip()) - len(error.marked)
        return cls(file, line, (begin, begin + len(words[0])), "" if is_there else shown)

    def add_to(self, message: str) -> str:
        """Return *message* with the place as its second line, and below it the code with a caret."""
        shown = f"at: {shown_file(self.file)}:{self.line}"
        return with_place(message, shown, self.file, self.line, is_call=False, columns=self.columns, text=self.text)


def list_errors(log: str, code: str = "") -> list[Diagnostic]:
    """Return the errors in NVRTC's *log* of *code*: first of what is not closed, as most after it is wrong."""
    if log.startswith(_ENDED):
        return [Diagnostic(log.partition("\n")[0])]
    found = [error for block in _blocks(log) if (error := _read_error(block.splitlines(), code)) is not None]
    return sorted(found, key=lambda error: not error.is_unclosed)


def _blocks(log: str) -> list[str]:
    return [block.strip("\n\0") for block in re.split(r"\n\s*\n", log)]


def _read_error(lines: Sequence[str], code: str) -> Diagnostic | None:
    if not lines:
        return None
    lines = _with_places(lines)
    if (found := _ERROR.match(lines[0])) is None:
        refused = _PTXAS.match(lines[0])
        return refused and Diagnostic(refused["text"], "ptxas", lines=tuple(lines))
    opened = _OPENED.match(lines[1]) if not found["place"] and len(lines) > 1 else None
    if opened is not None:
        text = f"{found['text']}{_TO_MATCH} {opened['opening']}"
        head = f"{opened['place']}({opened['line']}): error: {text}"
        return Diagnostic(text, opened["place"], opened["line"], (head, *lines[2:]))
    caret = next((number for number, each in enumerate(lines) if each.strip() == "^"), 0)
    if caret > 2 and all(_TYPES.match(each) for each in lines[1 : caret - 1]):
        lines = [lines[0], *lines[caret - 1 : caret + 1], *lines[1 : caret - 1], *lines[caret + 1 :]]
    error = Diagnostic(found["text"], found["place"] or found["options"] or "", found["line"] or "", tuple(lines))
    if wrong := explain_indices(error.text, error.marked, lines, code):
        return replace(error, **wrong)
    if error.text.startswith("A function without execution space annotations"):
        name = re.match(r"[\w:~]*", error.marked)
        return replace(error, text=f"the function {name[0] if name else ''} {_NOT_MARKED}")
    return error


def _with_places(lines: Sequence[str]) -> list[str]:
    """Return the *lines* about an error with ``file:line`` where NVRTC has the line of a declaration."""
    first = _ERROR.match(lines[0])
    own = first["place"] if first else None
    if not own:
        return [*lines]
    return [_DECLARED_AT.sub(lambda found: f"({found[1]} at {found[3] or own}:{found[2]})", each) for each in lines]


def title_warnings(messages: str) -> str:
    """Return the text of a Python warning with *messages* of NVRTC, and how this project spells NVRTC's option."""
    remark = 'what to do: correct the code, or turn a warning off by its number: options={"diag_suppress": number}'
    return f"{_WARNINGS}{_REMARK.sub(remark, messages)}"


def in_python(messages: str, code: str, name: str) -> str:
    """Return *messages* of NVRTC about the *code* of a unit that is called *name*, with lines of the Python file that
    has the text of a source."""

    def place(found: re.Match[str]) -> str:
        marker = _find_marker(code, found["place"])
        text = code[marker.end() + 1 :] if marker else code if found["place"] == os.path.basename(name) else ""
        at = place_in_text(text, int(found["line"]))
        return f"{found['before'] or ''}{shown_file(at[0])}:{at[1]}: " if at is not None else found[0]

    return _MESSAGE.sub(place, messages)


def _find_marker(code: str, place: str) -> re.Match[str] | None:
    """Return the directive in *code* after which lines are those of *place*, which may be the name of a file that a
    debugger finds."""
    written = re.sub(r"[^\w.-]+", "_", place)
    found = _LINE_MARKER.finditer(code)
    return next((each for each in found if each[1] == place or os.path.basename(each[1]) == written), None)


def errors_in(log: str) -> str:
    """Return the errors in NVRTC's *log*, each with its line of source, the first few of many; without warnings, or the
    whole log if it has no errors."""
    errors = list_errors(log)
    if not errors or not errors[0].lines:
        return log.strip("\n\0 ")
    shown = ["\n".join(error.lines) for error in errors[:_MOST_SHOWN]]
    others = len([block for block in _blocks(log) if block and not _SUMMARY.match(block)]) - len(shown)
    if len(errors) > len(shown):
        shown.append(f"and {len(errors) - len(shown)} more errors: see the exception's .log")
    elif others > 1:  # one of them is the log's own heading
        shown.append("For the warnings, see the exception's .log.")
    return "\n".join(shown)


def other_errors(errors: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return those of *errors* that do not follow from the first. Others of syntax at its line follow from one of
    syntax; and from an opening that is not closed all after it but unknown names in the same text: what follows the
    text is not where it should be."""
    if not errors:
        return []
    first, others = errors[0], errors[1:]
    if first.is_unclosed and first.line:
        return [
            each
            for each in others
            if each.place == first.place and each.line and (int(each.line) < int(first.line) or each.unknown)
        ]

    def of_syntax_at(error: Diagnostic) -> tuple[str, str] | None:
        return (error.place, error.line) if error.text.startswith("expected ") else None

    first_of_syntax = of_syntax_at(first)
    return [each for each in others if first_of_syntax is None or of_syntax_at(each) != first_of_syntax]


def list_others(errors: Iterable[tuple[str, str]]) -> list[str]:
    """Return lines about the *errors* after the first, of which the places and the texts are given: those of a few, and
    the number of the rest."""
    lines = [f"also at: {place}: {text}" for place, text in errors]
    left_out = len(lines) - _MOST_OTHERS
    if left_out > 1:
        lines[_MOST_OTHERS:] = [f"and {left_out} more errors"]
    return lines


def first_error(log: str, name: str) -> str:
    """Return the first error in NVRTC's *log* of the source *name*, after its line; empty if there is none."""
    error = next(iter(list_errors(log)), None)
    if error is None:
        return ""
    base = os.path.basename(error.place)
    place = "line " + error.line if base == os.path.basename(name) else f"{base}:{error.line}"
    text = directive["text"] if (directive := _DIRECTIVE.match(error.text)) else error.text
    return f"{place}: {text}" if error.line else text


def remedy(
    error: Diagnostic, options: CompileOptions, texts: Iterable[str] = (), errors: Iterable[Diagnostic] = ()
) -> str:
    """Return what to do about an *error* of a source that is compiled with *options*. *texts* are those of the source
    and its headers, in which names like one that is unknown are looked for; *errors* are all that NVRTC found."""
    text, include_paths, macros = error.text, options.include_paths, [name for name, _ in options.defines]
    missing = _MISSING_HEADER.search(text)
    has_ended = text.startswith(_ENDED)
    header = missing[1] if missing else ""
    if damage := explain_damage(text, error.place, error.unknown, header, has_ended=has_ended):
        return damage
    if has_ended:
        return "make the source smaller, or its templates less deep; or raise the limit that it reached"
    if error.place.endswith(_BUILT_IN) and macros:
        return (
            f"rename a macro in defines ({', '.join(macros)}): macros replace names in the compiler's own headers, too,"
            " whose templates have parameters of one letter"
        )
    if error.place.startswith((HOST_HEADERS, *_toolkit())) and (replaced := _macro_in(error, macros)):
        return f"rename the macro {replaced} in defines: it replaces that name in the installed header, too"
    if error.place == "nvrtc":
        words = re.findall(r"[a-z]\w*", text.replace("-", "_"))
        named = {name: value for name, value in options.options if name in words}
        return f"correct options={named}" if named else "correct the options"
    if error.place == "ptxas":
        return ASSEMBLY
    if missing:
        name = missing[1]
        if absent := [path for path in include_paths if not os.path.isdir(path)]:
            return f"fix the source's include_paths, of which these do not exist: {', '.join(absent)}"
        if _HOST_HEADER.match(name):
            return (
                f"do not include the host's C library, which {name} belongs to: keep its directory (/usr/include) out"
                " of include_paths, and a host compiler's macros (__GNUC__) out of defines"
            )
        if _STANDARD_HEADER.fullmatch(name):
            same = f"cuda/std/c{name[:-2]}" if name.endswith(".h") else f"cuda/std/{name}"
            todo = f"put a file {name} that defines what is used"
            if any(os.path.isfile(os.path.join(folder, same)) for folder in _toolkit()):
                todo = f"include <{same}>, whose names are in cuda::std, or put a file {name} that includes it"
            todo += " into one of the source's include_paths"
            if error.place.endswith(".cu") or not os.path.isabs(error.place):
                first = _instead_of(name)
            else:
                first = f"leave out {os.path.basename(error.place)}, if it is for the host's code; or "
            if HOST_HEADERS in include_paths:
                return f"{name} is not among the headers of host_headers=True: {first}{todo}; or {FOR_THE_HOST}"
            use = "use host_headers=True; or " if os.path.isfile(os.path.join(HOST_HEADERS, name)) else ""
            if use and name in NOT_ON_DEVICES:
                use = "where code for the host alone uses it, host_headers=True; or "
            return f"NVRTC has no headers of the host's C++ library: {first}{use}{todo}"
        if package := explain_package(name):
            return package
        own = [os.path.dirname(error.place)] if os.path.isabs(error.place) else []  # where quotes find a header first
        if similar := find_similar_header(name, [*own, options.working_directory or os.getcwd(), *include_paths]):
            return f"did you mean {similar}?"
        if package := explain_misspelt(name) or explain_missing_headers(name):
            return package
        return f"add the directory that {name} is in to the source's include_paths"
    if instead := what_to_write(text):
        return instead
    if later := error.explain_standard(options):
        return later
    others = {each.unknown for each in errors}
    texts = texts if len(others) < _MOST_ERRORS else ()  # where the rest may be unknown too
    said = "\n".join(error.lines)
    texts = list(texts) if "failed deduction" in said or "failed constraints" in said else texts
    if conflict := explain_conflict(said, texts) or explain_constraint(said, texts):
        return f"{conflict[0]}: {conflict[1]}"
    if error.unknown and (known := explain_unknown(error.unknown, texts, include_paths, macros, others)):
        return known
    if "does not support exception handling" in text:
        return _without_exceptions(include_paths)
    if HOST_HEADERS in include_paths and any(re.search(r"\bthrow *\( *\)", line) for line in error.lines[1:2]):
        return "write noexcept for throw(); or, if nothing throws, defines={'throw': 'throw'}, which replaces a macro"
    if re.search(r"\btypeid\b", text):
        return NO_RTTI
    if "--device-int128" in text:
        return "allow it: options={'device_int128': True}"
    if "explicitly marked as a __host__ function" in text:
        return f"mark it __host__ __device__; or {FOR_THE_HOST}"
    if text.endswith(_NOT_MARKED):
        return (
            "mark the function __device__, or make all functions device functions:"
            " options={'device_as_default_execution_space': True}"
        )
    if text.endswith('has "C" linkage'):
        return 'give each function a name of its own, or leave out extern "C": C has no overloads'
    if "distinguished by return type alone" in text:
        return "give it another name, or put it into a namespace: CUDA has functions of its own, such as norm and min"
    if "has already been defined" in text:
        return (
            "give the two different names, or leave one out; names in code that is generated have what distinguishes"
            " it, such as sizes and types"
        )
    if _DIRECTIVE.search(text):
        return "do as this #error of the source or header says"
    todo = _fix(error)
    if todo == _FIX_LINE and os.path.isabs(error.place) and not error.place.endswith(".cu"):
        todo += (
            "; if that is a library's header, put a fixed copy into a directory that comes first in the source's"
            " include_paths"
        )
    return todo


def _toolkit() -> list[str]:
    from .translation_unit import toolkit_include_paths

    return list(toolkit_include_paths())


def _macro_in(error: Diagnostic, macros: Iterable[str]) -> str:
    """Return the one of *macros* that is in the line of an *error*; empty if none is."""
    words = {word for line in error.lines[1:2] for word in re.findall(r"\w+", line)}
    return next((each for each in macros if each.partition("(")[0] in words), "")


def _without_exceptions(include_paths: Sequence[str]) -> str:
    if HOST_HEADERS in include_paths:
        return f"leave out try and catch, since throw stops the kernel; or {FOR_THE_HOST}"
    return f"use host_headers=True, with which throw stops the kernel; or {FOR_THE_HOST}"


def _fix(error: Diagnostic) -> str:
    if error.unknown:
        return explain_undeclared(error.unknown.rpartition("::")[2])
    if _TO_MATCH in error.text:
        return "close it: the source ends before"
    if error.text == "expected a declaration" and _PTX.match("".join(error.lines[1:2])):
        return "return PTX as cuda.PTXSource(text.encode()), of numba.cuda: this is not C++"
    if error.text == 'expected a ";"':
        if error.marked.startswith("{"):
            return "close what is open before: a function cannot be defined within another"
        return "write a ';' after what comes before the marked place, which may be in the line above"
    if len(error.lines) > 1 and (escape := replaced_escape(error.lines[1])):
        return f'write r"""...""" for the text of the source: Python has replaced {escape}'
    if error.text == _NOT_CLOSED and not os.path.isfile(error.place):
        return 'close it; if Python has the source as a text, write r"""...""", which leaves \\n as it is'
    return next((todo for pattern, todo in _FIXES if pattern.match(error.text)), _FIX_LINE)


def what_to_write(text: str) -> str:
    """Return what to write for an index of an mdspan, or for a type of the host's library that is declared only, which
    the *text* of an error is about; empty if it is about neither."""
    if index := what_to_index(text):
        return index
    found = _INCOMPLETE.search(text)
    name = found[1] if found else ""
    if name not in NOT_ON_DEVICES:
        return ""
    return f"device code has no std::{name}: use {NOT_ON_DEVICES[name]}; or {FOR_THE_HOST}"


def _instead_of(header: str) -> str:
    stem = header.removesuffix(".h")
    stem = stem if header.endswith(".h") else stem.removeprefix("c")
    if stem in _NEED_NO_HEADER:
        return f"delete the line ({_NEED_NO_HEADER[stem]} needs no header); or "
    return f"use {NOT_ON_DEVICES[header]}; or " if header in NOT_ON_DEVICES else ""


def saved(code: bytes, name: str) -> str | None:
    """Return the path of a file with the source *code*: *name* if it is one, else a file written now to the cache's
    directory or to one for temporary files; ``None`` if nothing can be written."""
    with contextlib.suppress(OSError, ValueError):
        if read_regular_file(name, len(code)) == code:
            return os.path.abspath(name)
    stem, suffix = os.path.splitext(re.sub(r"[^\w.-]+", "_", os.path.basename(name)).strip("_") or "source")
    file_name = f"{stem[:60]}-{hashlib.sha256(code).hexdigest()[:12]}{suffix or '.cu'}"
    with contextlib.suppress(OSError):
        return current_store().disk.save(FAILED_SOURCES, file_name, code)
    return None
