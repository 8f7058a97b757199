# SPDX-License-Identifier: BSD-2-Clause
"""LLVM IR to native code."""

from __future__ import annotations

import functools
import threading
from typing import Any

import llvmlite.binding as llvm

from .cache import fetch_object, store_object
from .native import list_runtime_functions, list_texts
from .switching import SWITCH_IR

if llvm.llvm_version_info[0] < 20:
    raise ImportError("The emulator needs llvmlite 0.45 or newer: pip install -U llvmlite")

_lock = threading.Lock()  # LLVM's global tables
_PASSES = (
    "always_inliner",
    "global_dead_code_eliminate",
    "sroa",
    "simplify_cfg",
    "instruction_combine",
    "simplify_cfg",
)


def create_machine(level: int = 2) -> Any:
    """Return a description of this machine for LLVM, whose code is made with the effort *level* of 0 to 2. An engine
    takes its own for good."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=level, jit=True)


@functools.cache
def compiling_machine(level: int = 0) -> Any:
    return create_machine(level)


@functools.cache
def describe_machine() -> str:
    """Return what native code depends on besides the text that it is made of."""
    machine = compiling_machine()
    features = llvm.get_host_cpu_features().flatten()
    return f"{machine.triple} {llvm.get_host_cpu_name()} {features} llvm {llvm.llvm_version_info}"


def compile_text(text: str, level: int = 0) -> bytes:
    """Return the object file of the LLVM IR *text*.

    With *level* 0, few passes and a quick selection of machine code take a fifth of the time, for kernels as fast.
    """
    with _lock:
        machine = compiling_machine(level)
        module = llvm.parse_assembly(text)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
        options = llvm.create_pipeline_tuning_options(1)  # 2 takes half as long again, for code that is no faster
        builder = llvm.create_pass_builder(machine, options)
        passes = builder.getModulePassManager() if level else llvm.create_new_module_pass_manager()
        for name in () if level else _PASSES:
            getattr(passes, f"add_{name}_pass")()
        passes.run(module, builder)
        return bytes(machine.emit_object(module))


@functools.cache
def runtime_object() -> bytes:
    """Return the object file of the scheduler and all else that kernels share."""
    machine = describe_machine()
    code = fetch_object("runtime", machine)
    if code is None:
        texts, declarations = list_texts(sorted(list_runtime_functions()), runtime=True)
        code = compile_text("\n".join([*sorted(declarations), SWITCH_IR, *texts]), level=2)
        store_object("runtime", code, machine)
    return code


class NativeCode:
    """A kernel's *code* with the runtime, ready to run."""

    def __init__(self, code: bytes):
        with _lock:
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), create_machine())
        runtime = runtime_object()
        with _lock:
            for object_file in (runtime, code):
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_file))
            self._engine.finalize_object()
            names = ("kernel", "native.run_blocks", "native.run_resident_blocks", "native.run_direct")
            self.addresses = {name.removeprefix("native."): self._engine.get_function_address(name) for name in names}
