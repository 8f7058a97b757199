# SPDX-License-Identifier: BSD-2-Clause
"""LLVM IR to native code, which is kept on disk."""

from __future__ import annotations

import functools
import hashlib
import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from ..cache_folder import read_entry, write_entry
from .native import list_texts
from .state import Facts
from .switching import SWITCH_IR

if llvm.llvm_version_info[0] < 20:
    raise ImportError("The emulator needs llvmlite 0.45 or newer: pip install -U llvmlite")

_lock = threading.Lock()  # LLVM's global tables
_PASSES = ["always_inliner", "global_dead_code_eliminate", "sroa"]
_PASSES += ["simplify_cfg", "instruction_combine", "simplify_cfg"]


def create_machine(level: int = 0) -> Any:
    """Return a description of this machine for LLVM, whose code is made with the effort *level* of 0 to 2."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=level, jit=True)


def compile_text(text: str, level: int = 0) -> bytes:
    """Return the object file of the LLVM IR *text*.

    With *level* 0, few passes and a quick selection of machine code take a fifth of the time, for kernels as fast.
    """
    with _lock:
        machine = create_machine(level)
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
def prepare_runtime() -> Future[bytes]:
    """Make the object file of the scheduler and all else that kernels share: it takes as long as several kernels, once
    on a machine."""

    def make() -> bytes:
        name = entry_name("runtime")
        code = read_entry(name)
        if code is None:
            texts, declarations = list_texts()
            code = compile_text("\n".join([*sorted(declarations), SWITCH_IR, *texts]), level=2)
            write_entry(name, code)
        return code

    return ThreadPoolExecutor(1).submit(make)


class NativeCode:
    """A kernel's *code* with the runtime, ready to run."""

    def __init__(self, code: bytes):
        with _lock:
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), create_machine())
        runtime = prepare_runtime().result()
        with _lock:
            for object_file in (runtime, code):
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_file))
            self._engine.finalize_object()
            self.kernel = self._engine.get_function_address("kernel")
            self.run_blocks = self._engine.get_function_address("native.run_blocks")
            self.facts = Facts.from_address(self._engine.get_global_value_address("facts"))


# Code on disk


@functools.cache
def _digest_of_maker() -> str:
    """Return the digest of what code depends on besides its text: the machine, LLVM, and the emulator's own source."""
    features = llvm.get_host_cpu_features().flatten()
    names = (create_machine().triple, llvm.get_host_cpu_name(), features, str(llvm.llvm_version_info))
    digest = hashlib.sha256(json.dumps(names).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def entry_name(kind: str, *parts: str) -> str:
    """Return the name of the entry of the cache with the code that is made of *parts*."""
    key = json.dumps([kind, _digest_of_maker(), *parts])
    return f"emulator/{hashlib.sha256(key.encode()).hexdigest()}.{kind}"
