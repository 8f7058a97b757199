# SPDX-License-Identifier: BSD-2-Clause
"""The code library: a compiled function takes what it needs linked along, up to the kernel."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cuda.bindings.nvjitlink import nvJitLinkError
from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.core import config
from numba.cuda.cudadrv.driver import binding, driver
from numba.cuda.cudadrv.external_code.diagnostics.timeline import Timeline
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput, from_item
from numba.cuda.cudadrv.external_code.plan.link_plan import COOPERATIVE_LAUNCH, NRT, LinkPlan, LinkRequest, LLVMModules
from numba.cuda.cudadrv.external_code.platform.target import ComputeCapability, Target
from numba.cuda.cudadrv.libs import get_cudalib
from numba.cuda.cudadrv.nvrtc import get_arch_option
from numba.cuda.locks import module_init_lock
from numba.cuda.memory_management.nrt import NRT_LIBRARY

from ...compilation.context import compilation, current_state
from ...function_code.call_graph import callees_first
from ...function_code.calls import OrderedSet
from ...function_code.canonical_ir import compatible_with_cxx, with_canonical_names, with_names_by_content
from ...function_code.function_code import Entry, FunctionCode, is_optimizable
from ...linkables.compiled_source import CompiledSource
from ...protocol.ask import AskedCall, with_answer
from ...protocol.call_sites import CallSite

if TYPE_CHECKING:
    from ...function_code.build_record import BuildFacts


class LinkingCodeLibrary(CUDACodeLibrary):
    """A code library that links what called objects provide. Modules and libraries keep the order of first use, and
    each is contained once, so that the same program gives the same code."""

    _has_canonical_names = False
    # Set before numba-cuda's next step with a kernel: a search of its PTX for functions that need more linked.
    is_searched = False
    _llvm_strs: list[str] | None

    def __init__(self, *args: Any, **kwargs: Any):
        in_progress = compilation()
        target, timeline = (in_progress.target, in_progress.timeline) if in_progress else (None, Timeline())
        self.function_code = FunctionCode("", target, timeline, llvm_ir=lambda: self.llvm_strs, runtimes=self._runtimes)
        super().__init__(*args, **kwargs)
        self.function_code.name = self.name
        # Loaded kernels that may use all dynamic shared memory of the device.
        self._with_shared_memory: set[Any] = set()
        self._linking_libraries = OrderedSet()
        self._linking_files = LinkedItems(self)

    @property
    def _entry_name(self) -> str | None:
        return self.function_code.entry_name

    @_entry_name.setter
    def _entry_name(self, name: str | None) -> None:
        self.function_code.entry_name = name

    def own_target(self) -> Target:
        """Return the target that the function was compiled for; if that is not known, the current GPU's."""
        return self.function_code.target or self.target_for(self._ensure_cc(None))

    def target_for(self, cc: tuple[Any, ...]) -> Target:
        capability, own = ComputeCapability.parse(cc), {"lto": self._lto, "max_registers": self._max_registers or None}
        target = self.function_code.target or Target(capability)
        return dataclasses.replace(target, compute_capability=capability, suffix="", **own)

    def _ensure_cc(self, cc: Any) -> Any:
        return (current_state().cc if cc is None else None) or super()._ensure_cc(cc)

    # What travels with the function

    def add_call(self, call: AskedCall) -> None:
        self.function_code.add_call(call)
        for code in call.answer.calling:
            self.use_cooperative |= code._library.use_cooperative
            self.referenced_objects.update(code._library.referenced_objects)

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
        return super().get_asm_str(cc)

    def add_linking_file(self, path_or_obj: Any) -> None:
        super().add_linking_file(path_or_obj)
        if not self._has_canonical_names:
            # numba-cuda made the kernel's PTX before it read ``link=``, without the canonical names that links need.
            self._set_texts(None)

    def _set_texts(self, texts: list[str] | None) -> None:
        self._llvm_strs = texts
        for cache in self._ptx_cache, self._ltoir_cache, self._cubin_cache:
            cache.clear()

    def add_linking_library(self, library: Any) -> None:
        super().add_linking_library(library)
        if isinstance(library, LinkingCodeLibrary):
            self.function_code.add_callee(library.function_code)

    def facts(self, cc: tuple[Any, ...], output: str = "cubin") -> BuildFacts:
        """Return the facts of the kernel, linked for *cc* to *output*, which is ``"ltoir"`` if it was not linked."""
        from ...function_code.build_record import facts_of

        log = (self._linkerinfo_cache.get(cc) or "") if output == "cubin" else ""
        return facts_of(self.function_code, self.target_for(cc), output, log)

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
        if self._llvm_strs is None and (
            self.function_code.entries or (self._entry_name is None and current_state().hook_target is not None)
        ):
            modules = [*map(str, self.modules)]
            if self._entry_name is None:
                canonical = with_names_by_content(modules)
            else:
                *canonical, self._entry_name = with_canonical_names([*modules, self._entry_name])
            self._has_canonical_names = True
            self._llvm_strs = compatible_with_cxx(canonical)
        return super().llvm_strs

    def use_canonical_names(self) -> None:
        """Give a kernel canonical names, also where it links no external code: its link for the emulator, or of
        `build`, is found in each process."""
        texts = self.llvm_strs
        if not self._has_canonical_names and self._entry_name is not None:
            *canonical, self._entry_name = with_canonical_names([*texts, self._entry_name])
            self._has_canonical_names = True
            if (canonical := compatible_with_cxx(canonical)) != list(texts):
                self._set_texts(canonical)

    def rename_entry(self, name: str) -> None:
        """Give the kernel the entry name *name*. Raises `ValueError` if something else in its code has that name."""
        self.use_canonical_names()
        texts = self.llvm_strs
        if self._entry_name is not None:
            if any(f'@"{name}"' in text for text in texts):
                raise ValueError(f"entry name {name!r} is taken by something that the kernel calls or reads")
            self._set_texts([text.replace(self._entry_name, name) for text in texts])
            self._entry_name = name

    # The link

    def plan(self, cc: Any = None) -> LinkPlan:
        """Return what `FunctionCode.plan` does for *cc* (default: the current GPU)."""
        return self.function_code.plan(self.target_for(self._ensure_cc(cc)))

    def _runtimes(self, provided: Sequence[tuple[str, LinkInput]]) -> Iterator[tuple[str, LinkInput]]:
        if getattr(config, "CUDA_ENABLE_NRT", False) and any(link_input.nrt for _, link_input in provided):
            yield NRT, from_item(NRT_LIBRARY)
        if self.needs_cudadevrt:
            yield COOPERATIVE_LAUNCH, from_item(get_cudalib("cudadevrt", static=True))

    def _links_more(self) -> bool:
        """Whether the kernel is not numba-cuda's business alone: more than its own code is linked, or missing."""
        return bool(self.function_code.entries or self.needs_cudadevrt or self.function_code.referenced)

    def get_cubin(self, cc: Any = None) -> Any:
        """Return the linked cubin (a `cuda.core.ObjectCode`) for *cc*, and set the callbacks of its module."""
        if not self._links_more():
            with contextlib.suppress(nvJitLinkError):  # which the link below explains
                return super().get_cubin(cc)
        cc = self._ensure_cc(cc)
        plan = self.plan(cc)
        self._setup_functions = list(plan.setup_callbacks)
        self._teardown_functions = list(plan.teardown_callbacks)
        if cc not in self._cubin_cache:
            linked = self.function_code.link(self._request(plan.target, "cubin"))
            self._cubin_cache[cc], self._linkerinfo_cache[cc] = linked.code, linked.record.log
        return self._cubin_cache[cc]

    def get_cufunc(self) -> Any:
        """Return the kernel, loaded on the current device. numba-cuda runs setup callbacks for that device alone on
        which a kernel was compiled, and allows 48 KB of dynamic shared memory."""
        cufunc = super().get_cufunc()
        if cufunc not in self._with_shared_memory:
            if self.function_code.entries:
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
        return bytes(self.function_code.link(request).code.code).decode()

    def emulated_texts(self, cc: Any) -> list[str]:
        from ...function_code.emulated_texts import emulated_texts

        return emulated_texts(self.function_code, self.plan(cc).target, self.own_inputs(cc))

    def link_request(self, cc: Any, output: str) -> LinkRequest | None:
        """Return the link that makes the ``"cubin"`` or ``"ptx"`` for *cc*; ``None`` if numba-cuda links it alone."""
        is_ours = self._links_more() if output == "cubin" else self.function_code.entries and self._lto
        return self._request(self.target_for(self._ensure_cc(cc)), output) if is_ours else None

    def _request(self, target: Target, output: str) -> LinkRequest:
        plan = self.function_code.plan(target)
        drop = plan.may_drop_variables and not target.debug
        if output == "ptx":
            for planned in plan.inputs:
                if not is_optimizable(planned.input):
                    text = f"Not adding {planned.input.name} as it is not optimizable at link time"
                    warnings.warn(text, stacklevel=3)
        elif self._lto and config.DUMP_ASSEMBLY:
            ptx = self.get_lto_ptx(target.cc)
            print(f"ASSEMBLY (AFTER LTO) {self.name}".center(80, "-"), ptx, "=" * 80, sep="\n")
        own = self.own_inputs(target.cc)
        return self.function_code.request(target, own, output, drop_unused_variables=drop)

    def own_inputs(self, cc: Any) -> Sequence[LinkInput | LLVMModules]:
        """Return this kernel's own code: the PTX, which numba-cuda has searched, or the IR that becomes LTO-IR."""
        if self._lto:
            options = {**self._nvvm_options, "arch": get_arch_option(*cc)}
            return [LLVMModules(tuple(self.llvm_strs), tuple(sorted(options.items())), self.name)]
        return [
            LinkInput(kinds.PTX, ptx.encode(), name=f"{self.name} ({number})" if number else self.name)
            for number, ptx in enumerate(self.get_asm_strs(cc=cc))
        ]

    # Disk caches

    @property
    def brings_external_code(self) -> bool:
        """Whether more is linked than numba-cuda's own runtime, which numba-cuda can pickle."""
        return any(entry is not NRT_LIBRARY for entry in self.function_code.entries)

    def _reduce_class(self) -> type:
        """Pickle a plain kernel as numba-cuda's own class, so that it loads where this project is not installed."""
        return type(self) if self.brings_external_code else CUDACodeLibrary

    def _reduce_states(self) -> dict[str, Any]:
        return self.state() if self.brings_external_code else super()._reduce_states()

    def state(self) -> dict[str, Any]:
        """Return what `restore` takes: the kernel as the front end made it, and what it needs linked."""
        _ = self.llvm_strs  # makes the names canonical
        alone = object.__new__(type(self))
        alone.__dict__.update(vars(self), _linking_files=())
        if self._links_more():
            alone.__dict__.update(_cubin_cache={}, _linkerinfo_cache={})
        return {**CUDACodeLibrary._reduce_states(alone), "function_code": self.function_code}

    @classmethod
    def restore(cls, function_code: FunctionCode | None = None, **state: Any) -> LinkingCodeLibrary:
        library: LinkingCodeLibrary = super()._rebuild(**state)
        runtime, library._linking_files = library._linking_files, LinkedItems(library)
        library._linking_files.update(runtime)
        if function_code is not None:
            library.function_code, function_code.llvm_ir = function_code, lambda: library.llvm_strs
            function_code.runtimes = library._runtimes
        return library

    _rebuild = restore


def _allow_shared_memory(cufunc: Any) -> None:
    attribute = binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    size = cufunc.device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN - cufunc.attrs.shared
    driver.cuKernelSetAttribute(attribute, size, cufunc.handle, cufunc.device.id)


def _called_last_first(library: CUDACodeLibrary) -> Iterable[CUDACodeLibrary]:
    return reversed(tuple(library._linking_libraries)) if isinstance(library, LinkingCodeLibrary) else ()


class LinkedItems:
    """What a code *library* needs linked, as numba-cuda sees it: a set of paths and ``LinkableCode``, in order of first
    use. A call site stands for the answer of the called object, for the target that the function was compiled for. CUDA
    C++ is compiled: numba-cuda would do so without the options of its source."""

    def __init__(self, library: LinkingCodeLibrary):
        self._library = library

    def add(self, item: Entry) -> None:
        self._library.function_code.add_items((item,))

    def update(self, items: Iterable[Entry]) -> None:
        if not isinstance(items, LinkedItems):  # of a library whose code is added as a callee's
            self._library.function_code.add_items(items)

    def __contains__(self, item: object) -> bool:
        return item in self._library.function_code.entries

    def __iter__(self) -> Iterator[Any]:
        for entry in self._library.function_code.entries:
            if isinstance(entry, CallSite):
                target = self._library.own_target()
                for each in with_answer(entry, target).answer.inputs():
                    yield CompiledSource({}, each, target).code if each.kind is kinds.CUDA else each.as_linkable()
            else:
                yield entry

    def __len__(self) -> int:
        entries = self._library.function_code.entries
        calls = [entry for entry in entries if isinstance(entry, CallSite)]
        answers = [with_answer(call, self._library.own_target()).answer for call in calls]
        return len(entries) - len(calls) + sum(len(answer.inputs()) for answer in answers)
