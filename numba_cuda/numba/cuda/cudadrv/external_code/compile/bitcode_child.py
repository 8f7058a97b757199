# SPDX-License-Identifier: BSD-2-Clause
"""Reads and compiles LLVM bitcode, run as a script in a process of its own: damaged bitcode ends it.

The script reads a pickled job from standard input and writes the answer to standard output: ``+`` and what was asked
for, or ``-`` and what went wrong. It needs nothing of Numba.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
from collections.abc import Callable
from typing import Any

TRIPLE = "nvptx64-nvidia-cuda"


def names(code: bytes) -> bytes:
    """The functions that *code* defines for others to see, one to a line."""
    return "\n".join(function.name for function in _parsed(code).functions if _is_visible(function)).encode()


def by_nvvm(code: bytes, stub: bytes, libdevice: bytes, options: list[str], is_whole: bool) -> bytes:
    """What NVVM makes of *code* with *options*: of all of it, or of what the module *stub* uses."""
    if code != libdevice:  # which is not subject to the verifier's rules
        # What is added lazily and cannot be read ends the process; this tells what is wrong with it.
        _nvvm([(stub, False), (code, False)], options, "verify")
    return _nvvm([(stub, False), (code, not is_whole), (libdevice, True)], options, "compile")


def _nvvm(modules: list[tuple[bytes, bool]], options: list[str], what: str) -> bytes:
    from cuda.bindings import nvvm

    program = nvvm.create_program()
    try:
        for number, (code, is_lazy) in enumerate(modules):
            add = nvvm.lazy_add_module_to_program if is_lazy else nvvm.add_module_to_program
            add(program, code, len(code), f"module {number}")
        if what == "verify":
            nvvm.verify_program(program, len(options), options)
            return b""
        nvvm.compile_program(program, len(options), options)
        result = bytearray(nvvm.get_compiled_result_size(program))
        nvvm.get_compiled_result(program, result)
        return bytes(result)
    except nvvm.nvvmError as error:
        log = bytearray(nvvm.get_program_log_size(program))
        nvvm.get_program_log(program, log)
        raise RuntimeError(f"{error}\n{log.decode(errors='replace')}".replace("\0", "").strip()) from error
    finally:
        nvvm.destroy_program(program)


def by_llvm(code: bytes, libdevice: bytes, arch: str, kept: tuple[str, ...]) -> bytes:
    """The PTX that llvmlite's LLVM makes of *code* for *arch*, with the functions *kept* and all that they need."""
    import llvmlite.binding as llvm

    module = _parsed(code)
    module.triple = TRIPLE
    if any(f.is_declaration and f.name.startswith("__nv_") for f in module.functions):
        library = llvm.parse_bitcode(libdevice)
        library.triple, library.data_layout = TRIPLE, module.data_layout
        module.link_in(library)
    for function in module.functions:
        if _is_visible(function) and function.name not in kept:
            function.linkage = "internal"
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=arch, opt=3)
    module.data_layout = str(machine.target_data)
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    unused = llvm.create_new_module_pass_manager()
    unused.add_global_dead_code_eliminate_pass()
    unused.run(module, builder)  # first, so that no time goes into what is dropped
    builder.getModulePassManager().run(module, builder)
    ptx: str = machine.emit_assembly(module)
    return ptx.encode()


def _parsed(code: bytes) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.parse_bitcode(code)


def _is_visible(value: Any) -> bool:
    return not value.is_declaration and value.linkage.name not in ("internal", "private", "available_externally")


def _main() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what damaged bitcode does to a process leaves no file
    job = pickle.load(sys.stdin.buffer)
    sys.path[:] = job["path"]
    tasks: dict[str, Callable[..., bytes]] = {"names": names, "NVVM": by_nvvm, "LLVM": by_llvm}
    try:
        answer = b"+" + tasks[job["what"]](**job["arguments"])
    except Exception as error:
        answer = b"-" + f"{error}".encode()
    sys.stdout.buffer.write(answer)


if __name__ == "__main__":
    _main()
