# SPDX-License-Identifier: BSD-2-Clause
"""What the compiler does for called objects: ask them once types are final, attach their code while lowering."""

from __future__ import annotations

import threading
from typing import Any

from llvmlite import ir as llvm
from numba.cuda.compiler import CUDANativeLowering
from numba.cuda.core.compiler_machinery import AnalysisPass, register_pass
from numba.cuda.lowering import CUDALower

from ..compilation import compilation
from ..protocol.asking import ask
from ..protocol.call_sites import CallSite, CallSites, called_with, callees_of_type
from ..protocol.errors import CallError, HookError
from .array_alignment import align_arrays
from .code_library import LinkingCodeLibrary, SymbolSite


def _ask(site: CallSite, loc: Any) -> None:
    in_progress = compilation()
    assert in_progress is not None
    try:
        ask(site.callee, site.argtypes, in_progress.target)
    except HookError as error:
        raise CallError(error, site, loc) from error.__cause__


@register_pass(mutates_CFG=False, analysis_only=True)
class AskCallees(AnalysisPass):
    """Ask every called object for its code, so that one that rejects a signature is a typing error at the call."""

    _name = "ask_callees"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Ask the objects called in ``state.func_ir``."""
        if compilation() is not None:
            for call, site in CallSites(state.func_ir, state.typemap).all(state.calltypes):
                _ask(site, call.loc)
        return False


class LinkingLower(CUDALower):
    """Lowers a function and attaches to its code library what the objects that it calls provide."""

    def lower(self) -> Any:
        """Lower the function; its library knows meanwhile where in the source that is."""
        if not isinstance(self.library, LinkingCodeLibrary):
            return super().lower()
        with self.library.calls.being_lowered(self):
            return super().lower()

    def lower_call(self, resty: Any, expr: Any) -> Any:
        """Lower one call; remember which symbols it was that brought in."""
        signature = self.fndesc.calltypes[expr]
        before = len(self.module.globals)
        outer, _lowering.call = _lowering.call, (self.typeof(expr.func.name), expr.loc)
        try:
            if compilation() is not None and isinstance(self.library, LinkingCodeLibrary):
                for site in CallSites(self.func_ir, self.fndesc.typemap).of(expr, signature):
                    _ask(site, expr.loc)
                    self.library.add_call_site(site)
            result = super().lower_call(resty, expr)
        finally:
            _lowering.call = outer
        if len(self.module.globals) > before:
            self._note_symbols(before, expr, signature)
        return result

    def lower_function_body(self) -> Any:
        """Lower the body; external code may get a pointer to any array of a function with call sites below it."""
        entry_block_tail = super().lower_function_body()
        if isinstance(self.library, LinkingCodeLibrary) and self.library.call_sites:
            align_arrays(self.builder)
        return entry_block_tail

    def _note_symbols(self, before: int, expr: Any, signature: Any) -> None:
        for value in list(self.module.globals.values())[before:]:
            if isinstance(value, llvm.Function) and value.is_declaration:
                arguments = ", ".join(map(str, signature.args))
                place = f"{expr.loc.filename}:{expr.loc.line} in {self.func_ir.func_id.func_qualname}"
                site = SymbolSite(str(value.function_type), f"the call with ({arguments}) at {place}")
                self.library.note_symbol(value.name, site)


class _Lowering(threading.local):
    call: tuple[Any, Any] | None = None


_lowering = _Lowering()


@register_pass(mutates_CFG=True, analysis_only=False)
class LinkingNativeLowering(CUDANativeLowering):
    """numba-cuda's lowering pass, with `LinkingLower`."""

    _name = "linking_native_lowering"

    @property
    def lowering_class(self) -> type:
        """The class that lowers the function's IR."""
        return LinkingLower


def attach_requested(context: Any, func_type: Any, signature: Any) -> None:
    """Attach the code of an object whose implementation an intrinsic asks the target context for.

    Such a call stands nowhere in the IR; its place is the call that the intrinsic is lowered for.
    """
    if _lowering.call is None or _lowering.call[0] is func_type:
        return
    library = context.active_code_library
    if not isinstance(library, LinkingCodeLibrary):
        return
    loc = _lowering.call[1]
    for callee in callees_of_type(func_type):
        site = CallSite(callee, called_with(signature), loc.filename, loc.line, library.name)
        _ask(site, loc)
        library.add_call_site(site)
