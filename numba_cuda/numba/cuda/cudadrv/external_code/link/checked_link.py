# SPDX-License-Identifier: BSD-2-Clause
"""A link that no cache has: its parts are checked and linked, and so is its result.

Damaged machine code or LTO-IR can crash or hang nvJitLink. So can sound code, if one part defines a variable that
another calls as a function, for example. So parts that nvJitLink has not survived on this machine are linked in a child
process first, and parts that refer to each other are doubted together. What was compiled here is not doubted otherwise,
nor are the toolkit's and numba-cuda's own libraries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..cache.entry import CacheKey
from ..cache.settings import logger
from ..cache.store import current_store
from ..formats.containers import has_compressed_piece
from ..formats.cubin import kernels_of
from ..formats.symbols import find_defined, find_undefined, kernels_in, symbols_of
from ..inputs import kinds
from ..plan.link_plan import NAMED_EXPLICITLY, KernelCode, link_error
from ..plan.plan_checks import undefined_variable
from ..platform import cuda_libraries
from ..platform.child_process import ChildStartError
from .duplicate_symbols import DefinedTwiceError, check_readable_duplicates, find_duplicate
from .linker_input import LinkJob, Part, list_origins
from .nvjitlink import TrialError, link_here, link_in_helper, run_trials
from .prototype_checks import Interface, all_interfaces, check_no_kernel_is_called, check_signatures
from .shared_definitions import check_shared_definitions

_NEEDS_DEVICE_RUNTIME = re.compile(r"(?:Unresolved extern function|Undefined reference to) '(?:__cudaCDP2|cuda)\w*'")
# A link may unroll and inline, but no input allows more than this many bytes for each of its own, and these besides.
_MOST_GROWTH, _MOST_ADDED = 64, 64 << 20
_TIMES = re.compile(r"^.*\btime\b.*(?:\n|$)", re.MULTILINE | re.IGNORECASE)
_DROP = "-optimize-unused-variables"
# What nvJitLink prints, and does not report, of machine code that it links into something wrong.
_PRINTED_ERROR = re.compile(r"@E@|\berror *:|Prototype doesn't match|Multiple definition of")


class LinkFailedError(Exception):
    """nvJitLink, or a look at what it made, found a fault: ``log`` names it, and ``whole`` is all that was printed."""

    def __init__(self, log: str, whole: str = ""):
        self.log, self.whole = log, whole or log
        super().__init__(log)


def link_checked(job: LinkJob, options: tuple[str, ...], output: str) -> tuple[bytes, str]:
    """Check and link *job*: return the code, none if the device runtime is missing, and the log. Raises `LinkError` for
    what a check finds, `DefinedTwiceError` for what two parts define, `LinkFailedError` for what the linker finds."""
    if current_store().settings.verify:
        options = (*options, "-no-cache")  # nvJitLink gives no log of a link that it remembers
    interfaces = all_interfaces(job)
    check_signatures(job, interfaces)
    options = _with_variables_kept(job, interfaces, options)
    check_no_kernel_is_called(job, *(kernels_in(part.kind.name, part.code) for part in job.provided))
    check_readable_duplicates(job)
    doubts, arch = find_doubted(job), job.plan.target.arch
    try:
        tried = link_in_helper(job.parts, options, output) if doubts else None
    except TrialError as error:
        if not isinstance(error.__cause__, ChildStartError):
            raise link_error(job.plan, "the process that links external code fails", f"{error}") from error
        logger.warning("external code is linked without a trial: %s", error)
        tried = None
    alone = []  # the doubted parts that nvJitLink does not survive alone either
    if tried is not None and tried.crash:
        outcomes = run_trials(doubts, [[index] for index in range(len(doubts))], arch)
        alone = [part for part, outcome in zip(doubts, outcomes, strict=True) if outcome.crash]
    if not alone:  # else what two parts define may be the reason
        # What survived one link may crash the next.
        duplicate = find_duplicate(job.provided, job.kernel_code.sites, arch, isolated=tried is not None)
        if duplicate is not None:
            raise DefinedTwiceError(duplicate)
    if tried is not None and tried.crash:
        raise link_error(
            job.plan,
            f"an input crashes nvJitLink ({tried.crash})",
            *(f"at fault: {part.origin}" for part in alone or doubts),
            "what to do: rebuild the code: it is damaged, or it triggers a bug in nvJitLink (the link ran in another"
            " process)",
            log=tried.log,
        )
    if tried is not None and tried.ok and _PRINTED_ERROR.search(tried.printed):
        raise link_error(job.plan, "the linker reports an error", f"linked: {list_origins(job.parts)}", log=tried.log)
    outcome = tried or link_here(job.parts, options, output)
    log = outcome.log.replace("\0", "")
    if not outcome.ok:
        if _NEEDS_DEVICE_RUNTIME.search(log):
            return b"", log
        raise LinkFailedError(log)
    if (size := len(outcome.code)) > (allowed := _MOST_ADDED + _MOST_GROWTH * sum(len(p.code) for p in job.parts)):
        raise link_error(
            job.plan,
            f"the linked code has {size} bytes, more than its inputs allow",
            f"linked: {list_origins(job.parts)}",
            f"expected: at most {allowed} bytes",
            "what to do: rebuild the machine code among them: it has a damaged size",
            log=log,
        )
    remember(job, doubts)
    notes = check_shared_definitions(job)
    if undefined_variable(log) and any(each.origins != (NAMED_EXPLICITLY,) for each in job.plan.inputs):
        warnings = "\n".join(line for line in log.splitlines() if undefined_variable(line))
        raise LinkFailedError(warnings, log)
    if output == "cubin" and (symbol := _undefined_symbol(outcome.code, job.kernel_code)):
        raise LinkFailedError(f"Undefined reference to '{symbol}', which nvJitLink does not report")
    if output == "cubin":
        check_no_kernel_is_called(job, kernels_of(outcome.code))  # those of LTO-IR show only here
    # The log is cached with the code, so what differs from run to run is left out. Parts are named by their numbers:
    # equal code may be called otherwise where the link is found in the cache.
    numbers = (job.parts.index(each.part) + 1 for each in interfaces if not each.is_whole)
    notes += [f"not checked: the parameters of functions in input {number}, which cannot be read" for number in numbers]
    hidden = dict.fromkeys(each.symbol for part in job.parts for each in part.hidden)
    notes += [f"not checked: the members of structs by value of {f}, which C++ does not take apart" for f in hidden]
    return outcome.code, "\n".join((_TIMES.sub("", log).strip(), *notes)).strip()


def _with_variables_kept(job: LinkJob, interfaces: Sequence[Interface], options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options of a link that drops unused variables with those to keep: those that the host sets, and those
    of code that is named explicitly, which programs may look up. All are kept if it is not known which these are."""
    named = job.plan.named_explicitly
    if _DROP not in options:
        return options
    kept = {variable.memory.type.name for _, variable in job.plan.variables}
    for each in interfaces:
        if each.part.planned is not None and each.part.planned.input in named:
            if each.variables is None:
                return tuple(option for option in options if option != _DROP)
            kept.update(each.variables)
    return (*options, f"-variables-used={','.join(sorted(kept))}") if kept else options


def _undefined_symbol(cubin: bytes, kernel_code: KernelCode) -> str | None:
    """Return a symbol that a call in Python references and the linked *cubin* lacks, or ``None``. After ptxas has
    failed once in a process, nvJitLink (at least 12.9 to 13.5) can let that pass."""
    named = [name for name in kernel_code.sites if name.encode() + b"\0" in cubin]  # what was inlined is not there
    found = symbols_of("cubin", cubin) if named else None
    return next((name for name in found.undefined if name in named), None) if found is not None else None


_SURVIVED = b"survived"


def find_doubted(job: LinkJob) -> list[Part]:
    """Return the parts from outside that were not linked on this machine before, with this toolkit and for this
    architecture; those that refer to each other, and were not linked together; and those whose symbols and prototypes
    cannot be read, which a link may report to stderr alone."""
    store = current_store()
    found = [
        part
        for part in _external(job)
        if part.compiled is None
        and (has_compressed_piece(part.kind.name, part.code) or store.get(_key(job, (part,))) != _SURVIVED)
    ]
    together = _find_references(job)
    if together and store.get(_key(job, together)) != _SURVIVED:
        found += [part for part in together if part not in found]
    return found


def remember(job: LinkJob, parts: Iterable[Part]) -> None:
    parts = list(parts)
    for part in parts:
        current_store().put(_key(job, (part,)), _SURVIVED)
    if parts and (together := _find_references(job)):
        current_store().put(_key(job, together), _SURVIVED)


def _external(job: LinkJob) -> list[Part]:
    return [part for part in job.provided if part.planned is not None]


def _find_references(job: LinkJob) -> list[Part]:
    """Return the parts of machine code or PTX that refer to other parts, with those that they may refer to. What LTO-IR
    defines cannot be read."""
    parts = _external(job)
    if len(parts) < 2:
        return []
    wanted = {id(part): find_undefined(part.kind.name, part.code) for part in parts}
    if not any(wanted.values()):
        return []
    found: dict[int, Part] = {}
    for other in parts:
        defined = None if other.kind is kinds.LTO_IR else find_defined(other.kind.name, other.code)
        for part in parts:
            symbols = wanted[id(part)]
            if part is not other and (symbols if defined is None else symbols & defined):
                found |= {id(part): part, id(other): other}
    return [part for part in parts if id(part) in found]


def _key(job: LinkJob, parts: Sequence[Part]) -> CacheKey:
    return CacheKey(
        "survival",
        " with ".join(part.name for part in parts),
        (
            ("format", "2"),
            ("nvJitLink", cuda_libraries.nvjitlink_build()),
            ("architecture", job.plan.target.arch),
            ("LTO", f"{job.has_ltoir}"),
            *((f"kind {number}", part.kind.name) for number, part in enumerate(parts)),
            *((f"code {number}", part.code) for number, part in enumerate(parts)),
        ),
    )
