# SPDX-License-Identifier: BSD-2-Clause
"""Makes the report of a kernel."""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from numba.cuda import dispatcher as host_dispatcher
from numba.cuda.cudadrv.external_code.compile import dispatch as compile_input
from numba.cuda.cudadrv.external_code.formats.cubin_resources import resources
from numba.cuda.cudadrv.external_code.formats.symbols import Symbols, symbols_of
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.link.plan import PlannedInput, batched
from numba.cuda.cudadrv.external_code.link.probes import symbols_of_ltoir
from numba.cuda.cudadrv.external_code.link.record import LinkedInput, sha256
from numba.cuda.cudadrv.external_code.target import Target

from .facts import BuildFacts, CallFacts, facts_of
from .records import BuildReport, CallReport, CodeReport, CompiledReport, LinkReport, Report, ResultReport
from .why import why


def report(kernel: Any, signature: Any = None, cc: Any = None) -> Report:
    """What the calls in *kernel* brought, how it was linked, and what came of it.

    Parameters
    ----------
    kernel:
        What ``cuda.jit`` made, or with a *signature* a Python function.
    signature:
        Build it for this signature now, as `build` does; no GPU is needed. Without one the report is of what is
        compiled already.
    cc:
        The compute capability, ``(9, 0)``, or a list of several. Default: that of the current GPU, or what the kernel
        is compiled for already.

    Raises
    ------
    TypeError
        If *kernel* is no kernel.
    ValueError
        Without a *signature*, if nothing is compiled yet, or for several signatures.
    """
    if signature is not None:
        from ..ahead_of_time import build

        wanted = cc if isinstance(cc, list) else [cc]
        return merged([build(kernel, signature, cc=each).report for each in wanted])
    compiled = _the_compiled(kernel)
    library = compiled._codelibrary
    if cc is None:
        capabilities = list(library._cubin_cache) or [library._ensure_cc(None)]
    else:
        from ..ahead_of_time import _compute_capability

        capabilities = [_compute_capability(each) for each in (cc if isinstance(cc, list) else [cc])]
    return of_library(library, compiled.signature.args, capabilities)


def _the_compiled(kernel: Any) -> Any:
    if not isinstance(kernel, host_dispatcher.CUDADispatcher):
        raise TypeError(
            f"report() without a signature takes a @cuda.jit kernel, got {type(kernel).__name__} {kernel!r}: pass the"
            ' signature to build it for, for example signature="void(float32[::1])"'
        )
    name = kernel.py_func.__name__
    if kernel.targetoptions.get("device"):
        raise TypeError(f"report() is of kernels, and {name} is a device function")
    overloads = list(kernel.overloads.values())
    if len(overloads) == 1:
        return overloads[0]
    if not overloads:
        raise ValueError(
            f"kernel {name} is not compiled yet: launch it, or pass the signature to build it for, for example"
            f' report({name}, "void(float32[::1])", cc=(9, 0))'
        )
    listed = "".join(f"\n  {_signature(each.signature.args)}" for each in overloads)
    raise ValueError(f"kernel {name} is compiled for {len(overloads)} signatures; pass the one that is meant:{listed}")


def merged(reports: Sequence[Report]) -> Report:
    """One report of a kernel's builds for several architectures."""
    builds = tuple(build for each in reports for build in each.builds)
    return dataclasses.replace(reports[0], builds=builds)


def of_library(library: Any, argtypes: Iterable[Any], capabilities: Iterable[Any]) -> Report:
    """The report of a compiled kernel, for compute capabilities; it is linked for those that it is not yet."""
    made = []
    for cc in capabilities:
        cubin = bytes(library.get_cubin(cc).code)
        facts = library.facts_before_pickling(cc) or facts_of(library, cc)
        made.append(of_facts(facts, _signature(argtypes), functools.partial(_planned, library, cc), cubin, "cubin"))
    return merged(made)


def _planned(library: Any, cc: Any) -> Iterable[PlannedInput]:
    try:
        inputs: Iterable[PlannedInput] = library.plan(cc).inputs
    except Exception:  # a file is gone meanwhile: its symbols are not shown
        return ()
    return inputs


def of_facts(
    facts: BuildFacts, signature: str, planned: Callable[[], Iterable[PlannedInput]], code: bytes, output: str
) -> Report:
    """The report of one build. *planned* finds the external code again, for its symbols; *code* is the result."""
    if output == "ltoir":
        items = [LinkedInput.of(each) for each in planned()]
    else:
        items = list(facts.link.inputs) if facts.link is not None else []
    known = (
        {(each.input.kind.name, sha256(each.input.code)): each.input for each in batched(planned())} if items else {}
    )
    codes = _codes(facts, items, known)
    calls = tuple(_call(call, codes) for call in facts.calls)
    result = ResultReport({"cubin": "cubin", "ptx": "PTX", "ltoir": "LTO-IR"}[output], len(code), sha256(code))
    if output == "cubin":
        used = resources(code, facts.entry_name, facts.log)
        result = dataclasses.replace(result, **dataclasses.asdict(used))
    build = BuildReport(facts.target.arch, facts.entry_name, facts.restored, calls, _link(facts, codes, output), result)
    kernel = facts.graph.functions[0]
    return Report(kernel.name, kernel.filename, kernel.line, signature, facts.graph, (build,), _versions())


def _signature(argtypes: Iterable[Any]) -> str:
    return f"({', '.join(map(str, argtypes))})"


def _call(call: CallFacts, codes: Iterable[CodeReport]) -> CallReport:
    return CallReport(
        call.object,
        call.name,
        call.argtypes,
        call.filename,
        call.line,
        call.chain,
        call.function,
        call.seconds,
        call.stored,
        tuple(part for code in codes for part in code.parts or (code,) if call.text in part.brought_by),
    )


def _link(facts: BuildFacts, codes: tuple[CodeReport, ...], output: str) -> LinkReport:
    if output == "ltoir":
        return LinkReport(True, "to be linked by whoever takes the LTO-IR", None, codes, "", "not linked", None)
    link = facts.link
    if link is None:
        lto = facts.target.lto
        return LinkReport(lto, why(facts.target, lto, codes), None, codes, facts.log, "built", None)
    reason = why(facts.target, link.lto, codes)
    return LinkReport(link.lto, reason, link.options, codes, link.log, link.origin, link.seconds)


def _codes(
    facts: BuildFacts, items: Sequence[LinkedInput], known: dict[tuple[str, str], LinkInput]
) -> tuple[CodeReport, ...]:
    """What was linked, with symbols: first those that can be read, and then, in LTO-IR, those that these want."""
    found: list[Symbols | None] = []
    external = [item for item in items if item.origins]
    wanted = facts.own_symbols.undefined if len(external) == 1 else None
    programs = [_linked_code(item, known.get((item.kind, item.sha256)), facts.target, wanted) for item in items]
    for item, program in zip(items, programs, strict=True):
        if not item.origins:
            found.append(Symbols((facts.entry_name,), facts.own_symbols.undefined))
        else:
            found.append(symbols_of(*program) if program is not None else None)
    candidates = {name for symbols in (*found, facts.own_symbols) if symbols is not None for name in symbols.undefined}
    for index, program in enumerate(programs):
        if found[index] is None and program is not None and program[0] == kinds.LTO_IR.name:
            found[index] = symbols_of_ltoir(program[1], candidates, facts.target.arch)
    return tuple(_code(item, symbols) for item, symbols in zip(items, found, strict=True))


def _linked_code(
    item: LinkedInput, source: LinkInput | None, target: Target, wanted: Collection[str] | None
) -> tuple[str, bytes] | None:
    """Kind and bytes of what the linker got for *item*, if they can still be had as they were."""
    if source is None:
        return None
    if item.compiled is None:
        return item.kind, source.code
    try:
        code = compile_input.compiled(source, target, wanted).code
    except Exception:  # a header is gone or was edited meanwhile
        return None
    return (item.compiled.kind, code) if sha256(code) == item.compiled.sha256 else None


def _code(item: LinkedInput, symbols: Symbols | None) -> CodeReport:
    compiled = CompiledReport(**dataclasses.asdict(item.compiled)) if item.compiled is not None else None
    parts = tuple(dataclasses.replace(_code(part, None), compiled=compiled, unit=item.name) for part in item.parts)
    return CodeReport(
        item.kind,
        item.name,
        item.size,
        item.sha256,
        item.origins,
        compiled,
        symbols.defined if symbols is not None else None,
        symbols.undefined if symbols is not None else None,
        parts=parts,
    )


@functools.cache
def _versions() -> tuple[tuple[str, str], ...]:
    target = Target((0, 0))
    named = []
    for name in ("numba-cuda-autolink", "numba-cuda", "cuda-core"):
        try:
            named.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    for name, version in (
        ("NVRTC", target.nvrtc_version),
        ("NVVM", target.nvvm_version),
        ("nvJitLink", target.nvjitlink_version),
    ):
        if version is not None:
            named.append((name, ".".join(map(str, version))))
    return tuple(named)
