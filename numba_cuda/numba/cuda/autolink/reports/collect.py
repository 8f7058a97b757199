# SPDX-License-Identifier: BSD-2-Clause
"""Makes the report of one build from its facts."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from numba.cuda.cudadrv import nvrtc
from numba.cuda.cudadrv.external_code.compile.programs import compiled, header_files
from numba.cuda.cudadrv.external_code.diagnostics.timeline import Span
from numba.cuda.cudadrv.external_code.formats.cubin import functions_of, launch_bounds, resources
from numba.cuda.cudadrv.external_code.formats.elf import FormatError
from numba.cuda.cudadrv.external_code.formats.symbols import Symbols, symbols_of
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.linker_input import LinkedInput, sha256
from numba.cuda.cudadrv.external_code.link.ltoir_symbols import ptx_of_ltoir, symbols_of_ltoir
from numba.cuda.cudadrv.external_code.plan.link_plan import join_units
from numba.cuda.cudadrv.external_code.plan.python_functions import PythonFunction
from numba.cuda.cudadrv.external_code.platform import cuda_libraries
from numba.cuda.cudadrv.external_code.platform.target import Target

from numba_cuda_autolink.package_versions import NOT_INSTALLED, version_of
from numba_cuda_autolink.ptx import ptx_bodies
from numba_cuda_autolink.short_tracebacks import without_warnings

from ..function_code.build_record import BuildFacts, BuildRecord, CallRecord, FunctionRecord, as_written
from ..protocol.kernel_signatures import arguments_text
from . import formatting
from .cxx_definitions import definitions, digest_of_text
from .inlining import function_reports, has_functions, with_inlining
from .listings import listings_of
from .machine_code import calls_in, disassemble
from .occupancy import occupancies
from .ptx_lines import NUMBERED
from .records import (
    FOR_ARCHITECTURES,
    NOT_LINKED,
    BuildReport,
    CallReport,
    CodeReport,
    LinkReport,
    ListingReport,
    ResultReport,
)
from .report import Report

_WORD = re.compile(rb"[A-Za-z_$][\w$]*")
_Headers: TypeAlias = Sequence[tuple[str, str]]  # paths and texts
_Key: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]  # of code: its kind, digest and options
_KINDS = {"cubin": "cubin", "ptx": "PTX", "ltoir": "LTO-IR"}


@without_warnings()
def report_of(record: FunctionRecord, *, listings: bool = False) -> Report:
    """Return the report of one build. With *listings*, it shows what the code of a cubin became."""
    facts, code, output = record.facts, record.code, record.output
    linked = facts.link.inputs if facts.link is not None else ()
    items = tuple(map(LinkedInput.of, record.inputs)) if output == "ltoir" else _with_origins(linked, facts.timeline)
    units = join_units(record.inputs) if items else ()
    sources = [each for unit in units for each in (unit, *unit.members)]
    known = {_key(LinkedInput.of(source)): source.input for source in sources}
    codes, functions = _codes(facts, items, known)
    codes = _with_names_of_calls(codes, facts.calls)
    parts = [part for code in codes for part in code.parts or (code,)]
    returned: dict[str, list[CodeReport]] = {}
    for part in parts:
        for site in part.brought_by:
            returned.setdefault(site, []).append(replace(part, brought_by=(site,)))
    calls = tuple(CallReport(**vars(call), returned=tuple(returned.get(call.site, ()))) for call in facts.calls)
    used: dict[str, Any] = {}
    shown: tuple[ListingReport, ...] = ()
    if output == "cubin":
        used = resources(code, facts.entry_name, facts.log)
        bounds = _launch_bounds(code, facts.entry_name)
        used["occupancy"] = occupancies(facts.target.arch, used["registers"], used["shared"], bounds)
        in_result = functions_of(code, facts.entry_name)
        instructions = None
        if listings or has_functions(in_result, facts.entry_name):
            instructions = disassemble(code, facts.entry_name, _texts(record) if listings else ())
        if in_result:
            called = calls_in(instructions) if instructions is not None else None
            expressions = {call.site for call in facts.calls if call.expression}
            made = [part for part in parts if part.detail or not expressions.isdisjoint(part.brought_by)]
            names = {name: part.title for part in made for name in part.defines or () if _is_by_content(name)}
            used["functions"] = function_reports(in_result, facts.entry_name, names, facts.log, called)
            calls = with_inlining(calls, codes, in_result, functions.reached, called)
        if listings:
            inputs = [known.get(_key(item)) for item in items]
            programs = [_linked_code(item, each, facts.target, None) for item, each in zip(items, inputs, strict=True)]
            shown = listings_of(facts, list(zip(codes, inputs, programs, strict=True)), instructions)
    result = ResultReport(_KINDS[output], len(code), sha256(code), **used)
    what = facts.target.arch, record.entry_name, facts.restored, calls, _link(record, codes), result
    build = BuildReport(*what, facts.timeline, shown, options=_options(record), python=facts.python)
    kernel = facts.graph.functions[0]
    signature = record.signature
    if isinstance(record, BuildRecord):
        signature = arguments_text(record.launch_facts.argtypes)
    return Report(
        kernel.name, kernel.filename, kernel.line, signature, facts.graph, (build,), _versions(_front_end(record))
    )


def _is_by_content(symbol: str) -> bool:
    """Whether a *symbol* is one of a call by name, or of a Python function that C++ calls."""
    return _HASH.search(symbol) is not None


def _with_names_of_calls(codes: Iterable[CodeReport], calls: Iterable[CallRecord]) -> tuple[CodeReport, ...]:
    """Return *codes*; those of a C++ expression have the name of its object in place of its text."""
    by_site = {call.site: call for call in calls if call.expression}

    def named(code: CodeReport) -> CodeReport:
        found = (by_site[site] for site in code.brought_by if site in by_site)
        call = next((each for each in found if code.name.startswith(f"{each.expression}(")), None)
        name = code.name if call is None else call.name + code.name.removeprefix(call.expression)
        return replace(code, name=name, parts=tuple(map(named, code.parts)))

    return tuple(map(named, codes)) if by_site else tuple(codes)


def _launch_bounds(cubin: bytes, entry_name: str) -> int | None:
    try:
        return launch_bounds(cubin, entry_name)
    except FormatError:  # cubins are not a documented format: a future one may differ
        return None


def _key(item: LinkedInput) -> _Key:
    return item.kind, item.sha256, item.options


def _options(record: FunctionRecord) -> tuple[tuple[str, str], ...]:
    """Return the options that each kernel has as it is compiled, and the others that are not the defaults."""
    of_target = {name: str(getattr(record.facts.target, name)) for name in formatting.OF_KERNELS}
    return tuple({**dict(record.options), **of_target}.items())


def _front_end(record: FunctionRecord) -> str:
    return record.launch_facts.front_end if isinstance(record, BuildRecord) else "numba-cuda"


def _texts(record: FunctionRecord) -> list[str]:
    """Return the PTX of the link of *record*; none where it cannot be made."""
    if not isinstance(record, BuildRecord) or record.emulated_texts is None:
        return []
    try:
        return record.emulated_texts()
    except Exception:  # machine code is linked, or a file was removed or edited since the build
        return []


def _with_origins(items: Iterable[LinkedInput], spans: Iterable[Span]) -> tuple[LinkedInput, ...]:
    """Return *items* with how those were built that this build compiled before its link, which found them in memory."""
    made = {span.program: span.seconds for span in spans if span.kind == "compile" and span.program}
    return tuple(
        replace(item, compiled=replace(done, origin="built", seconds=made[done.sha256]))
        if (done := item.compiled) is not None and done.origin == "memory" and done.sha256 in made
        else item
        for item in items
    )


def _link(record: FunctionRecord, codes: tuple[CodeReport, ...]) -> LinkReport:
    facts = record.facts
    if record.output == "ltoir":
        by = "program that links the LTO-IR" if isinstance(record, BuildRecord) else "kernels that call it"
        return LinkReport(True, f"left to the {by}", None, codes, "", NOT_LINKED, None)
    if (link := facts.link) is None:
        lto, front_end = facts.target.lto, _front_end(record)
        is_default = front_end == "numba-cuda-mlir" and not lto and not facts.target.debug
        so = f"{front_end} compiles a kernel without external code so, unless lto=True is given"
        reason = so if is_default else _lto_reason(facts.target, lto, codes)
        return LinkReport(lto, reason, None, codes, facts.log, "built", None)
    reason = _lto_reason(facts.target, link.lto, codes)
    return LinkReport(link.lto, reason, link.options, codes, link.log, link.origin, link.seconds)


def _lto_reason(target: Target, lto: bool, inputs: Iterable[CodeReport]) -> str:
    """Return why a link for *target* ran with link-time optimisation (*lto*), or why without."""
    if target.lto:
        text = "the default of cuda.jit: neither lto=False nor debug=True was given"
        apart = [code for code in inputs if code.linked_kind != kinds.LTO_IR.name]
        if apart:
            are = "is" if len(apart) == 1 else "are"
            text += f"; {_names(apart)} cannot take part, and {are} called without inlining"
        return text
    found = "nvJitLink" in cuda_libraries.version_texts()
    reason = "debug=True" if target.debug else "lto=False" if found else "nvJitLink was not found"
    if not lto:
        return reason
    needing = _names([code for code in inputs if code.linked_kind == kinds.LTO_IR.name])
    return f"{needing} cannot be linked without it; the kernel itself takes no part ({reason})"


def _names(codes: Sequence[CodeReport]) -> str:
    return formatting.listed([f"{code.name} ({code.linked_kind})" for code in codes])


def _codes(
    facts: BuildFacts, items: Sequence[LinkedInput], known: Mapping[_Key, LinkInput]
) -> tuple[tuple[CodeReport, ...], CalledFunctions]:
    """Return the linked code with its symbols: those that can be read, then those of LTO-IR that these reference. Also
    return the functions in LTO-IR that functions in Python call."""
    own = Symbols((facts.entry_name,), facts.own_symbols.undefined)
    undefined = own.undefined if sum(bool(item.origins) for item in items) == 1 else None
    sources = [known.get(_key(item)) for item in items]
    programs = [_linked_code(item, each, facts.target, undefined) for item, each in zip(items, sources, strict=True)]
    found = [symbols_of(*program) if program is not None else None for program in programs]
    found = [symbols if item.origins else own for item, symbols in zip(items, found, strict=True)]
    candidates = {name for symbols in (*found, own) if symbols is not None for name in symbols.undefined}
    modules = {
        index: program[1]
        for index, program in enumerate(programs)
        if found[index] is None and program is not None and program[0] == kinds.LTO_IR.name
    }
    of_ltoir = symbols_of_ltoir(list(modules.values()), candidates, facts.target.arch)
    for index, symbols in zip(modules, of_ltoir, strict=True):
        found[index] = symbols
    defined = {name for symbols in of_ltoir if symbols is not None for name in symbols.defined}
    names = {*own.undefined}
    for source, symbols in zip(sources, found, strict=True):
        names.update(symbols.undefined if symbols is not None and _is_python(source) else ())
    functions = CalledFunctions.read(modules.values(), names & defined, facts.target.arch)
    comparable = _comparable(sources, programs, undefined)
    python = [
        name
        for code, source, symbols in zip(items, sources, found, strict=True)
        if _is_python(source) and symbols
        for name in symbols.defined
    ]
    own_functions = OwnFunctions.read(comparable, names, python)
    called = _Called(frozenset(names), functions, own_functions, known, dict(facts.details))
    headers = [
        _own_headers(source, facts.target) if program is not None else None
        for source, program in zip(sources, programs, strict=True)
    ]
    if None not in found:  # else what cannot be read may define them
        provided = {name for symbols in found if symbols is not None for name in symbols.defined}
        found = [symbols and Symbols.of(symbols.defined, provided & {*symbols.undefined}) for symbols in found]
    what = zip(items, found, headers, strict=True)
    codes = [_code(item, symbols, called, texts) for item, symbols, texts in what]
    return tuple(codes), functions


def _comparable(
    sources: Sequence[LinkInput | None], programs: Sequence[tuple[str, bytes] | None], undefined: Collection[str] | None
) -> list[bytes]:
    """Return the LTO-IR of *sources*, which were compiled to *programs*, for one target whatever the kernel's is: so
    its functions are the same for all targets unless they were edited."""
    arch, found = _newest_arch(), []
    for source, program in zip(sources, programs, strict=True):
        kind, code = program if program is not None else ("", b"")
        if arch and program is not None and source is not None and source.kind.is_compiled:
            try:
                compiled_for_all = compiled(source, Target(arch, lto=True), undefined)
            except Exception:  # it is not for this architecture
                continue
            kind, code = compiled_for_all.kind.name, compiled_for_all.code
        if kind == kinds.LTO_IR.name:
            found.append(code)
    return found


def _linked_code(
    item: LinkedInput, source: LinkInput | None, target: Target, undefined: Collection[str] | None
) -> tuple[str, bytes] | None:
    """Return kind and bytes of what the linker was given for *item*, or None if they can no longer be found."""
    if source is None or item.compiled is None:
        return None if source is None else (item.kind, source.code)
    try:
        code = compiled(source, target, undefined).code
    except Exception:  # a header was removed or edited since the build
        return None
    return (item.compiled.kind, code) if sha256(code) == item.compiled.sha256 else None


def _own_headers(source: LinkInput | None, target: Target) -> list[tuple[str, str]] | None:
    """Return the paths and texts of the headers of a source besides CUDA's; ``None`` for what is not CUDA C++."""
    if source is None or source.kind is not kinds.CUDA:
        return None
    return [*header_files(source, target, with_toolkit=False)]


def _is_python(source: LinkInput | None) -> bool:
    """Whether *source* is a function of Python that C++ calls."""
    return source is not None and bool(source.made_of)


@dataclass(frozen=True)
class _Called:
    """The functions that functions in Python call, those that can be read, those that can be compared, all sources, and
    what tells functions in Python of one name apart."""

    names: frozenset[str]
    functions: CalledFunctions
    comparable: OwnFunctions
    known: Mapping[_Key, LinkInput]
    details: Mapping[PythonFunction, str]

    def detail_of(self, item: LinkedInput) -> str:
        """Return what tells the function in Python of *item* from others of its name."""
        source = self.known.get(_key(item))
        function = source.python if source is not None else None
        return self.details.get(as_written(function), "") if function is not None else ""

    def named_in(self, item: LinkedInput, names: Collection[str]) -> tuple[str, ...]:
        """Return those of *names* that are called and that the source of *item* names."""
        source = self.known.get(_key(item))
        words = set(_WORD.findall(source.code)) if source is not None else set()
        return tuple(name for name in names if name in self.names and name.encode() in words)

    def comparable_of(
        self, item: LinkedInput, headers: _Headers | None, names: Collection[str]
    ) -> tuple[tuple[str, str], ...]:
        """Return the functions that those with these *names* lead to, with digests that can be compared between
        architectures; and `FOR_ARCHITECTURES` for the whole source of *item* if that depends on the architecture."""
        source, functions = self.known.get(_key(item)), self.comparable.functions_of(names)
        if not functions or source is None or headers is None:  # not C++
            return functions
        if not any(map(_BY_ARCH.search, (source.text, *(text for _, text in headers)))):
            return functions
        return ((FOR_ARCHITECTURES, (self.source_of(item, headers) or "")[:_SHORT]), *functions)

    def definitions_in(
        self,
        item: LinkedInput,
        headers: _Headers | None,
        names: Iterable[str],
        functions: Iterable[tuple[str, str]],
    ) -> tuple[tuple[str, str, str], ...]:
        """Return what the source of *item* and its *headers* define of the called functions with these *names*, of the
        *functions* that they lead to, and of what these name."""
        source = self.known.get(_key(item))
        if source is None or headers is None:
            return ()
        texts = ("", source.text), *((os.path.basename(path), text) for path, text in headers)
        return definitions((*names, *(name for name, _ in functions)), texts)

    def source_of(self, item: LinkedInput, headers: _Headers | None) -> str | None:
        """Return one digest for the source of *item* and its *headers*, without comments, and without what depends on
        options and on places: line markers, and the digits in names of functions that calls by name write; or for the
        Python function of *item*; ``None`` if that is not known."""
        source = self.known.get(_key(item))
        if source is None or headers is None:
            return source.made_of or None if source is not None else None
        texts = _HASH.sub("", source.text), *(text for _, text in headers)
        return sha256(repr([*map(digest_of_text, texts)]).encode())


def _code(
    item: LinkedInput,
    symbols: Symbols | None,
    called: _Called,
    headers: _Headers | None,
    unit: LinkedInput | None = None,
) -> CodeReport:
    """Return the record of *item*, which may be a part of a translation *unit* that defines *symbols* and reads
    *headers*."""
    what = item.kind, item.name, item.size, item.sha256, item.origins
    files = tuple((os.path.basename(path), digest_of_text(text)) for path, text in headers or ())
    defines, undefined = (symbols.defined, symbols.undefined) if symbols is not None else (None, None)
    if unit is not None:
        own = called.named_in(item, defines or ())
        content = called.functions.content_of(own)
        source = called.source_of(item, headers)
        functions = called.comparable_of(item, headers, own)
        options = item.options
        written = called.definitions_in(item, headers, own, functions)
        return CodeReport(
            *what,
            unit.compiled,
            own or None,
            None,
            content,
            source,
            functions,
            unit.name,
            options=options,
            files=files,
            definitions=written,
        )
    names = called.names & set(defines or ())
    content = called.functions.content_of(names)
    functions = called.comparable_of(item, headers, () if item.parts else names)
    source = called.source_of(item, headers)
    parts = tuple(_code(part, symbols, called, headers, item) for part in item.parts)
    report = CodeReport(*what, item.compiled, defines, undefined, content, source, functions, options=item.options)
    written = called.definitions_in(item, headers, names, functions)
    return replace(report, parts=parts, files=files, detail=called.detail_of(item), definitions=written)


@functools.cache
def _versions(front_end: str) -> tuple[tuple[str, str], ...]:
    named = [("Python", platform.python_version())]
    for name in ("numba-cuda-autolink", front_end, "cuda-core"):
        if (version := version_of(name)) != NOT_INSTALLED:
            named.append((name, version))
    return (*named, *cuda_libraries.version_texts().items())


_LINE = re.compile(r"\.loc\b[^\n]*\n|^\$L__(?!BB)\w+:[ \t]*\n", re.MULTILINE)  # and the labels for debuggers
# What code for only some architectures names: an edit of it need not be in what is compiled for another one.
_BY_ARCH = re.compile(r"__CUDA_ARCH|\bNV_(?:IF|DISPATCH|PROVIDES|IS)_")
_HASH = re.compile(r"(?<=_)(?:[0-9a-f]{16}|[0-9A-F]{16})(?![0-9A-Za-z])")
_WRITTEN = re.compile(r"_ZNK?(?:3nca|\d+nca_(?:python|functor)_|\d+\w+?_[0-9a-f]{16}_functor)|cxx_\w+_[0-9a-f]{16}")
_SHORT = 12  # characters of a digest
_NAME = re.compile(r"[A-Za-z_$%][\w$%]*")


@dataclass(frozen=True)
class CalledFunctions:
    """Of each called function that can be read, by name: the digest of its content, and the functions and variables
    that it names, directly or by way of others."""

    contents: Mapping[str, str]
    reached: Mapping[str, frozenset[str]]

    @classmethod
    def read(cls, modules: Iterable[bytes], names: Collection[str], arch: str) -> CalledFunctions:
        """Return those with these *names* in LTO-IR *modules*. In a digest, functions and variables that they name
        count by their own content, lines and the names do not. Nothing can be read if the modules do not link
        for *arch*."""
        bodies = _bodies(list(modules), names, arch)
        known = [name for name in sorted(names) if name in bodies]
        found: dict[str, str] = {}
        contents = {name: _digest(name, bodies, found) for name in known}
        return cls(contents, {name: _reached(name, bodies) for name in known})

    def content_of(self, names: Iterable[str]) -> str | None:
        """Return one digest for all functions with these *names*; ``None`` if there are none, or one is not known."""
        digests = [self.contents.get(name) for name in names]
        if not digests or None in digests:
            return None
        return hashlib.sha256(" ".join(sorted(filter(None, digests))).encode()).hexdigest()


@dataclass(frozen=True)
class OwnFunctions:
    """By name of each called function, the functions and variables that it reaches, itself included; and the digests of
    these, each without those that it names. Functions of *python* are none of these."""

    reached: Mapping[str, frozenset[str]]
    digests: Mapping[str, str]

    @classmethod
    def read(cls, modules: Sequence[bytes], names: Collection[str], python: Iterable[str]) -> OwnFunctions:
        """Return those with these *names* in LTO-IR *modules* for the newest architecture; none if they do not link."""
        bodies = _bodies(modules, names, _newest_arch()) if modules else {}
        reached = {name: _reached(name, bodies) for name in sorted(names) if name in bodies}
        in_python = tuple(python)
        own = {
            each
            for some in reached.values()
            for each in some
            if (_is_function(each, bodies) or _is_written(each)) and not each.startswith(in_python)
        }
        return cls(reached, {name: _own_digest(name, bodies) for name in own})

    def functions_of(self, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return the functions that those with these *names* reach, as they read, with their digests."""
        reached = {each for name in names for each in self.reached.get(name, ())}
        return tuple(sorted((_shown_name(name), self.digests[name]) for name in reached.intersection(self.digests)))


def _bodies(modules: Sequence[bytes], names: Collection[str], arch: str) -> dict[str, str]:
    """Return the PTX of each function and variable that *names* reach in a link of *modules* without optimisation."""
    ptx = ptx_of_ltoir(modules, tuple(sorted(names)), arch, optimize=False) if names else None
    try:
        return ptx_bodies(ptx) if ptx is not None else {}
    except FormatError:
        return {}


def _newest_arch() -> str:
    """Return the newest architecture that NVRTC knows; empty without NVRTC."""
    try:
        major, minor = max(nvrtc.get_supported_ccs())
    except Exception:  # whatever it raises where the library is missing
        return ""
    return f"sm_{major}{minor}"


def _is_function(name: str, bodies: Mapping[str, str]) -> bool:
    return ".func" in bodies[name].partition("{")[0]


def _is_written(variable: str) -> bool:
    """Whether a variable is one that users write, and not one of compilers or calls by name."""
    return variable[0] not in "$_." or (variable.startswith("_Z") and not variable.startswith("_ZN3nca"))


def _shown_name(name: str) -> str:
    """Return a function's name as it reads; an empty text for what calls by name write."""
    return "" if _WRITTEN.search(name) else formatting.symbol(name)


def _own_digest(name: str, bodies: Mapping[str, str], around: tuple[str, ...] = ()) -> str:
    """Return the digest of a function or variable without those that it names, and with the content of what compilers
    write."""

    def replaced(match: re.Match[str]) -> str:
        word = match[0]
        if word.startswith(name):
            return "itself" + word[len(name) :]
        if word not in bodies or _is_function(word, bodies) or _is_written(word) or word in around:
            return _shown_name(word)
        return _own_digest(word, bodies, (*around, name))

    return sha256(_NAME.sub(replaced, _without_lines(bodies[name])).encode())[:_SHORT]


def _without_lines(body: str) -> str:
    """Return PTX without the lines of sources, and without what depends on the function's place in its module."""
    return " ".join(NUMBERED.sub(r"\1", _LINE.sub("", body)).split())


def _reached(name: str, bodies: Mapping[str, str]) -> frozenset[str]:
    found, left = {name}, [name]
    while left:
        new = set(_NAME.findall(bodies[left.pop()])).intersection(bodies) - found
        found |= new
        left += new
    return frozenset(found)


def _digest(name: str, bodies: Mapping[str, str], found: dict[str, str]) -> str:
    if name not in found:
        found[name] = "recursive"

        def replaced(match: re.Match[str]) -> str:
            word = match[0]
            if word.startswith(name):
                return "itself" + word[len(name) :]
            return _digest(word, bodies, found) if word in bodies else word

        found[name] = hashlib.sha256(_NAME.sub(replaced, _without_lines(bodies[name])).encode()).hexdigest()
    return found[name]
