# SPDX-License-Identifier: BSD-2-Clause
"""What code became: which calls were inlined, and source, PTX and machine code of each piece."""

from __future__ import annotations

import dataclasses
import inspect
import linecache
import os
import re
from collections.abc import Collection, Mapping, Sequence

from numba.cuda.cudadrv.external_code.formats.cxx_names import readable
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.probes import PROBE_SYMBOLS, ptx_of_ltoir

from .disassembly import Instruction, as_text, disassembled
from .facts import BuildFacts
from .records import CallReport, CodeReport, FunctionReport, ListingReport

_PADDING = "NOP"
# What the link that makes PTX of LTO-IR adds to it: a kernel with a table of the functions.
_PROBE = re.compile(
    rf"^//.*\n|^\s*// \.globl\s+{PROBE_SYMBOLS[0]}\n|^\.global [^;]*\b{PROBE_SYMBOLS[1]}\b[^;]*;\n"
    rf"|^\.visible \.entry {PROBE_SYMBOLS[0]}\([^)]*\)\s*\{{[^}}]*\}}\n",
    re.MULTILINE,
)


def with_inlining(
    calls: Sequence[CallReport], codes: Sequence[CodeReport], functions: Collection[str]
) -> tuple[CallReport, ...]:
    """Return *calls* with whether they were inlined: whether what they call, of the linked *codes*, is still one of the
    *functions* of the result."""
    called = {name for code in codes if code.own for name in code.undefined or ()}
    by_site = {site: code for code in codes for site in (*code.brought_by, *_sites_of_parts(code))}
    found = []
    for call in calls:
        code = by_site.get(call.site)
        names = called.intersection(code.defines or ()) if code is not None else set()
        left = names.intersection(functions)
        known = bool(names) and len(left) in (0, len(names))
        found.append(dataclasses.replace(call, inlined=not left if known else None))
    return tuple(found)


def _sites_of_parts(code: CodeReport) -> list[str]:
    return [site for part in code.parts for site in part.brought_by]


def function_reports(sizes: Mapping[str, int], entry_name: str) -> tuple[FunctionReport, ...]:
    """Return the records of functions with these *sizes*, the kernel's first."""
    names = sorted(sizes, key=lambda name: (name != entry_name, -sizes[name], name))
    return tuple(FunctionReport(readable(name), sizes[name]) for name in names)


def listings_of(
    facts: BuildFacts,
    codes: Sequence[tuple[CodeReport, LinkInput | None, tuple[str, bytes] | None]],
    cubin: bytes,
) -> tuple[ListingReport, ...]:
    """Return the listings of the kernel and of each of the linked *codes*, which come with what the object returned and
    with kind and bytes of what the linker was given."""
    instructions = disassembled(cubin, facts.entry_name)
    files = {os.path.basename(each.name) for code, _, _ in codes for each in (code, *code.parts)}
    external = {name for code, _, _ in codes for name in code.defines or () if not code.own}
    kernel = facts.graph.functions[0]
    own = None
    if instructions is not None:
        own = [each for each in instructions if each.function not in external and _file(each) not in files]
    found = [ListingReport(kernel.name, _python_source(kernel.filename, kernel.line), None, _sass(own))]
    for code, source, linked in codes:
        if code.own:
            continue
        text = source.code.decode("utf-8", "replace") if source is not None and source.kind is kinds.CUDA else None
        names = {os.path.basename(each.name) for each in (code, *code.parts)}
        mine = None
        if instructions is not None:
            mine = [each for each in instructions if each.function in (code.defines or ()) or _file(each) in names]
        found.append(ListingReport(code.name, text, _ptx(code, linked, facts.target.arch), _sass(mine)))
    return tuple(found)


def _file(instruction: Instruction) -> str | None:
    return None if instruction.filename is None else os.path.basename(instruction.filename)


def _sass(instructions: list[Instruction] | None) -> str | None:
    if instructions is None:
        return None
    while instructions and _PADDING in instructions[-1].text:
        instructions = instructions[:-1]
    return as_text(instructions)


def _ptx(code: CodeReport, linked: tuple[str, bytes] | None, arch: str) -> str | None:
    kind, content = linked if linked is not None else ("", b"")
    if kind == kinds.PTX.name:
        return content.decode("utf-8", "replace").rstrip("\0")
    if kind != kinds.LTO_IR.name or not code.defines:
        return None
    ptx = ptx_of_ltoir([content], code.defines, arch)
    return None if ptx is None else _PROBE.sub("", ptx.decode("utf-8", "replace").rstrip("\0")).strip()


def _python_source(filename: str | None, line: int | None) -> str | None:
    """Return the source of the function that begins at *line*."""
    lines = linecache.getlines(filename)[line - 1 :] if filename and line else []
    try:
        return "".join(inspect.getblock(lines)) if lines else None
    except (SyntaxError, IndentationError, IndexError):  # the file was edited since the build
        return None
