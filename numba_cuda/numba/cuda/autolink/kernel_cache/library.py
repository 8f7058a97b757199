# SPDX-License-Identifier: BSD-2-Clause
"""Code libraries that can be pickled with the external code that they link, and those that were unpickled."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.cudadrv.external_code.plan.kernel_code import SymbolSite
from numba.cuda.cudadrv.external_code.plan.link_plan import LinkPlan
from numba.cuda.cudadrv.external_code.platform.target import Target

from ..frontends.numba_cuda.code_library import LinkingCodeLibrary
from ..function_code.function_code import inputs_of
from ..protocol.ask import with_answer
from ..protocol.call_sites import CallSite


class PicklableLibrary(LinkingCodeLibrary):
    """A code library that is pickled with its linked code; without external code, as numba-cuda's own class, so that
    what numba-cuda caches of it can be loaded where this project is not installed."""

    def _reduce_class(self) -> type:
        return RestoredLibrary if self.brings_external_code else CUDACodeLibrary

    def _reduce_states(self) -> dict[str, Any]:
        """Return what numba-cuda keeps of every library (LLVM IR, PTX, cubins), and what else `RestoredLibrary` needs:
        the paths and the code that were named explicitly, and the call sites with the objects that are called there."""
        if not self.brings_external_code:
            states: dict[str, Any] = super()._reduce_states()
            return states
        self.llvm_strs  # noqa: B018  (makes the names canonical, which depend on the entries)
        without_entries = object.__new__(type(self))
        without_entries.__dict__.update(vars(self), _linking_files=())
        target = self.own_target()
        facts = {cc: dataclasses.replace(self.facts(cc), restored=True) for cc in self._cubin_cache}
        return {
            **CUDACodeLibrary._reduce_states(without_entries),
            "entries": self._entries,
            "with_callbacks": tuple(entry for entry in self._entries if _has_callbacks(entry, target)),
            "target": target,
            "facts": pickle.dumps(facts),  # unpickled only for a report
            "symbols": {
                symbol: [SymbolSite(*site[:2]) for site in sites]
                for symbol, sites in self.function_code.symbols.items()
            },
        }


def _has_callbacks(entry: Any, target: Target) -> bool:
    parts = with_answer(entry, target).answer.inputs() if isinstance(entry, CallSite) else (entry,)
    return any(getattr(part, name, None) for part in parts for name in ("setup_callback", "teardown_callback"))


class RestoredLibrary(PicklableLibrary):
    """A library that was linked before it was pickled, and is linked again only for another compute capability.
    Callbacks cannot be stored: the objects whose answers had some are asked for them again."""

    _with_callbacks: tuple[Any, ...] = ()
    _pickled_facts: bytes = pickle.dumps({})

    def facts_before_pickling(self, cc: Any) -> Any:
        return pickle.loads(self._pickled_facts).get(cc)

    def get_cubin(self, cc: Any = None) -> Any:
        """Return the linked cubin (a `cuda.core.ObjectCode`) for *cc*, and set the callbacks of its module."""
        cc = self._ensure_cc(cc)
        if cc not in self._cubin_cache:
            return super().get_cubin(cc)
        target = self.target_for(cc)
        brought = [pair for entry in self._with_callbacks for pair in inputs_of(entry, target)]
        plan = LinkPlan.of(f"kernel {self.function_code.shown_name!r}", target, brought)
        self._setup_functions = list(plan.setup_callbacks)
        self._teardown_functions = list(plan.teardown_callbacks)
        return self._cubin_cache[cc]

    @classmethod
    def _rebuild(
        cls,
        entries: tuple[Any, ...],
        with_callbacks: tuple[Any, ...],
        target: Target,
        symbols: dict[str, list[SymbolSite]],
        facts: bytes,
        **states: Any,
    ) -> RestoredLibrary:
        library: RestoredLibrary = super()._rebuild(**states)
        library.function_code.target = target
        library.function_code.add_items(entries)
        library._with_callbacks = with_callbacks
        library._pickled_facts = facts
        library.function_code.symbols.update(symbols)
        return library
