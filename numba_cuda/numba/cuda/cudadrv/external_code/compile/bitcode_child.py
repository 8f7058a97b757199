# SPDX-License-Identifier: BSD-2-Clause
"""The child process of ``bitcode``: read and compile LLVM bitcode, which crashes the process if it is damaged.

It imports nothing of this package or of Numba.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

TRIPLE = "nvptx64-nvidia-cuda"


def names(code: bytes) -> bytes:
    return "\n".join(function.name for function in _parse(code).functions if _is_visible(function)).encode()


def compile_with_nvvm(code: bytes, stub: bytes, libdevice: bytes, *, options: list[str], is_whole: bool) -> bytes:
    """Compile *code* with NVVM's *options*: all of it, or what the module *stub* uses."""
    if code != libdevice:  # which the verifier would reject
        # A lazily added module that cannot be read crashes NVVM; the verifier says what is wrong with it.
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


def compile_with_llvm(code: bytes, libdevice: bytes, *, arch: str, kept: Sequence[str]) -> bytes:
    """Compile *code* to PTX for *arch* with llvmlite's LLVM: the functions *kept* and all that they need."""
    import llvmlite.binding as llvm

    module = _parse(code)
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


def _parse(code: bytes) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.parse_bitcode(code)


def _is_visible(value: Any) -> bool:
    return not value.is_declaration and value.linkage.name not in ("internal", "private", "available_externally")


def answer(content: dict[str, Any], blobs: Sequence[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Run one task on the bitcode in *blobs* and return the result; ``task`` is its name, other items its arguments."""
    tasks: dict[str, Callable[..., bytes]] = {"names": names, "NVVM": compile_with_nvvm, "LLVM": compile_with_llvm}
    arguments = dict(content)
    return {}, [tasks[arguments.pop("task")](*blobs, **arguments)]
