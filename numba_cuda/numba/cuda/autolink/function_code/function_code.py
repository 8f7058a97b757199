# SPDX-License-Identifier: BSD-2-Clause
"""The code of a compiled function: what it needs linked, which travels with it up to the kernel; its plan and link."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from numba.cuda.cudadrv.external_code.diagnostics.timeline import Timeline, recording
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, LinkInputError, from_item, line_marker
from numba.cuda.cudadrv.external_code.plan.link_plan import (
    NAMED_EXPLICITLY,
    KernelCode,
    LinkError,
    LinkPlan,
    LinkRequest,
    SymbolSite,
    with_definition,
)
from numba.cuda.cudadrv.external_code.plan.python_functions import CalledObject, PythonFunction, PythonKernel
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba.cuda.cudadrv.linkable_code import LinkableCode

from numba_cuda_autolink.files import find_elsewhere

from ..protocol.answers import CallingCode
from ..protocol.ask import AskedCall, with_answer
from ..protocol.call_sites import CallSite, origins_of
from ..protocol.errors import HookError
from .calls import Calls, OrderedSet, SymbolSites

# The linker takes milliseconds to import, and a kernel that is already linked starts without it.
if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.link.linker_input import LinkRecord
    from numba.cuda.cudadrv.external_code.pipeline import Linked

# What was named explicitly, or a call site: an `AskedCall`, unless the kernel was loaded from a cache.
Entry: TypeAlias = str | os.PathLike[str] | LinkableCode | LinkInput | CallSite
Traced: TypeAlias = tuple[str, LinkInput]

_OPTIMIZABLE = (kinds.LTO_IR, kinds.CUDA, kinds.BITCODE)


def _no_runtimes(provided: Sequence[Traced]) -> Iterable[Traced]:
    return ()


class FunctionCode:
    """The code of one compiled function, as every front end knows it: its call sites and those of all that it calls,
    with their answers; what ``link=`` names; the symbols that its calls reference; each once, in order of first use."""

    def __init__(
        self,
        name: str,
        target: Target | None,
        timeline: Timeline,
        *,
        llvm_ir: Callable[[], Sequence[str]] | None = None,
        runtimes: Callable[[Sequence[Traced]], Iterable[Traced]] = _no_runtimes,
        front_end: str = "numba-cuda",
    ):
        """*llvm_ir* returns the function's own LLVM modules, where the front end has them, and *runtimes* the runtime
        libraries that its front end links besides what is provided, with their origins."""
        # What the function was compiled for; ``None`` if that is not known.
        self.name, self.target, self.timeline = name, target, timeline
        self.restored = False  # whether it was unpickled: objects are asked again, and it is linked again
        self.calls = Calls()
        self.symbols = SymbolSites()
        self.entry_name: str | None = None  # a kernel's name in the code
        self.link_options: dict[str, Any] = {}  # options of a kernel's link besides those of the target
        self.llvm_ir, self.runtimes, self.front_end = llvm_ir, runtimes, front_end
        self._entries = OrderedSet()
        self._glue = OrderedSet()
        self._origins: dict[CallSite, str] | None = None
        self._plans: dict[Target, LinkPlan] = {}
        self._undefined: tuple[Sequence[str], tuple[str, ...]] | None = None
        self._linked: dict[tuple[Target, str], tuple[LinkRequest, Linked]] = {}

    def __getstate__(self) -> dict[str, Any]:
        kept = ("name", "target", "calls", "symbols", "entry_name", "link_options", "front_end", "_entries", "_glue")
        return {name: vars(self)[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(vars(FunctionCode(state["name"], state["target"], Timeline())), **state, restored=True)

    @property
    def shown_name(self) -> str:
        """The name for messages: without those of the functions that enclose it."""
        return self.name.rpartition("<locals>.")[2]

    # What travels with the function

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What ``link=`` names and the call sites, in order of first use."""
        return tuple(self._entries)

    @property
    def origins(self) -> dict[CallSite, str]:
        """The call sites in this function and all that it calls, in order of first use, as links know them."""
        if self._origins is None:
            self._origins = origins_of(entry for entry in self._entries if isinstance(entry, CallSite))
        return self._origins

    @property
    def call_sites(self) -> tuple[CallSite, ...]:
        return tuple(self.origins)

    @property
    def has_calls(self) -> bool:
        return any(isinstance(entry, CallSite) for entry in self._entries)

    def add_call(self, call: AskedCall) -> None:
        """Link what the called object provides. The code of Python functions that C++ calls is linked as the object's;
        what it references counts as referenced by this function."""
        self.add_items((call,))
        self.calls.sites.add(call)
        for code in call.answer.calling:
            self.calls.add(code._function_code, by_cxx=True)
            self.symbols.note_all(code._function_code.symbols)

    def add_items(self, items: Iterable[Entry]) -> None:
        self._entries.update(items)
        self._origins = None
        self._plans.clear()

    def add_glue(self, link_input: LinkInput) -> None:
        self._glue.add(link_input)
        self._plans.clear()

    def add_callee(self, callee: FunctionCode, line: int | None = None) -> None:
        self.add_needed(callee)
        self.calls.add(callee, line=line)

    def add_needed(self, callee: FunctionCode) -> None:
        """Link what *callee* needs, and count what it references as referenced by this function."""
        self.add_items(callee._entries)
        self._glue.update(callee._glue)
        self.symbols.note_all(callee.symbols)

    # The link

    def plan(self, target: Target) -> LinkPlan:
        """Return what is linked for *target* into a kernel that is this function, besides its own code.

        Raises `LinkError` if a file that was named explicitly is missing or of an unknown kind, or two functions call
        one symbol with different prototypes, which the linker would not notice.
        """
        if target not in self._plans:
            self.symbols.check(self.shown_name)
            kernel, defined_at = f"kernel {self.shown_name!r}", self.calls.defined_at
            try:
                self._plans[target] = LinkPlan.of(kernel, target, self.provided(target), defined_at)
            except LinkInputError as error:
                raise self._explicitly_wrong(kernel, error) from error
        return self._plans[target]

    def _explicitly_wrong(self, kernel: str, error: LinkInputError) -> LinkError:
        """Return the error for what ``link=`` names, of the *kernel* or of a ``declare_device``, that is not code."""
        from numba.cuda.cudadrv.external_code.plan.declared_functions import find_bringing, with_declaration

        details = str(error)
        if error.missing:
            begin = "" if os.path.isabs(error.missing) else f"\n  where relative paths begin: {os.getcwd()}"
            details += f"{begin}\n  what to do: {find_elsewhere(error.missing)}"
        if declared := find_bringing(self.symbols, is_wrong):
            return LinkError(with_declaration(f"link= of declare_device({declared!r}): {details}", declared))
        return LinkError(with_definition(f"link= of {kernel}: {details}", self.calls.defined_at))

    def provided(self, target: Target) -> list[Traced]:
        """Return what is linked for *target* into a kernel with this function, besides its own code, with origins."""
        provided = [pair for entry in self._entries for pair in inputs_of(entry, target, self.origins.get(entry, ""))]
        origin = provided[-1][0] if provided else NAMED_EXPLICITLY
        provided += ((origin, glue) for glue in self._glue)
        return [*provided, *self.runtimes(provided)]

    def request(
        self, target: Target, own: Iterable[Any], output: str = "cubin", *, drop_unused_variables: bool = False
    ) -> LinkRequest:
        """Return the link of a kernel's *own* code with what it needs to a ``"cubin"``, or to ``"ptx"``, for which all
        is left out that takes no part in link-time optimisation."""
        plan = self.plan(target)
        if output == "ptx":
            plan = dataclasses.replace(plan, inputs=tuple(each for each in plan.inputs if is_optimizable(each.input)))
        symbols = self.own_undefined(), self.referenced_for(target)
        kernel_code = KernelCode(tuple(own), self.entry_name or "", *symbols, self.link_options, self._python())
        return LinkRequest(plan, kernel_code, output, drop_unused_variables and output == "cubin")

    def _python(self) -> PythonKernel | None:
        """Return what is known of the Python functions that a kernel was compiled from."""
        found: dict[Any, PythonFunction] = {}
        waiting: list[FunctionCode] = [self]
        while waiting:
            code = waiting.pop(0)
            if code not in found and (function := code.calls.function) is not None:
                options = () if code is self else code.calls.options
                found[code] = dataclasses.replace(function, options=options)
            waiting += (each for each in code.calls.below if each not in found and each not in waiting)
        if self not in found:
            return None
        functions = tuple(dict.fromkeys(found.values()))
        objects = (CalledObject.of(origin, site.callee.obj) for site, origin in self.origins.items())
        known = tuple(each for each in objects if each is not None)
        return PythonKernel(self.name, self.calls.types, functions, self.front_end, self.calls.options, known)

    def link(self, request: LinkRequest) -> Linked:
        """Run the link that is *request*\\ ed, once."""
        key = request.plan.target, request.output
        known = self._linked.get(key)
        if known is None or known[0] != request:
            from numba.cuda.cudadrv.external_code.pipeline import run_link

            with recording(self.timeline):
                known = self._linked[key] = request, run_link(request)
        return known[1]

    def link_record(self, target: Target, output: str) -> LinkRecord | None:
        """Return the record of the link to *output* for *target*; ``None`` if it was not linked here."""
        known = self._linked.get((target, output))
        return None if known is None else known[1].record

    # Symbols

    def own_undefined(self) -> tuple[str, ...]:
        """Return the functions that its own code calls and does not define."""
        if self.llvm_ir is None:
            return tuple(self.symbols)
        texts = self.llvm_ir()
        if self._undefined is None or self._undefined[0] is not texts:
            from numba.cuda.cudadrv.external_code.formats.symbols import undefined_functions

            self._undefined = texts, undefined_functions(texts)
        return self._undefined[1]

    @property
    def referenced(self) -> dict[str, tuple[SymbolSite, ...]]:
        """The undefined functions that calls in Python reference, with these calls."""
        return self._sites_of(self.own_undefined() if self.symbols else ())

    def referenced_for(self, target: Target) -> dict[str, tuple[SymbolSite, ...]]:
        """Return the same with those of Python functions that C++ calls in a link for *target*."""
        if not self.symbols:
            return {}
        called = itertools.chain.from_iterable(code._undefined for code in self._called_by_cxx(target))
        return self._sites_of((*self.own_undefined(), *called))

    def _sites_of(self, undefined: Iterable[str]) -> dict[str, tuple[SymbolSite, ...]]:
        alike: dict[str, list[str]] = {}  # the origins of calls by the text that symbols know them by
        for call, origin in self.origins.items():
            alike.setdefault(str(call), []).append(origin)

        def traced(site: SymbolSite) -> SymbolSite:
            return site._replace(asked=tuple(origin for text in site.asked for origin in alike.get(text, [text])))

        return {symbol: tuple(map(traced, self.symbols[symbol])) for symbol in undefined if symbol in self.symbols}

    def _called_by_cxx(self, target: Target) -> Iterator[CallingCode]:
        for site in self.call_sites:
            for code in with_answer(site, target).answer.calling:
                yield code
                yield from code._function_code._called_by_cxx(target)

    @property
    def prototypes(self) -> dict[str, str]:
        """The LLVM function types of the undefined functions that calls in Python reference: of the first such call."""
        return {symbol: sites[0].prototype for symbol, sites in self.referenced.items()}

    @property
    def called_functions(self) -> tuple[CalledFunction, ...]:
        """These functions, once for each set of types that calls pass and expect."""
        return tuple(site.called(symbol) for symbol, sites in self.referenced.items() for site in sites)


def is_optimizable(link_input: LinkInput) -> bool:
    return link_input.kind in _OPTIMIZABLE


def is_wrong(item: Any) -> bool:
    """Return whether *item*, which ``link=`` names, is no code that can be linked."""
    try:
        from_item(item)
    except LinkInputError:
        return True
    return False


def inputs_of(entry: Entry, target: Target, origin: str = "") -> list[Traced]:
    """Return the link inputs that *entry* stands for when it is linked for *target*, with their *origin*: by
    default the text of a call site. If there are none, since a file is missing or an object refuses, raise `LinkError`
    or, for what is named explicitly, `LinkInputError`."""
    if isinstance(entry, CallSite):
        try:
            return list(with_answer(entry, target).answer.traced_inputs(origin or str(entry)))
        except HookError as error:
            raise LinkError(error.describe(entry)) from error
        except LinkInputError as error:  # of a file that was there when the object was asked
            raise LinkError(f"{error}\n  returned by: {entry}") from error
    link_input = entry if isinstance(entry, LinkInput) else from_item(entry)
    if link_input.kind is kinds.CUDA:
        # As in numba-cuda, messages name the file, and headers are searched in the working directory first.
        path, code = link_input.name, link_input.code
        if (target.lineinfo or target.debug) and os.path.isfile(path):
            code = line_marker(os.path.abspath(path)).encode() + code  # for debuggers
        link_input = dataclasses.replace(link_input, name=os.path.basename(path), code=code)
    return [(NAMED_EXPLICITLY, link_input)]
