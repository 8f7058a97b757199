# SPDX-License-Identifier: BSD-2-Clause
"""Compiler passes: called objects are asked once types are final, and their code is attached while lowering."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir as llvm
from numba.cuda import types
from numba.cuda.compiler import CUDANativeLowering
from numba.cuda.core import ir
from numba.cuda.core.compiler_machinery import AnalysisPass, register_pass
from numba.cuda.core.errors import LoweringError
from numba.cuda.cudadrv.external_code.inputs.c_prototypes import CPrototype
from numba.cuda.cudadrv.external_code.plan.link_plan import SymbolSite
from numba.cuda.datamodel import models
from numba.cuda.lowering import CUDALower
from numba.cuda.typing.templates import Signature

from numba_cuda_autolink.source_locations import shown_file

from ...c_abi.declared_results import prototype_of_declared
from ...compilation.context import compilation, current_state, inside
from ...function_code.calls import check_state
from ...function_code.inlined_functions import InlinedFunctions
from ...protocol.ask import ask_all, ask_at
from ...protocol.call_sites import CallSite, CallSites, argument_types, callees_of_type, find_read_only
from ...protocol.errors import assignment_error
from .code_library import LinkingCodeLibrary

_COMPLEX = {(llvm.FloatType(), llvm.FloatType()): 8, (llvm.DoubleType(), llvm.DoubleType()): 16}


@register_pass(mutates_CFG=False, analysis_only=True)
class AskCallees(AnalysisPass):
    """Ask every called object for its code, so that an object that rejects a signature is a typing error at the call.
    Lowering, which also meets calls that rewrites have introduced, finds the answers remembered."""

    _name = "ask_callees"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        if _register_call_lowering():
            state.targetctx.refresh()
        if compilation() is not None:
            ask_all(CallSites(state.func_ir, state.typemap), state.calltypes)
            for block in state.func_ir.blocks.values():
                for statement in block.find_insts(ir.SetAttr):
                    owner = state.typemap[statement.target.name]
                    if hasattr(owner, "numba_cuda_link_object"):
                        raise assignment_error(statement.attr, owner, statement.loc, LoweringError)
        return False


def _register_call_lowering() -> bool:
    """Register the lowering of device callables, which is imported only in programs that have such objects. Return
    whether it was not registered yet."""
    lowering = "numba.cuda.autolink.frontends.numba_cuda.call_lowering"
    if lowering in sys.modules or "numba.cuda.autolink.device_callable.object_type" not in sys.modules:
        return False
    importlib.import_module(lowering)
    return True


class LinkingLower(CUDALower):
    """Lowers a function, and attaches the code that its called objects provide to its code library."""

    def lower(self) -> Any:
        if not isinstance(self.library, LinkingCodeLibrary):
            return super().lower()
        function = self.library.function_code
        InlinedFunctions.of(self.func_ir.func_id).add_to(function, self.func_ir.func_id.func)
        with function.calls.being_lowered(self):
            return super().lower()

    def _compute_def_location(self) -> Any:
        """Return where the function begins. A lambda has no ``def``, whose line would be that of the first code."""
        code = self.func_ir.func_id.func.__code__
        if code.co_name == "<lambda>":
            return self.func_ir.loc.with_lineno(code.co_firstlineno)
        return super()._compute_def_location()

    def lower_call(self, resty: types.Type, expr: ir.Expr) -> Any:
        signature = self.fndesc.calltypes[expr]
        in_progress = compilation()
        if in_progress is None or not isinstance(self.library, LinkingCodeLibrary):
            return super().lower_call(resty, expr)
        known = len(self.module.globals)
        asked = []
        with inside(call=(self.typeof(expr.func.name), expr.loc)):
            for site in CallSites(self.func_ir, self.fndesc.typemap).of(expr, signature):
                asked.append(ask_at(site, expr.loc))
                self.library.add_call(asked[-1])
            read_only = find_read_only(self.func_ir, self.fndesc.typemap, expr) if asked else ()
            with in_progress.noting_prototypes(read_only) as prototypes:
                result = super().lower_call(resty, expr)
            check_state(asked, prototypes, expr.loc)
        added = len(self.module.globals) - known
        if added or prototypes:
            arguments = ", ".join(map(str, signature.args))
            place = f"{shown_file(expr.loc.filename)}:{expr.loc.line} in {self.func_ir.func_id.func_qualname}"
            described = f"the call with ({arguments}) at {place}"
            declared = getattr(self.typeof(expr.func.name), "typing_key", None)
            for symbol, prototype, c_prototype in self._symbols(added, prototypes):
                if c_prototype is None and symbol == getattr(declared, "name", None):
                    c_prototype = prototype_of_declared(declared, prototype, signature.return_type)
                referenced = SymbolSite(prototype, described, c_prototype)
                self.library.function_code.symbols.note(symbol, referenced, asked)
        return result

    def lower_function_body(self) -> Any:
        """Lower the body. Where it has call sites below it, its arrays get the alignment that C++ relies on."""
        entry_block_tail = super().lower_function_body()
        if isinstance(self.library, LinkingCodeLibrary) and self.library.function_code.has_calls:
            _align_arrays(self.builder)
        return entry_block_tail

    def _symbols(
        self, added: int, prototypes: Sequence[tuple[str, CPrototype]]
    ) -> Iterator[tuple[str, str, CPrototype | None]]:
        """Yield the functions that a call references, with their LLVM types and, if known, those that C sees: those
        with *prototypes*, and the other declarations among the *added* newest globals of the module."""
        with_types = {symbol for symbol, _ in prototypes}
        newest = tuple(itertools.islice(reversed(self.module.globals.values()), added))
        for value in reversed(newest):
            if isinstance(value, llvm.Function) and value.is_declaration and value.name not in with_types:
                yield value.name, str(value.function_type), None
        for symbol, c_prototype in prototypes:
            if symbol in self.module.globals:
                yield symbol, str(self.module.globals[symbol].function_type), c_prototype


@register_pass(mutates_CFG=True, analysis_only=False)
class LinkingNativeLowering(CUDANativeLowering):
    """numba-cuda's lowering pass, with `LinkingLower`."""

    _name = "linking_native_lowering"
    lowering_class = LinkingLower


def attach_requested(context: Any, func_type: types.Type, signature: Signature) -> None:
    """Attach the code of an object whose implementation an intrinsic requests from the target context: a call that is
    not in the IR. Its place is that of the call for which the intrinsic is lowered."""
    call = current_state().call
    if call is None or call[0] is func_type:
        return
    if not isinstance(library := context.active_code_library, LinkingCodeLibrary):
        return
    loc = call[1]
    for callee in callees_of_type(func_type):
        site = CallSite(callee, argument_types(signature), loc.filename, loc.line, library.name)
        library.add_call(ask_at(site, loc))


def element_without_data(context: Any, signature: Signature) -> Callable[[Any, Any], Any] | None:
    """Return what lowers an element of a tuple in one body of an unrolled loop, if the element is a function or an
    object whose type says all of it; else ``None``. numba-cuda's code chooses among all elements, in each body."""
    element = signature.return_type
    if isinstance(element, types.Callable) and isinstance(context.data_model_manager[element], models.OpaqueModel):
        return lambda builder, args: context.get_dummy_value()
    return None


def note_implementation(context: Any, implementation: Any) -> None:
    """Note for the function that is being lowered the Python function that makes the code of a call in it."""
    library = context.active_code_library if current_state().call is not None else None
    if isinstance(library, LinkingCodeLibrary):
        wrapped = getattr(implementation, "_callable", None)
        library.function_code.calls.note_implementation(getattr(wrapped, "func", implementation))


def _align_arrays(builder: Any) -> None:
    """Align the local and shared arrays of the function that *builder* builds as C++ expects. Numba aligns complex
    numbers and records like their parts: ``complex64`` to 4 bytes, where ``float2`` needs 8."""
    variables = [
        *(i for i in builder.function.entry_basic_block.instructions if isinstance(i, llvm.AllocaInstr)),
        *(g for g in builder.module.globals.values() if isinstance(g, llvm.GlobalVariable)),
    ]
    for variable in variables:
        array = variable.type.pointee
        if isinstance(array, llvm.ArrayType):
            variable.align = max(variable.align or 0, _cxx_alignment(array.element)) or None


def _cxx_alignment(element: Any) -> int:
    """Return the alignment in bytes of an array element of LLVM type *element*, or 0 where Numba's is right."""
    if isinstance(element, llvm.LiteralStructType):
        return _COMPLEX.get(tuple(element.elements), 0)
    if isinstance(element, llvm.ArrayType) and element.element == llvm.IntType(8):
        # A record. The size of a struct is a multiple of its alignment.
        return min(16, element.count & -element.count)
    return 0
