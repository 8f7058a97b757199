# SPDX-License-Identifier: BSD-2-Clause
"""The errors of sources: they do not compile, or a function has other types than a call passes; and the error for an
instruction that the target's architecture does not have: whose it is, and which one has it.

ptxas names a line of PTX that nobody has seen: link-time optimisation made it. So that is made again and saved, and the
PTX of each part is searched for the instruction.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import linecache
import os
import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cuda.core._utils.cuda_utils import NVRTCError

from numba_cuda_autolink.given_sources import find_in_given, place_in_text
from numba_cuda_autolink.source_locations import shown_file

from ..compile import nvrtc_log, programs
from ..compile.nvrtc import CompileError
from ..compile.programs import SourceError
from ..compile.prototype_assertions import PrototypeError, WrongFunction
from ..compile.translation_unit import toolkit_include_paths
from ..formats.symbols import find_defined
from ..inputs import kinds
from ..inputs.c_prototypes import CalledFunction
from ..inputs.link_input import LinkInput, LinkInputError, from_item
from ..link import ltoir_symbols
from ..plan.declared_functions import find_bringing, place_of
from ..plan.link_plan import (
    NAMED_EXPLICITLY,
    KernelCode,
    LinkError,
    LinkPlan,
    PlannedInput,
    calls_kernel,
    link_error,
)
from ..plan.plan_checks import declaration_error, undeclared_variable
from ..platform.target import Target
from .wrong_parameters import what_to_do

if TYPE_CHECKING:
    from ..link.linker_input import LinkJob, Part


class _ExplicitSourceError(LinkError, NVRTCError):
    """A source of ``link=`` does not compile: numba-cuda raises cuda.core's error for that, with NVRTC's log."""

    __module__, __qualname__ = LinkError.__module__, LinkError.__qualname__  # as tracebacks show it

    def __reduce__(self) -> Any:
        return _restore_error, (str(self), vars(self))


def _restore_error(message: str, state: dict[str, Any]) -> LinkError:
    error = _ExplicitSourceError("")
    error.args = (message,)
    error.__dict__.update(state)
    return error


def find_declared_only(plan: LinkPlan, kernel_code: KernelCode, error: SourceError) -> set[tuple[int, CalledFunction]]:
    """Return the functions that a unit of the plan declares with other types than the calls have, and does not define,
    with the index of the unit: those types do not matter. Raises what any other *error* of the compile stage means."""
    planned, cause = plan.units[error.number], error.error
    if planned.input.kind is kinds.BITCODE:
        raise link_error(
            plan,
            f"{planned.input.kind} {planned.input.name!r} cannot be compiled for {plan.target.arch}",
            f"at fault: {planned}",
            "what to do: for architectures before sm_100, NVVM reads bitcode of LLVM 7 only; for later ones, make"
            " it with a clang no newer than llvmlite's LLVM",
            log=cause.log,
        ) from cause
    if not isinstance(cause, PrototypeError):
        others = [(plan.units[each.number], each.error) for each in error.others]
        raise does_not_compile(plan, planned, kernel_code, cause, others) from cause
    if defined := find_defined_among(planned.input, cause.wrong, plan.target):
        raise wrong_types(plan, planned, cause, defined) from cause
    return {(error.number, each.called) for each in cause.wrong}


def find_defined_among(source: LinkInput, wrong: Sequence[WrongFunction], target: Target) -> list[WrongFunction]:
    """Return those of the *wrong* functions that *source* defines: others it only declares, or they are C++ functions
    that have the name of another input's C function."""
    program = programs.compiled(source, target)
    if program.kind is kinds.LTO_IR:
        return [
            each for each in wrong if ltoir_symbols.defined_in_ltoir(program.code, [each.called.symbol], target.arch)
        ]
    names = find_defined(program.kind.name, program.code)
    return [each for each in wrong if each.called.symbol in names]


def does_not_compile(
    plan: LinkPlan,
    planned: PlannedInput,
    kernel_code: KernelCode,
    error: CompileError,
    others: Sequence[tuple[PlannedInput, CompileError]],
) -> LinkError:
    if (found := unsupported_in(error.log)) is not None:
        return unsupported_in_source(plan, planned, kernel_code, found, error.log)
    if (wrong_size := declaration_error(plan, planned, error.log)) is not None:
        return wrong_size
    path = nvrtc_log.saved(planned.input.text.encode(), planned.input.name)
    options = planned.input.options
    texts = programs.texts_and_headers(planned.input, plan.target)
    causes = nvrtc_log.list_errors(error.log, planned.input.text)
    todo = undeclared_variable(plan, error.log) or (
        nvrtc_log.remedy(causes[0], options, texts, causes) if causes else ""
    )
    explicit = planned.origins == (NAMED_EXPLICITLY,)
    declared = find_bringing(kernel_code.sites, lambda item: _is_code(item, planned.input)) if explicit else ""
    assembly = places_of_assembly(error.log, [planned.input], plan.target)
    place = _find_place(planned.input, causes[0], path) if causes else None
    is_whole = place is not None and not others  # what the log says stands below the place, and in more
    more = [(_find_place(planned.input, each, path), each) for each in nvrtc_log.other_errors(causes)]
    logs = [error, *(each for _, each in others)]
    shown = "" if is_whole else "\n".join(nvrtc_log.errors_in(each.log) for each in logs)
    return link_error(
        plan,
        f"{planned.input.name!r} does not compile: {nvrtc_log.first_error(error.log, planned.input.name)}",
        f"at fault: {planned}" + (f" of declare_device({declared!r})" if declared else ""),
        *([] if place and place.file == path else [f"source: {path or 'could not be saved'}"]),
        *(f"in C++: {each}" for each in assembly.values()),
        *nvrtc_log.list_others(
            (f"{shown_file(at.file)}:{at.line}" if at else f"{each.place}:{each.line}", each.text) for at, each in more
        ),
        *(
            line
            for cause in causes[:1]
            for line in describe_chain(cause, planned.input.text, planned.input.name, options.include_paths)
        ),
        *([f"what to do: {todo}"] if todo else []),
        *(f"does not compile either: {each}" for each, _ in others),
        log="\n".join([error.log, *(each.log for _, each in others)]),
        source_path=path,
        shown=None if explicit else shown,
        at=place_of(declared) if declared else None,
        add_place=place.add_to if place else None,
        kind=_ExplicitSourceError if explicit else LinkError,
    )


def _find_place(source: LinkInput, error: nvrtc_log.Diagnostic, path: str | None) -> nvrtc_log.CodePlace | None:
    """Return the place of an *error*: in the Python file that has the text of *source*, in its file at *path*, or in a
    header; ``None`` if it is in no file."""
    if not error.line:
        return None
    line, file = int(error.line), error.place
    if os.path.basename(file) == os.path.basename(source.name):
        file, line = place_in_text(source.code.decode(), line) or (path or "", line)
    return nvrtc_log.CodePlace.of(error, file, line) if os.path.isfile(file) or linecache.getlines(file) else None


def find_line(source: LinkInput, target: Target, pattern: re.Pattern[str]) -> str:
    """Return the place where a *source* or a header of its own has *pattern* first; empty if there is none."""
    if found := find_in_given(source.text, pattern):
        return f"{shown_file(found[0])}:{found[1]}"
    headers = programs.included_files(source, target, with_toolkit=False)
    for path, text in itertools.chain([("", source.text)], headers):
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                return f"{shown_file(path)}:{number}" if path else f"line {number}: {line.strip()}"
    return ""


def places_of_assembly(log: str, sources: Iterable[LinkInput], target: Target) -> dict[LinkInput, str]:
    """Return which of *sources* have the instruction in assembly that ptxas refuses in *log*, and where they have it
    first."""
    if (found := _WRONG_PTX.search(log)) is None:
        return {}
    pattern = re.compile(rf'"[^"\n]*\b{re.escape(found["what"])}\b')
    places = {source: find_line(source, target, pattern) for source in sources}
    several = {source: " or below" if len(pattern.findall(source.text)) > 1 else "" for source in places}
    return {source: place + several[source] for source, place in places.items() if place}


def wrong_assembly(job: LinkJob, log: str) -> LinkError | None:
    """Return the error for an instruction in assembly that ptxas refuses; ``None`` if no source of *job* has it."""
    sources = {part.planned.input: part for part in job.parts if part.planned and part.planned.input.kind is kinds.CUDA}
    places, found = places_of_assembly(log, sources, job.plan.target), _WRONG_PTX.search(log)
    if not places or found is None:
        return None
    details = [f"at fault: {sources[source].origin}\n  in C++: {place}" for source, place in places.items()]
    return link_error(job.plan, found["why"], *details, f"what to do: {nvrtc_log.ASSEMBLY}", log=log)


def wrong_ptx(job: LinkJob, log: str) -> LinkError | None:
    """Return the error for a line of PTX that ptxas refuses; ``None`` if no PTX that *job* is given has it."""
    if (found := _REFUSED_PTX.search(log)) is None:
        return None
    for part in job.parts:
        lines = part.code.decode("utf-8", "replace").splitlines() if part.kind is kinds.PTX and part.planned else []
        number = int(found["line"])
        if number <= len(lines) and found["what"] in lines[number - 1]:
            line = f"its line {number}: {lines[number - 1].strip()}"
            return link_error(
                job.plan, found["why"], f"at fault: {part.origin}", line, "what to do: correct that PTX", log=log
            )
    return None


def _is_code(item: Any, link_input: LinkInput) -> bool:
    """Return whether *item*, which ``link=`` names, is *link_input*, which may begin with a directive."""
    try:
        return link_input.code.endswith(from_item(item).code)
    except LinkInputError:
        return False


def wrong_types(
    plan: LinkPlan, planned: PlannedInput, error: PrototypeError, wrong: Sequence[WrongFunction]
) -> LinkError:
    if of_types := [each for each in wrong if each.declaration]:
        symbol = of_types[0].called.symbol
        is_kernel = re.compile(rf"__global__\s[^;{{}}()]*\b{re.escape(symbol)}\s*\(")
        if place := find_line(planned.input, plan.target, is_kernel):
            called = f"called: {of_types[0].called.call}"
            return calls_kernel(plan, symbol, called, f"defined by: {planned}", f"in C++: {place}")
        diagnosis = f"{symbol!r} is called with other types than it has"
        pairs = [
            (f"{each.called.declaration} for {each.called.call}", f"{each.declaration}, as it is defined")
            for each in of_types
        ]
        differing, remedy = what_to_do(of_types)
    else:
        differing = []
        diagnosis = (
            f"members of {wrong[0].members[0].struct}, in {wrong[0].called.symbol!r}, differ from the record's fields"
        )
        pairs = [
            (
                ", ".join(map(str, each.members)),
                f"{', '.join(it.expected for it in each.members)}, as in the record of {each.called.call}",
            )
            for each in wrong
        ]
        remedy = (
            "list the fields of the dtype as the struct lists its members: np.dtype([...], align=True). Members that"
            " have other names than the fields are not compared"
        )
    named = re.compile(rf"[\w>&*]\s+[&*]*{re.escape(wrong[0].called.symbol)}\s*\(")
    if place := find_line(planned.input, plan.target, named):
        differing = [f"in C++: {place}", *differing]
    lines = [line for got, expected in pairs for line in (f"got: {got}", f"expected: {expected}")]
    details = (f"defined by: {planned}", *lines, *differing, f"what to do: {remedy}")
    return link_error(plan, diagnosis, *details, log=error.log, shown="")


_MOST_HEADERS = 2000
_MISSING = re.compile(r'cannot open source file "(?P<name>[^"]+)"')


def describe_chain(error: nvrtc_log.Diagnostic, code: str, name: str, include_paths: Sequence[str]) -> list[str]:
    """Return the line that shows how the source *name*, with this *code*, includes a header that is missing; nothing if
    the *error* is another one, if the source includes it itself, or if that is not found."""
    found = _MISSING.search(error.text)
    if found is None or not os.path.isfile(error.place) or error.place.endswith(name):
        return []
    chain = _find(code.encode(), error.place, (*include_paths, *toolkit_include_paths()))
    return [f"included: {' → '.join((name, *chain, found['name']))}"] if chain else []


def _find(code: bytes, header: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the names on the shortest way from *code* to *header*, under whatever conditions."""
    waiting: collections.deque[tuple[tuple[str, ...], bytes, str]] = collections.deque([((), code, "")])
    seen: set[str] = set()
    while waiting and len(seen) < _MOST_HEADERS:
        chain, text, folder = waiting.popleft()
        for included in map(os.fsdecode, _INCLUDE.findall(text)):
            paths = (os.path.join(base, included) for base in (folder, *folders))
            path = next(filter(os.path.isfile, paths), None)
            if path is None or path in seen:
                continue
            if os.path.samefile(path, header):
                return (*chain, included)
            seen.add(path)
            with open(path, "rb") as file:
                waiting.append(((*chain, included), file.read(), os.path.dirname(path)))
    return ()


_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*[<"]([^<>"\n]+)[>"]', re.MULTILINE)
_UNSUPPORTED = re.compile(
    r"line (?P<line>\d+); error\s*: (?P<kind>Instruction|Feature|Modifier) '(?P<what>[^']+)'(?: on '[^']+')? "
    r"(?:not supported on \.target|requires \.target|cannot be compiled for architecture)[^\n]*"
)
_OF_PTX = r"ptx input, line (?P<line>\d+); {}\s*: (?P<why>[^\n]*'(?P<what>[^'\n]+)'[^\n]*)"
_WRONG_PTX, _REFUSED_PTX = (re.compile(_OF_PTX.replace("{}", each)) for each in ("error", "(?:error|fatal)"))
_TYPE = re.compile(r"\.(?:[bfsue]\d\w*|bf16\w*|tf32\w*)")
_NEEDED = re.compile(r"requires \.target (sm_\d+[af]?)")
# Architectures that have what their predecessors lack, in order; a suffix adds what that architecture alone has.
_ARCHITECTURES = ("75", "80", "86", "87", "89", "90", "90a", "100", "100a", "103a", "110a", "120", "120a", "121a")


def unsupported_in(log: str) -> re.Match[str] | None:
    return _UNSUPPORTED.search(log)


def unsupported_in_link(job: LinkJob, found: re.Match[str], log: str) -> LinkError:
    named = [part for part in job.parts if part.name and part.name in log]
    if named and named[0].kind is kinds.PTX:
        return _error(job.plan, [named[0].origin], found, named[0].code, log)
    arch, symbols = job.plan.target.arch, job.kernel_code.undefined
    ptx = ltoir_symbols.linked_code([part for part in job.parts if part.kind is kinds.LTO_IR], arch, "ptx")
    of_parts = [(part, _ptx_of(part, symbols, arch)) for part in job.parts]
    if not _line(ptx, found)[1]:  # it is in a function that only machine code calls
        ptx = next((text for _, text in of_parts if _line(text, found)[1]), ptx)
    at_fault = [part.origin for part, text in of_parts if _line(text, found)[1]]
    return _error(job.plan, at_fault, found, ptx, log)


def unsupported_in_source(
    plan: LinkPlan, source: PlannedInput, kernel_code: KernelCode, found: re.Match[str], log: str
) -> LinkError:
    target = dataclasses.replace(plan.target, lto=True)
    code = programs.compiled(source.input, target).code
    return _error(
        plan, [str(source)], found, ltoir_symbols.ptx_of_ltoir([code], kernel_code.undefined, target.arch), log
    )


def _error(plan: LinkPlan, at_fault: Sequence[str], found: re.Match[str], ptx: bytes | None, log: str) -> LinkError:
    arch, what = plan.target.arch, found["what"]
    needed = _NEEDED.search(found[0])
    wanted = needed[1] if needed else _first_with(ptx, arch)
    path = None if ptx is None else nvrtc_log.saved(ptx, "generated.ptx")
    details = [f"at fault: {origin}" for origin in at_fault]
    if wanted:
        details.append(f"got: an instruction of {wanted}")
        details.append(f"expected: instructions of {arch}")
    if path is not None:
        number, text = _line(ptx, found)
        details.append(f"generated PTX: {path}" + (f", line {number}: {text}" if text else ""))
    build = f"build the kernel for {wanted}, or " if wanted else ""
    details.append(f"what to do: {build}return code without it where autolink.current_target().arch is {arch!r}")
    kind = "type" if _TYPE.fullmatch(what) else found["kind"].lower()
    return link_error(plan, f"{arch} does not have the {kind} {what!r}", *details, log=log, source_path=path)


def _ptx_of(part: Part, symbols: Collection[str], arch: str) -> bytes | None:
    if part.kind is not kinds.LTO_IR:
        return part.code if part.kind is kinds.PTX else None
    return ltoir_symbols.ptx_of_ltoir([part.code], tuple(symbols) if part.planned is not None else (), arch)


def _line(ptx: bytes | None, found: re.Match[str]) -> tuple[int, str]:
    lines = [line.strip() for line in (ptx or b"").decode("utf-8", "replace").splitlines()]
    number, wanted = int(found["line"]), _words(found["what"])
    if number <= len(lines) and wanted <= _words(lines[number - 1]):
        return number, lines[number - 1]
    return next(((number, line) for number, line in enumerate(lines, 1) if wanted <= _words(line)), (0, ""))


def _words(text: str) -> set[str]:
    """Return the parts of an instruction: ptxas leaves some of them out, changes their order, and writes ``with``."""
    return set(re.split(r"[^\w]+", text)) - {"", "with"}


def _first_with(ptx: bytes | None, arch: str) -> str | None:
    """Return the first architecture for which *ptx* compiles, of *arch* with a suffix and those that came later."""
    number = int(re.sub(r"\D", "", arch))
    later = [f"sm_{other}" for other in _ARCHITECTURES if int(other.rstrip("a")) >= number and f"sm_{other}" != arch]
    return next((other for other in later if ptx is not None and _compiles(ptx, other)), None)


def _compiles(ptx: bytes, arch: str) -> bool:
    text = re.sub(rb"\.target\s+sm_\w+", b".target " + arch.encode(), ptx, count=1)
    return ltoir_symbols.linked_code([LinkInput(kinds.PTX, text, name="generated")], arch, "cubin") is not None
