# SPDX-License-Identifier: BSD-2-Clause
"""Code libraries that come out of a pickle: linked already, with the callbacks of the objects that they name."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Sequence
from typing import Any

from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.cudadrv.external_code.link.kernel_code import SymbolSite
from numba.cuda.cudadrv.external_code.link.plan import LinkPlan
from numba.cuda.cudadrv.external_code.target import Target
from numba.cuda.locks import module_init_lock

from ..compiling.code_library import LinkingCodeLibrary
from ..compiling.linking_files import LinkingFiles
from ..protocol.asked_call import with_answer
from ..protocol.call_sites import CallSite


def states_of(library: LinkingCodeLibrary) -> dict[str, Any]:
    """What a library with external code is pickled as.

    Beside what numba-cuda keeps of every library (LLVM IR, PTX, cubins) these are the paths and the code that were
    named explicitly, and the call sites with the objects that are called there.
    """
    library.llvm_strs  # noqa: B018  (with canonical names, which depend on the entries)
    without_entries = object.__new__(type(library))
    without_entries.__dict__.update(vars(library), _linking_files=())
    entries = library._entries
    target = library._own_target()
    from ..reports.facts import facts_of

    facts = {cc: dataclasses.replace(facts_of(library, cc), restored=True) for cc in library._cubin_cache}
    return {
        **CUDACodeLibrary._reduce_states(without_entries),
        "entries": entries,
        "with_callbacks": tuple(_has_callbacks(entry, target) for entry in entries),
        "target": target,
        "facts": pickle.dumps(facts),  # for whoever asks for a report
        "symbols": {symbol: [tuple(site) for site in sites] for symbol, sites in library._symbols.items()},
    }


def _has_callbacks(entry: Any, target: Target) -> bool:
    parts: Sequence[Any] = (entry,)
    if isinstance(entry, CallSite):
        parts = with_answer(entry, target).answer.inputs()
    return any(getattr(part, name, None) for part in parts for name in ("setup_callback", "teardown_callback"))


class RestoredLibrary(LinkingCodeLibrary):
    """A library that was linked when it was pickled. It is linked anew only for another compute capability.

    Callbacks are no code that can be stored. The objects at the call sites that had some are asked for them again.
    """

    _with_callbacks: tuple[bool, ...] = ()
    _pickled_facts: bytes = pickle.dumps({})

    def facts_before_pickling(self, cc: Any) -> Any:
        return pickle.loads(self._pickled_facts).get(cc)

    def get_cubin(self, cc: Any = None) -> Any:
        """The linked cubin (a `cuda.core.ObjectCode`) for *cc*, and the callbacks of the module that it makes."""
        cc = self._ensure_cc(cc)
        if cc not in self._cubin_cache:
            return super().get_cubin(cc)
        target = self._target_for(cc)
        brought = [
            pair
            for entry, has_callbacks in zip(self._entries, self._with_callbacks, strict=True)
            if has_callbacks
            for pair in self._inputs_of(entry, target)
        ]
        plan = LinkPlan.of(f"kernel {self.name!r}", target, brought)
        self._setup_functions = list(plan.setup_callbacks)
        self._teardown_functions = list(plan.teardown_callbacks)
        return self._cubin_cache[cc]

    def get_cufunc(self) -> Any:
        """The loaded kernel. numba-cuda runs the setup callbacks of kernels that it compiles, here it would not."""
        cufunc = super().get_cufunc()
        self._set_up(cufunc.module)
        return cufunc

    @module_init_lock
    def _set_up(self, module: Any) -> None:
        if not module.initialized:
            module.setup()

    @classmethod
    def _rebuild(
        cls,
        entries: tuple[Any, ...],
        with_callbacks: tuple[bool, ...],
        target: Target,
        symbols: dict[str, list[tuple[str, str]]],
        facts: bytes,
        **states: Any,
    ) -> RestoredLibrary:
        library: RestoredLibrary = super()._rebuild(**states)
        library.target = target
        library._linking_files = LinkingFiles(library._own_target)
        library._linking_files.update(entries)
        library._with_callbacks = with_callbacks
        library._pickled_facts = facts
        library._symbols = {symbol: [SymbolSite(*site) for site in sites] for symbol, sites in symbols.items()}
        return library
