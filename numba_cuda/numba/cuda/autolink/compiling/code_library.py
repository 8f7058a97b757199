# SPDX-License-Identifier: BSD-2-Clause
"""The code library: what a compiled function needs linked travels with it to the kernel."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.core import config
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, LinkInputError, from_item
from numba.cuda.cudadrv.external_code.link.plan import COOPERATIVE_LAUNCH, NAMED_EXPLICITLY, NRT, LinkPlan
from numba.cuda.cudadrv.external_code.target import Target, split_cc
from numba.cuda.cudadrv.libs import get_cudalib
from numba.cuda.memory_management.nrt import NRT_LIBRARY

from ..compilation import cc_without_device, compilation
from ..protocol.asking import ask
from ..protocol.call_sites import CallSite
from ..protocol.callee import HOOK
from ..protocol.errors import HookError
from .call_graph import Calls
from .ordered_set import OrderedSet

# What it takes to link takes milliseconds to import, and is imported where it is needed: a kernel that is linked
# already starts without.
if TYPE_CHECKING:
    from numba.cuda.cudadrv.external_code.link.record import LinkRecord

    from .canonical_names import CanonicalNames

_WARN_OF_OTHER_VERSION = 'i32 2, !"Debug Info Version"'
_POINTER = re.compile(r"[%\w.\"]+\*+")
_OVERRIDE_OTHER_VERSION = 'i32 4, !"Debug Info Version"'


class SymbolSite(NamedTuple):
    """A call that wants a symbol: its LLVM prototype, and which call it is, for messages."""

    prototype: str
    call: str

    @property
    def untyped(self) -> str:
        """The prototype without what its pointers point to, in which calls of one function may differ."""
        return _POINTER.sub("i8*", self.prototype)


class LinkingFiles(OrderedSet):
    """What one function needs linked, in order of first use: what was named explicitly, and call sites.

    To numba-cuda, which knows paths and ``LinkableCode``, it is a set of those: call sites stand for what they were
    answered, for the target that the function was compiled for.
    """

    def __init__(self, target: Callable[[], Target]):
        super().__init__()
        self._target = target

    @property
    def entries(self) -> tuple[Any, ...]:
        """Paths, ``LinkableCode`` objects and `CallSite` objects, in order."""
        return tuple(self._items)

    def update(self, items: Iterable[Any]) -> None:
        """Add each of *items*; of another function's files, its entries."""
        super().update(items.entries if isinstance(items, LinkingFiles) else items)

    def __iter__(self) -> Iterator[Any]:
        for entry in self._items:
            if isinstance(entry, CallSite):
                for link_input in ask(entry.callee, entry.argtypes, self._target()).inputs():
                    yield link_input.as_linkable()
            else:
                yield entry

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @classmethod
    def _from_iterable(cls, items: Iterable[Any]) -> OrderedSet:
        return OrderedSet(items)


class LinkingCodeLibrary(CUDACodeLibrary):
    """A code library that links what called objects provide.

    Modules and libraries keep the order of first use and are there once, so that the same program gives the same code.
    """

    _canonical_names: CanonicalNames | None = None
    _entry_name: str | None
    _is_searched = False
    _llvm_strs: list[str] | None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        in_progress = compilation()
        self.target: Target | None = in_progress.target if in_progress is not None else None
        self._symbols: dict[str, list[SymbolSite]] = {}
        # By compute capability, what was to be linked when its link began.
        self._linked: dict[Any, tuple[bytes, ...]] = {}
        # How each link went, by compute capability and output.
        self.link_records: dict[tuple[Any, str], LinkRecord] = {}
        self.calls = Calls()
        self._linking_libraries = OrderedSet()
        self._linking_files = LinkingFiles(self._own_target)

    def _own_target(self) -> Target:
        if self.target is not None:
            return self.target
        return self._target_for(self._ensure_cc(None))

    def _target_for(self, cc: tuple[Any, ...]) -> Target:
        """The target of a link for *cc*."""
        capability, suffix = split_cc(cc)
        base = self.target or Target(capability, lto=self._lto, max_registers=self._max_registers)
        return Target(
            capability, suffix, self._lto, base.debug, base.lineinfo, base.fastmath, self._max_registers or None
        )

    def _ensure_cc(self, cc: Any) -> Any:
        return cc_without_device() if cc is None and cc_without_device() is not None else super()._ensure_cc(cc)

    # What travels with the function

    def add_call_site(self, site: CallSite) -> None:
        """Link what the object called at *site* provides."""
        self._linking_files.add(site)
        self.calls.add_site(site)

    def expect_search(self) -> None:
        """If this is a kernel's library, numba-cuda next searches its PTX for functions that need more linked."""
        self._is_searched = True

    def get_asm_str(self, cc: Any = None) -> str:
        """The PTX for *cc* (default: the current GPU).

        To numba-cuda's search for undefined functions these alone: under LTO nobody reads the PTX, and to make it takes
        longer than to make the LTO-IR. Where NRT may be linked, which is found by its form in PTX, that is made.
        """
        is_searched, self._is_searched = self._is_searched and cc is None, False
        is_kernel = self._entry_name is not None
        if (
            is_searched
            and is_kernel
            and self._lto
            and not (config.DUMP_ASSEMBLY or getattr(config, "CUDA_ENABLE_NRT", False))
        ):
            return "\n".join(
                function.name for module in self.modules for function in module.functions if function.is_declaration
            )
        ptx: str = super().get_asm_str(cc)
        return ptx

    def add_linking_file(self, path_or_obj: Any) -> None:
        super().add_linking_file(path_or_obj)
        if self._canonical_names is None:
            # A kernel's PTX is made before ``link=`` is looked at; its names were not known to matter.
            self._llvm_strs = None
            self._ptx_cache.clear()
            self._ltoir_cache.clear()

    @property
    def call_sites(self) -> tuple[CallSite, ...]:
        """The call sites of linkable code in this function and all that it calls, in order of first use."""
        return tuple(entry for entry in self._entries if isinstance(entry, CallSite))

    @property
    def _entries(self) -> tuple[Any, ...]:
        files = self._linking_files
        return files.entries if isinstance(files, LinkingFiles) else tuple(files)

    def add_linking_library(self, library: Any) -> None:
        super().add_linking_library(library)
        self.calls.add(library)
        if isinstance(library, LinkingCodeLibrary):
            for symbol, sites in library._symbols.items():
                for site in sites:
                    self.note_symbol(symbol, site)

    def facts_before_pickling(self, cc: Any) -> Any:
        """What was known of it, for reports, before it was pickled."""
        return None

    def note_symbol(self, symbol: str, site: SymbolSite) -> None:
        """Remember that *symbol* is called at *site*: the first site of each prototype."""
        known = self._symbols.setdefault(symbol, [])
        if site.untyped not in (other.untyped for other in known):
            known.append(site)

    @property
    def symbol_sites(self) -> dict[str, str]:
        """For each symbol that this function, or one that it calls, declares: which call wanted it first."""
        return {symbol: sites[0].call for symbol, sites in self._symbols.items()}

    @property
    def symbol_prototypes(self) -> dict[str, str]:
        """For each of these symbols, the LLVM function type with which it is called."""
        return {symbol: sites[0].prototype for symbol, sites in self._symbols.items()}

    @property
    def modules(self) -> list[Any]:
        """The LLVM modules of this library and all below it: each once, callers before callees, because NVVM links
        only those functions that something before them called."""
        ordered: list[Any] = []
        visited = set()

        def visit(library: Any) -> None:
            if id(library) in visited:
                return
            visited.add(id(library))
            if isinstance(library, LinkingCodeLibrary):
                for below in reversed(tuple(library._linking_libraries)):
                    visit(below)
                ordered.append(library._module)
            else:
                ordered.extend(reversed(list(library.modules)))

        visit(self)
        return ordered[::-1]

    @property
    def llvm_strs(self) -> list[str]:
        """The text of the modules: of a kernel with external code with canonical names, so that its links can be told
        to be the same."""
        if self._llvm_strs is None and self._entries:
            from .canonical_names import CanonicalNames

            self._canonical_names = CanonicalNames()
            canonical = self._canonical_names.modules([str(module) for module in self.modules])
            if self._entry_name is not None:
                self._entry_name = self._canonical_names.name(self._entry_name)
            # With line information, Numba's modules and NVRTC's disagree on what to do when two say which version
            # theirs has, which LTO takes for an error; to override settles it, the version being one.
            self._llvm_strs = [text.replace(_WARN_OF_OTHER_VERSION, _OVERRIDE_OTHER_VERSION) for text in canonical]
        texts: list[str] = super().llvm_strs
        return texts

    def rename_entry(self, name: str) -> None:
        """Let the kernel be called *name* in its code.

        Raises
        ------
        ValueError
            If something else in it is called so.
        """
        texts = self.llvm_strs  # which may rename it too
        if self._entry_name is not None:
            if any(f'@"{name}"' in text for text in texts):
                raise ValueError(f"the kernel cannot be called {name!r}: something that it calls or reads is")
            self._llvm_strs = [text.replace(self._entry_name, name) for text in texts]
            self._entry_name = name
            self._ptx_cache.clear()
            self._ltoir_cache.clear()
            self._cubin_cache.clear()

    # The link

    def plan(self, cc: Any = None) -> LinkPlan:
        """What is linked into this kernel for *cc* (default: the current GPU), beside its own code.

        Raises
        ------
        LinkError
            If a file that was named explicitly is missing or of no known kind, or two functions call one symbol with
            different prototypes, which the linker would not notice.
        """
        for symbol, sites in self._symbols.items():
            if len(sites) > 1:
                raise _link_error(
                    f"linking kernel {self.name!r}: {symbol!r} is called as functions with different prototypes\n"
                    + "\n".join(f"  {site.prototype} by: {site.call}" for site in sites)
                    + "\n  what to do: give each prototype a symbol of its own (put the types into its name)"
                )
        target = self._target_for(self._ensure_cc(cc))
        return LinkPlan.of(f"kernel {self.name!r}", target, self._brought(target))

    def _brought(self, target: Target) -> Iterator[tuple[str, LinkInput]]:
        needs_nrt = False
        for entry in self._entries:
            for origin, link_input in self._inputs_of(entry, target):
                needs_nrt = needs_nrt or link_input.nrt
                yield origin, link_input
        if needs_nrt and getattr(config, "CUDA_ENABLE_NRT", False):
            yield NRT, from_item(NRT_LIBRARY)
        if self.needs_cudadevrt:
            yield COOPERATIVE_LAUNCH, from_item(get_cudalib("cudadevrt", static=True))

    def _inputs_of(self, entry: Any, target: Target) -> Iterator[tuple[str, LinkInput]]:
        if not isinstance(entry, CallSite):
            try:
                link_input = from_item(entry)
                if link_input.kind is kinds.CUDA:
                    # As numba-cuda has it: messages have the file's name, headers are looked for in the working
                    # directory first.
                    link_input = dataclasses.replace(link_input, name=os.path.basename(link_input.name))
                yield NAMED_EXPLICITLY, link_input
            except LinkInputError as error:
                raise _link_error(str(error)) from error
            return
        try:
            answer = ask(entry.callee, entry.argtypes, target)
        except HookError as error:
            hook = f"{entry.callee}.{HOOK}"
            raise _link_error(f"{hook} {error}\n  called at: {entry.place}") from error
        for link_input in answer.inputs():
            yield str(entry), link_input

    def get_cubin(self, cc: Any = None) -> Any:
        """The linked cubin (a `cuda.core.ObjectCode`) for *cc*, and the callbacks of the module that it makes."""
        if not self._entries and not self.needs_cudadevrt:
            try:
                code = super().get_cubin(cc)
            except Exception:
                if not self._symbols:
                    raise
            else:
                links = sys.modules.get("numba.cuda.cudadrv.external_code.link.run")  # loaded where there was a link
                if links is None or not links.passed_undefined(bytes(code.code), self._symbols):
                    return code
                self._cubin_cache.clear()
            # A call wants a symbol that is nowhere: what follows fails, and says so.
        cc = self._ensure_cc(cc)
        plan = self.plan(cc)
        self._setup_functions = list(plan.setup_callbacks)
        self._teardown_functions = list(plan.teardown_callbacks)
        if cc not in self._cubin_cache:
            if self._lto and config.DUMP_ASSEMBLY:
                print(f"ASSEMBLY (AFTER LTO) {self.name}".center(80, "-"), self.get_lto_ptx(cc), "=" * 80, sep="\n")
            from numba.cuda.cudadrv.external_code.link import run as link_run
            from numba.cuda.cudadrv.external_code.link.fingerprints import plan_fingerprints

            before = plan_fingerprints(plan)
            linked = link_run.link(
                plan,
                self._own_code(plan.target),
                self.symbol_sites,
                prototypes=self.symbol_prototypes,
                entry=self._entry_name or "",
                # What is built ahead of time is loaded by others, who may set its variables.
                calls=self._calls,
                drop_unused_variables=(plan.is_all_asked_for and not plan.target.debug and cc_without_device() is None),
            )
            self._cubin_cache[cc] = linked.code
            self._linked[cc] = before
            if linked.record is not None:
                self.link_records[cc, "cubin"] = linked.record
            self._linkerinfo_cache[cc] = linked.log
        return self._cubin_cache[cc]

    def get_lto_ptx(self, cc: Any = None) -> str:
        """The PTX after link-time optimisation; inputs that take no part in it are left out with a warning."""
        if not self._entries or not self._lto:
            return super().get_lto_ptx(cc)
        plan = self.plan(cc)
        optimizable = []
        for planned in plan.inputs:
            if planned.input.kind in (kinds.LTO_IR, kinds.CUDA, kinds.BITCODE):
                optimizable.append(planned)
            else:
                warnings.warn(f"Not adding {planned.input.name} as it is not optimizable at link time", stacklevel=2)
        plan = dataclasses.replace(plan, inputs=tuple(optimizable))
        from numba.cuda.cudadrv.external_code.link import run as link_run

        linked = link_run.link(plan, self._own_code(plan.target), self.symbol_sites, output="ptx", calls=self._calls)
        if linked.record is not None:
            self.link_records[self._ensure_cc(cc), "ptx"] = linked.record
        return bytes(linked.code.code).decode()

    def _calls(self) -> tuple[str, ...]:
        """The functions that the code of this kernel calls and does not define."""
        from numba.cuda.cudadrv.external_code.formats import symbols as code_symbols

        return code_symbols.in_llvm(self.llvm_strs).wanted

    def _own_code(self, target: Target) -> list[LinkInput]:
        if self._lto:
            return [LinkInput(kinds.LTO_IR, bytes(self.get_ltoir(cc=target.cc)), name=self.name)]
        return [
            LinkInput(kinds.PTX, ptx.encode(), name=f"{self.name} ({number})" if number else self.name)
            for number, ptx in enumerate(self.get_asm_strs(cc=target.cc))
        ]

    @property
    def brings_external_code(self) -> bool:
        """Whether more is linked than numba-cuda's own runtime, which numba-cuda can pickle."""
        return any(entry is not NRT_LIBRARY for entry in self._entries)

    @property
    def changed_since_linked(self) -> bool:
        """Whether a file or a header was edited after the link began."""
        from numba.cuda.cudadrv.external_code.link.fingerprints import plan_fingerprints

        return any(plan_fingerprints(self.plan(cc)) != before for cc, before in self._linked.items())


def _link_error(message: str) -> Exception:
    from numba.cuda.cudadrv.external_code.link.errors import LinkError

    return LinkError(message)
