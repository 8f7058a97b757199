# SPDX-License-Identifier: BSD-2-Clause
"""The error for an instruction that the target's architecture does not have: whose it is, and which one has it.

ptxas names a line of PTX that nobody has seen: link-time optimisation made it. So that is made again and saved, and the
PTX of each part is searched for the instruction.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ..compile import nvrtc_log, programs
from ..inputs import kinds
from ..inputs.link_input import LinkInput
from ..link import ltoir_probes
from ..plan.errors import LinkError, link_error
from ..plan.link_plan import KernelCode, LinkPlan, PlannedInput

if TYPE_CHECKING:
    from ..link.linker_input import LinkJob, Part

_UNSUPPORTED = re.compile(
    r"line (?P<line>\d+); error\s*: (?P<kind>Instruction|Feature|Modifier) '(?P<what>[^']+)'(?: on '[^']+')? "
    r"(?:not supported on \.target|requires \.target|cannot be compiled for architecture)[^\n]*"
)
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
    ptx = ltoir_probes.linked_code([part for part in job.parts if part.kind is kinds.LTO_IR], arch, "ptx")
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
        plan, [str(source)], found, ltoir_probes.ptx_of_ltoir([code], kernel_code.undefined, target.arch), log
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
    return ltoir_probes.ptx_of_ltoir([part.code], tuple(symbols) if part.planned is not None else (), arch)


def _text(ptx: bytes | None) -> str:
    return (ptx or b"").decode("utf-8", "replace")


def _line(ptx: bytes | None, found: re.Match[str]) -> tuple[int, str]:
    lines = [line.strip() for line in _text(ptx).splitlines()]
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
    return ltoir_probes.linked_code([LinkInput(kinds.PTX, text, name="generated")], arch, "cubin") is not None
