# SPDX-License-Identifier: BSD-2-Clause
"""The code library: a compiled function takes what it needs linked along, up to the kernel."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.core import config
from numba.cuda.cudadrv.driver import binding, driver
from numba.cuda.cudadrv.external_code.diagnostics.timeline import Timeline, recording
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CalledFunction
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, from_item
from numba.cuda.cudadrv.external_code.plan.kernel_code import KernelCode, LLVMModules, SymbolSite
from numba.cuda.cudadrv.external_code.plan.link_plan import COOPERATIVE_LAUNCH, NRT, LinkPlan
from numba.cuda.cudadrv.external_code.plan.link_request import LinkRequest
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, Target
from numba.cuda.cudadrv.libs import get_cudalib
from numba.cuda.cudadrv.nvrtc import get_arch_option
from numba.cuda.locks import module_init_lock
from numba.cuda.memory_management.nrt import NRT_LIBRARY

from ...compilation.context import cc_without_device, compilation, is_asking, is_for_launch
from ...function_code.call_graph import Calls, callees_first
from ...function_code.called_symbols import SymbolSites
from ...function_code.canonical_ir import compatible_with_cxx, with_canonical_names, with_names_by_content
from ...protocol.ask import AskedCall, with_answer
from ...protocol.call_sites import CallSite, origins_of
from ...protocol.calling_code import CallingCode
from .linking_files import Entry, LinkingFiles, OrderedSet, inputs_of

# The linker takes milliseconds to import, and a kernel that is already linked starts without it.
if TYPE_CHECKING:
    from cuda.core import ObjectCode
    from numba.cuda.cudadrv.external_code.link.link_record import LinkRecord

_OPTIMIZABLE = (kinds.LTO_IR, kinds.CUDA, kinds.BITCODE)


class LinkingCodeLibrary(CUDACodeLibrary):
    """A code library that links what called objects provide. Modules and libraries keep the order of first use, and
    each is contained once, so that the same program gives the same code."""

    _has_canonical_names = False
    timeline = Timeline()  # of libraries that were unpickled
    _entry_name: str | None
    # Set before numba-cuda's next step with a kernel: a search of its PTX for functions that need more linked.
    is_searched = False
    _llvm_strs: list[str] | None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        in_progress = compilation()
        self.target: Target | None = in_progress.target if in_progress is not None else None
        self.timeline = in_progress.timeline if in_progress is not None else Timeline()
        self._symbols = SymbolSites()
        self._linked: dict[Any, tuple[bytes, ...]] = {}  # by cc, the keys of the inputs that were linked
        self.link_records: dict[tuple[Any, str], LinkRecord] = {}  # by cc and output
        self.calls = Calls()
        self._with_shared_memory: set[Any] = (
            set()
        )  # loaded kernels that may use all dynamic shared memory of the device
        self._linking_libraries = OrderedSet()
        self._linking_files = LinkingFiles(self._own_target)

    def _own_target(self) -> Target:
        return self.target or self.target_for(self._ensure_cc(None))

    def target_for(self, cc: tuple[Any, ...]) -> Target:
        """Return the target of a link for *cc*."""
        capability, own = ComputeCapability.parse(cc), {"lto": self._lto, "max_registers": self._max_registers or None}
        return dataclasses.replace(self.target or Target(capability), compute_capability=capability, suffix="", **own)

    def _ensure_cc(self, cc: Any) -> Any:
        return (cc_without_device() if cc is None else None) or super()._ensure_cc(cc)

    # What travels with the function

    def add_call(self, call: AskedCall) -> None:
        """Link what the called object provides."""
        self._linking_files.add(call)
        self.calls.sites.add(call)
        for code in call.answer.calling:
            self._add_called_by_cxx(code.library)

    def _add_called_by_cxx(self, library: LinkingCodeLibrary) -> None:
        """Take along what a Python function that C++ calls needs of the kernel. Its code is linked as the object's."""
        self.calls.add(library, by_cxx=True)
        self._symbols.note_all(library._symbols)
        self.use_cooperative |= library.use_cooperative
        self.referenced_objects.update(library.referenced_objects)

    def get_asm_str(self, cc: Any = None) -> str:
        """Return the PTX for *cc* (default: the current GPU).

        numba-cuda's search for undefined functions gets just their names: under LTO nothing else reads the PTX, which
        takes longer to make than the LTO-IR. Where NRT may be linked, the search needs the PTX itself.
        """
        is_searched, self.is_searched = self.is_searched and cc is None, False
        needs_ptx = config.DUMP_ASSEMBLY or getattr(config, "CUDA_ENABLE_NRT", False)
        if is_searched and self._entry_name is not None and self._lto and not needs_ptx:
            functions = (function for module in self.modules for function in module.functions)
            return "\n".join(function.name for function in functions if function.is_declaration)
        ptx: str = super().get_asm_str(cc)
        return ptx

    def add_linking_file(self, path_or_obj: Any) -> None:
        super().add_linking_file(path_or_obj)
        if not self._has_canonical_names:
            # numba-cuda made the kernel's PTX before it read ``link=``, without the canonical names that links need.
            self._set_texts(None)

    def _set_texts(self, texts: list[str] | None) -> None:
        self._llvm_strs = texts
        for cache in self._ptx_cache, self._ltoir_cache, self._cubin_cache:
            cache.clear()

    @property
    def call_sites(self) -> tuple[CallSite, ...]:
        """The call sites of linkable code in this function and all that it calls, in order of first use."""
        return tuple(entry for entry in self._entries if isinstance(entry, CallSite))

    @property
    def _entries(self) -> tuple[Entry, ...]:
        files = self._linking_files
        return files.entries if isinstance(files, LinkingFiles) else tuple(files)

    def add_linking_library(self, library: Any) -> None:
        super().add_linking_library(library)
        self.calls.add(library)
        if isinstance(library, LinkingCodeLibrary):
            self._symbols.note_all(library._symbols)

    def facts_before_pickling(self, cc: Any) -> Any:
        """Return the facts for reports that were known before it was pickled, or None."""
        return None

    def note_symbol(self, symbol: str, site: SymbolSite, asked: Iterable[CallSite] = ()) -> None:
        """Remember that *symbol* is referenced at *site*, which is the call of the objects *asked*: the first site of
        each prototype."""
        self._symbols.note(symbol, site, asked)

    @property
    def modules(self) -> list[Any]:
        """The LLVM modules of this library and all below it, each once, callers before callees: NVVM links only
        functions that an earlier module called."""
        ordered: list[Any] = []
        for library in callees_first(self, _called_last_first):
            is_own = isinstance(library, LinkingCodeLibrary)
            ordered.extend([library._module] if is_own else reversed(list(library.modules)))
        return ordered[::-1]

    @property
    def llvm_strs(self) -> list[str]:
        """The text of the modules; with canonical names if external code is linked, so that equal links are
        recognised. What hooks compile becomes external code, whose names must not meet those of the kernel."""
        if self._llvm_strs is None and (self._entries or (self._entry_name is None and is_asking())):
            modules = [*map(str, self.modules)]
            if self._entry_name is None:
                canonical = with_names_by_content(modules)
            else:
                *canonical, self._entry_name = with_canonical_names([*modules, self._entry_name])
            self._has_canonical_names = True
            self._llvm_strs = compatible_with_cxx(canonical)
        texts: list[str] = super().llvm_strs
        return texts

    def rename_entry(self, name: str) -> None:
        """Give the kernel the entry name *name*. Raises `ValueError` if something else in its code has that name."""
        texts = self.llvm_strs  # canonical names may change the entry name
        if self._entry_name is not None:
            if any(f'@"{name}"' in text for text in texts):
                raise ValueError(f"entry name {name!r} is taken by something that the kernel calls or reads")
            self._set_texts([text.replace(self._entry_name, name) for text in texts])
            self._entry_name = name

    # The link

    @property
    def shown_name(self) -> str:
        """The name for messages: without those of the functions that enclose it."""
        return str(self.name).rpartition("<locals>.")[2]

    def plan(self, cc: Any = None) -> LinkPlan:
        """Return what is linked into this kernel for *cc* (default: the current GPU), besides its own code.

        Raises `LinkError` if a file that was named explicitly is missing or of an unknown kind, or two functions call
        one symbol with different prototypes, which the linker would not notice.
        """
        self._symbols.check(self.shown_name)
        target = self.target_for(self._ensure_cc(cc))
        return LinkPlan.of(f"kernel {self.shown_name!r}", target, self.provided(target))

    def provided(self, target: Target) -> Iterator[tuple[str, LinkInput]]:
        """Yield what is linked for *target* into a kernel with this function, besides its own code, with origins."""
        origins: dict[Any, str] = {**origins_of(self.call_sites)}
        provided = [pair for entry in self._entries for pair in inputs_of(entry, target, origins.get(entry, ""))]
        yield from provided
        if getattr(config, "CUDA_ENABLE_NRT", False) and any(link_input.nrt for _, link_input in provided):
            yield NRT, from_item(NRT_LIBRARY)
        if self.needs_cudadevrt:
            yield COOPERATIVE_LAUNCH, from_item(get_cudalib("cudadevrt", static=True))

    def get_cubin(self, cc: Any = None) -> Any:
        """Return the linked cubin (a `cuda.core.ObjectCode`) for *cc*, and set the callbacks of its module."""
        if not self._entries and not self.needs_cudadevrt and not self._undefined_sites():
            return super().get_cubin(cc)
        cc = self._ensure_cc(cc)
        plan = self.plan(cc)
        self._setup_functions = list(plan.setup_callbacks)
        self._teardown_functions = list(plan.teardown_callbacks)
        if cc not in self._cubin_cache:
            self._cubin_cache[cc] = self._link(cc, self._request(plan, "cubin"))
            self._linkerinfo_cache[cc] = self.link_records[cc, "cubin"].log
        return self._cubin_cache[cc]

    def get_cufunc(self) -> Any:
        """Return the kernel, loaded on the current device. numba-cuda runs setup callbacks for that device alone on
        which a kernel was compiled, and allows 48 KB of dynamic shared memory."""
        cufunc = super().get_cufunc()
        if cufunc not in self._with_shared_memory:
            if self._entries:
                _allow_shared_memory(cufunc)
            self._with_shared_memory.add(cufunc)
        if self._setup_functions and not cufunc.module.initialized:
            self._set_up(cufunc.module)
        return cufunc

    @module_init_lock
    def _set_up(self, module: Any) -> None:
        if not module.initialized:
            module.setup()

    def get_lto_ptx(self, cc: Any = None) -> str:
        """Return the PTX after link-time optimisation. Inputs that take no part in it are left out with a warning."""
        if (request := self.link_request(cc, "ptx")) is None:
            return super().get_lto_ptx(cc)
        return bytes(self._link(self._ensure_cc(cc), request).code).decode()

    def emulated_texts(self, cc: Any) -> list[str]:
        """Return the kernel's PTX with that of all it links, for the emulator."""
        from .emulated_code import emulated_texts

        return emulated_texts(self, cc)

    def link_request(self, cc: Any, output: str) -> LinkRequest | None:
        """Return the link that makes the ``"cubin"`` or ``"ptx"`` for *cc*; ``None`` if numba-cuda links it alone."""
        if output == "cubin":
            is_ours = self._entries or self.needs_cudadevrt or self._undefined_sites()
        else:
            is_ours = self._entries and self._lto
        return self._request(self.plan(cc), output) if is_ours else None

    def _request(self, plan: LinkPlan, output: str) -> LinkRequest:
        drop = False
        if output == "cubin":
            # A kernel that is built ahead of time is loaded by other programs, which may set its variables.
            drop = plan.may_drop_variables and not plan.target.debug and is_for_launch()
            if self._lto and config.DUMP_ASSEMBLY:
                ptx = self.get_lto_ptx(plan.target.cc)
                print(f"ASSEMBLY (AFTER LTO) {self.name}".center(80, "-"), ptx, "=" * 80, sep="\n")
        else:
            for planned in plan.inputs:
                if planned.input.kind not in _OPTIMIZABLE:
                    text = f"Not adding {planned.input.name} as it is not optimizable at link time"
                    warnings.warn(text, stacklevel=3)
            optimizable = tuple(planned for planned in plan.inputs if planned.input.kind in _OPTIMIZABLE)
            plan = dataclasses.replace(plan, inputs=optimizable)
        inputs = self._own_inputs(plan.target.cc)
        own = KernelCode(tuple(inputs), self._entry_name or "", self._undefined(), self._undefined_sites(plan.target))
        return LinkRequest(plan, own, output, drop)

    def _link(self, cc: Any, request: LinkRequest) -> ObjectCode:
        from numba.cuda.cudadrv.external_code.pipeline import run_link

        with recording(self.timeline):
            linked = run_link(request)
        self.link_records[cc, request.output] = linked.record
        if request.output == "cubin":
            self._linked[cc] = linked.keys
        return linked.code

    def _own_inputs(self, cc: Any) -> Sequence[LinkInput | LLVMModules]:
        """Return this kernel's own code: the PTX, which numba-cuda has searched, or the IR that becomes LTO-IR."""
        if self._lto:
            options = {**self._nvvm_options, "arch": get_arch_option(*cc)}
            return [LLVMModules(tuple(self.llvm_strs), tuple(sorted(options.items())), self.name)]
        return [
            LinkInput(kinds.PTX, ptx.encode(), name=f"{self.name} ({number})" if number else self.name)
            for number, ptx in enumerate(self.get_asm_strs(cc=cc))
        ]

    def _undefined(self) -> tuple[str, ...]:
        from numba.cuda.cudadrv.external_code.formats.llvm_ir import undefined_functions

        return undefined_functions(self.llvm_strs)

    def own_undefined(self) -> tuple[str, ...]:
        """Return the functions that the kernel's own code calls and does not define."""
        return self._undefined()

    def linker_log(self, cc: Any) -> str:
        """Return what the linker printed when it made the cubin for *cc*."""
        return self._linkerinfo_cache.get(cc) or ""

    @property
    def entry_name(self) -> str | None:
        """The kernel's name in the code."""
        return self._entry_name

    def _undefined_sites(self, target: Target | None = None) -> dict[str, tuple[SymbolSite, ...]]:
        """Return the undefined functions that calls in Python reference, with the calls; for a *target*, also those of
        Python functions that C++ calls."""
        undefined = self._undefined() if self._symbols else ()
        if self._symbols and target is not None:
            undefined += tuple(itertools.chain.from_iterable(each.undefined for each in self._called_by_cxx(target)))
        alike: dict[str, list[str]] = {}  # the origins of calls by the text that symbols know them by
        for call, origin in origins_of(self.call_sites).items():
            alike.setdefault(str(call), []).append(origin)

        def traced(site: SymbolSite) -> SymbolSite:
            return site._replace(asked=tuple(origin for text in site.asked for origin in alike.get(text, [text])))

        return {symbol: tuple(map(traced, self._symbols[symbol])) for symbol in undefined if symbol in self._symbols}

    def _called_by_cxx(self, target: Target) -> Iterator[CallingCode]:
        for site in self.call_sites:
            for code in with_answer(site, target).answer.calling:
                yield code
                yield from code.library._called_by_cxx(target)

    @property
    def prototypes(self) -> dict[str, str]:
        """The LLVM function types of the undefined functions that calls in Python reference: of the first such call."""
        return {symbol: sites[0].prototype for symbol, sites in self._undefined_sites().items()}

    @property
    def called_functions(self) -> tuple[CalledFunction, ...]:
        """These functions, once for each set of types that calls pass and expect."""
        return tuple(site.called(symbol) for symbol, sites in self._undefined_sites().items() for site in sites)

    @property
    def brings_external_code(self) -> bool:
        """Whether more is linked than numba-cuda's own runtime, which numba-cuda can pickle."""
        return any(entry is not NRT_LIBRARY for entry in self._entries)

    @property
    def changed_since_linked(self) -> bool:
        """Whether a file or a header was edited after the link began."""
        from numba.cuda.cudadrv.external_code.compile.plan_programs import current_keys

        return any(tuple(current_keys(self.plan(cc))) != before for cc, before in self._linked.items())


def _allow_shared_memory(cufunc: Any) -> None:
    """Allow the loaded kernel *cufunc* all shared memory that a block of its device may have."""
    attribute = binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    size = cufunc.device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN - cufunc.attrs.shared
    driver.cuKernelSetAttribute(attribute, size, cufunc.handle, cufunc.device.id)


def _called_last_first(library: CUDACodeLibrary) -> Iterable[CUDACodeLibrary]:
    return reversed(tuple(library._linking_libraries)) if isinstance(library, LinkingCodeLibrary) else ()
