# SPDX-License-Identifier: BSD-2-Clause
"""The linker that numba-cuda-mlir is given for a function with external code, and what is changed in its MLIR; and the
errors of numba-cuda-mlir's own links, of kernels that call no objects."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from cuda.core import ObjectCode
from numba.cuda.cudadrv.external_code.diagnostics import progress
from numba.cuda.cudadrv.external_code.explain.undefined_symbol import symbol_in_log
from numba.cuda.cudadrv.external_code.inputs import kinds
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInput
from numba.cuda.cudadrv.external_code.plan.link_plan import with_definition
from numba.cuda.cudadrv.external_code.platform.target import Target
from numba_cuda_mlir._mlir import ir
from numba_cuda_mlir.linker import resolve_link_plan

from numba_cuda_autolink.files import find_elsewhere
from numba_cuda_autolink.mangled_names import readable
from numba_cuda_autolink.source_locations import shown_file, with_place
from numba_cuda_autolink.source_syntax import find_call

from ...frontend_api.placed_messages import placed_error
from ...function_code.calls import options_of_kernel
from ...function_code.emulated_texts import emulated_texts
from ...function_code.function_code import FunctionCode
from .emulated_driver import is_emulated

# The key of a function's metadata under which numba-cuda-mlir keeps what it needs linked.
KEY = "numba_cuda_autolink"
FUNCTION = "numba_cuda_autolink_function"  # and the key of its identity


class CallLinker:
    """Has the methods that numba-cuda-mlir calls of its own ``Linker``, and links by this project's path: with the
    checks, the messages and the cache that kernels of numba-cuda have.

    A device function is not linked: its callers get its *external* code. *target* is None for it.
    """

    def __init__(self, external: FunctionCode, target: Target | None = None, drop_unused_variables: bool = False):
        self.external = external
        self.lto = external.target is not None and external.target.lto
        self.additional_flags: list[str] = []
        self._target = target
        self._drop = drop_unused_variables
        self._own: bytes | None = None
        self._ltoirs: dict[int, bytes] = {}  # what callers take along: they get it with the external code

    def recreate_with_lto(self, lto: bool = True, ltoir_only: bool = False, kernel_ltoir: bytes | None = None) -> Any:
        linker = CallLinker(self.external, self._target, self._drop)
        if kernel_ltoir is not None:
            linker.add_ltoir(kernel_ltoir)
        return linker

    def add_ltoir(self, ltoir: bytes, name: str = "") -> None:
        self._own, self.lto = bytes(ltoir), True

    def add_ptx(self, ptx: bytes, name: str = "") -> None:
        self._own, self.lto = bytes(ptx), False

    def add_file_guess_ext(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the plan has what ``link=`` names."""

    def complete(self) -> Any:
        """Return the cubin, or in the emulator the PTX; of a device function, nothing."""
        if self._target is None:
            return SimpleNamespace(code=b"")
        if is_emulated():
            return ObjectCode.from_ptx("\n".join(self.emulated_texts()).encode(), name=self.external.name)
        return self._link("cubin", self._target)

    def emulated_texts(self) -> list[str]:
        assert self._target is not None
        return emulated_texts(self.external, self._target, [self._own_input()])

    def get_linked_ptx(self) -> bytes:
        assert self._target is not None
        return bytes(self._link("ptx", self._target).code)

    def _link(self, output: str, target: Target) -> Any:
        external = self.external
        with progress.step(f"linking {external.name}"):
            request = external.request(target, [self._own_input()], output, drop_unused_variables=self._drop)
            return external.link(request).code

    def _own_input(self) -> LinkInput:
        assert self._own is not None
        return LinkInput(kinds.LTO_IR if self.lto else kinds.PTX, self._own, name=self.external.name)


def linker_for(lower: Any) -> CallLinker:
    """Return the linker of the function that was lowered by *lower*, an ``MLIRLower``, and set what numba-cuda-mlir
    reads of its link: whether to make LTO-IR, and the callbacks."""
    external: FunctionCode = lower.metadata[KEY]
    external.add_items(lower._linked_external_link_items)
    external.add_items(
        LinkInput(kinds.LTO_IR, bytes(ltoir), name=f"LTO-IR {number} of a device function")
        for number, ltoir in enumerate(lower._linked_ltoirs)
    )
    # Their kinds do not decide: the target does, for which the objects were asked.
    resolved = resolve_link_plan({**lower.targetoptions, "_lto_explicit": False})
    lower.metadata["link_plan"] = dataclasses.replace(
        resolved, compile_new_inputs_as_ltoir=compiled_for(external).lto, has_external_link_items=True
    )
    lower.metadata["linked_external_link_items"] = ()
    if not lower._is_kernel:
        return CallLinker(external)
    prepare(lower.mlir_module, lower.mlir_gpu_module)
    external.entry_name = lower.mlir_funcOp.attributes["sym_name"].value
    external.link_options = _link_options(lower.targetoptions)
    external.calls.options = options_of_kernel(_given(lower.targetoptions))
    target = compiled_for(external)
    plan = external.plan(target)
    lower._setup_callbacks[:] = [SetUp(callback) for callback in plan.setup_callbacks]
    lower._teardown_callbacks[:] = [TearDown(callback) for callback in plan.teardown_callbacks]
    is_looked_into = lower._capi_sym_name or lower._function_needs_nrt() or plan.target.debug
    return CallLinker(external, target, plan.may_drop_variables and not is_looked_into)


def compiled_for(external: FunctionCode) -> Target:
    """Return the target that a function was compiled for, which this front end always knows."""
    assert external.target is not None
    return external.target


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *options* of a kernel, ``opt`` as the level that it stands for, and ``lto`` if it was given."""
    resolved = ("opt", *(() if options.get("_lto_explicit") else ("lto",)))
    return {name: value for name, value in options.items() if name not in resolved}


def _link_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options of a kernel say of its link beyond its target. nvJitLink has the levels 0 and 3."""
    asked = {
        "optimization_level": 0 if int(options.get("opt_level", 3)) == 0 else None,
        "ptxas_options": options.get("ptxas_options"),
        "debug": options.get("debug") or None,
    }
    return {name: value for name, value in asked.items() if value is not None}


_NUMBERED = re.compile(r"(?:static_shared_memory|static_shared_records|constant_array|__constant_array)_\d+")
_WITH_ADDRESS = re.compile(r"(?<=_)\d{9,}(?!\d)")
_RECORD = re.compile(r"(?<=6RecordILi)\d+(?=E)")
_LARGEST = 16  # bytes, of the alignment of a type of C++


def prepare(module: Any, gpu_module: Any) -> None:
    """Change the *module* of a kernel, and the *gpu_module* in it, in place.

    Its arrays get the alignment that C++ relies on: MLIR aligns complex numbers like their parts, ``complex64`` to 4
    bytes, where ``float2`` needs 8. Names that are numbered in the order of compilation, or contain an address, are
    numbered within the kernel, so that the same kernel is the same code, and its link is found in the cache.
    """
    module.operation.walk(_align)
    _number_names(gpu_module)


def _align(operation: Any) -> Any:
    if operation.name in ("memref.alloca", "memref.global"):
        attributes = operation.attributes
        memref = attributes["type"].value if operation.name == "memref.global" else operation.results[0].type
        needed = _alignment(ir.MemRefType(memref).element_type)
        known = attributes["alignment"].value if "alignment" in attributes else 0
        if needed > known:
            attributes["alignment"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), needed)
    return ir.WalkResult.ADVANCE


def _alignment(element: Any) -> int:
    """Return the alignment in bytes of an array with elements of an MLIR type, or 0 where MLIR's is right."""
    if isinstance(element, ir.ComplexType):
        return 8 if isinstance(element.element_type, ir.F32Type) else _LARGEST
    # Records are bytes in MLIR.
    return _LARGEST if element == ir.IntegerType.get_signless(8) else 0


def _number_names(gpu_module: Any) -> None:
    names: dict[str, str] = {}
    records: dict[str, str] = {}
    for operation in gpu_module.regions[0].blocks[0].operations:
        attributes = operation.operation.attributes
        name = attributes["sym_name"].value if "sym_name" in attributes else ""
        if _NUMBERED.fullmatch(name):
            names[name] = f"{name.rpartition('_')[0]}_in_kernel_{len(names)}"
            continue
        if operation.operation.name not in ("func.func", "gpu.func") or not len(operation.regions[0].blocks):
            continue
        with_records = _RECORD.sub(lambda code: records.setdefault(code[0], str(len(records))), name)
        if (numbered := _WITH_ADDRESS.sub("id", with_records)) != with_records:
            numbered = f"{numbered}_in_kernel_{len(names)}"
        if numbered != name:
            names[name] = numbered
    for name, numbered in names.items():
        ir.SymbolTable.replace_all_symbol_uses(name, numbered, gpu_module.operation)
    for operation in gpu_module.regions[0].blocks[0].operations:
        attributes = operation.operation.attributes
        if "sym_name" in attributes and (name := attributes["sym_name"].value) in names:
            ir.SymbolTable.set_symbol_name(operation.operation, names[name])


class LoadedModule:
    """A module that is loaded, or was, as callbacks get it: ``handle`` is its ``CUlibrary``.

    There is one for each module, which can be referred to weakly, unlike what numba-cuda-mlir gives to callbacks."""

    def __init__(self, handle: Any):
        self.handle = handle
        self.is_unloaded = False


# By handle, which another module may get after a module is unloaded.
_modules: dict[int, LoadedModule] = {}


# Callbacks are equal if they call the same: numba-cuda-mlir collects those of all kernels of a function, each once.


@dataclass(frozen=True)
class SetUp:
    callback: Callable[[Any], Any]

    def __call__(self, given: Any) -> None:
        found = _modules.get(int(given.handle))
        if found is None or found.is_unloaded:
            found = _modules[int(given.handle)] = LoadedModule(given.handle)
        self.callback(found)


@dataclass(frozen=True)
class TearDown:
    callback: Callable[[Any], Any]

    def __call__(self, given: Any) -> None:
        found = _modules.setdefault(int(given.handle), LoadedModule(given.handle))
        found.is_unloaded = True
        self.callback(found)


def wrap_callbacks(dispatcher: Any) -> None:
    """Let the callbacks of what ``link=`` of a *dispatcher* names be the same as those of its links, which run once."""
    link = dispatcher.targetoptions.get("link") or ()
    for name, kind in (("setup_callback", SetUp), ("teardown_callback", TearDown)):
        given = [found for each in link if (found := getattr(each, name, None))]
        callbacks = getattr(dispatcher, f"_module_{name}s")
        callbacks[:] = [kind(each) if each in given else each for each in callbacks]


def explain(error: Exception, dispatcher: Any) -> str | None:
    """Return the message with which an *error* of the kernel *dispatcher* is printed: that of `placed_error`, but for
    links of what its ``link=`` names, of what a function of ``declare_device`` that it calls brings, or that nothing
    defines."""
    kernel, missing = dispatcher.py_func, error.filename if isinstance(error, FileNotFoundError) else None
    defined_at = kernel.__code__.co_filename, kernel.__code__.co_firstlineno
    advice = f"\n  what to do: {find_elsewhere(missing)}" if missing is not None else ""
    if missing is not None and missing in dispatcher.targetoptions.get("link", ()):
        return with_definition(f"link= of kernel {kernel.__name__!r}: {missing} not found{advice}", defined_at)
    symbol = symbol_in_log(str(error)) if type(error).__name__ == "nvJitLinkError" else None
    variables = inspect.getclosurevars(kernel)
    for name, value in {**variables.globals, **variables.nonlocals}.items():
        link = getattr(value, "link", None)
        if symbol is not None and getattr(value, "name", None) == symbol:
            return _placed(_undefined(symbol), kernel, name)
        if missing is not None and isinstance(link, (tuple, list)) and missing in link:
            return _placed(f"link= of declare_device({value.name!r}): {missing} not found{advice}", kernel, name)
    return placed_error(error) if symbol is None else with_definition(_undefined(symbol), defined_at)


def _undefined(symbol: str) -> str:
    """Return what is wrong where nothing defines a *symbol*, and what to do."""
    diagnosis = f"{readable(symbol)!r} is called but nothing that is linked defines it"
    return f'{diagnosis}\n  what to do: define it in code that link= names, as extern "C"'


def _placed(text: str, kernel: Any, called: str) -> str:
    """Return *text* with the place where the Python function *kernel* calls its variable *called*."""
    code = kernel.__code__
    file, line = find_call(code.co_filename, code.co_firstlineno, called) or (code.co_filename, code.co_firstlineno)
    return with_place(text, f"called at: {shown_file(file)}:{line} in {code.co_name}", file, line)
