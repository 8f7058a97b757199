# SPDX-License-Identifier: BSD-2-Clause
"""Compile LLVM bitcode to what can be linked, and cache it in memory and on disk.

NVVM compiles it to LTO-IR or PTX. Bitcode of an LLVM version that NVVM does not read for an architecture is compiled to
PTX by llvmlite's LLVM. Only the referenced functions of a library go into the link: NVSHMEM's bitcode has 50 MB.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Collection
from typing import Any

import llvmlite
from cuda import pathfinder

from ..cache.entry import CacheKey
from ..cache.store import Fetched, current_store
from ..inputs import kinds
from ..inputs.kinds import Kind
from ..inputs.link_input import LinkInput
from ..platform import cuda_libraries
from ..platform.child_process import ChildError, ChildProcess
from ..platform.target import Target
from . import bitcode_child
from .nvrtc import CompileError

_LTO_IR, _PTX = b"LTO-IR\0", b"PTX\0"  # what the cached code begins with


def compiled(bitcode: LinkInput, target: Target, referenced: Collection[str] | None) -> tuple[Kind, Fetched]:
    """Return *bitcode* as LTO-IR or PTX for *target*, from a cache or compiled now: those of its functions that are
    *referenced* and all that they need, or all of them for ``None``. Raises `CompileError` if neither NVVM nor
    llvmlite's LLVM can compile it."""
    names = defined(bitcode)
    kept = None if names is None else tuple(name for name in names if referenced is None or name in referenced)
    functions = ("functions", "all" if kept is None else "\n".join(kept))
    key = CacheKey("program", bitcode.name, (*_parts(bitcode, target), functions))
    fetched = current_store().fetch(key, lambda: _compile(bitcode, target, kept))
    kind, mark = (kinds.LTO_IR, _LTO_IR) if fetched.data.startswith(_LTO_IR) else (kinds.PTX, _PTX)
    return kind, dataclasses.replace(fetched, data=fetched.data.removeprefix(mark))


def digest(bitcode: LinkInput, target: Target) -> bytes:
    """Return a digest of all that the program of *bitcode* for *target* depends on, but for the functions that are
    kept."""
    return CacheKey("program", bitcode.name, _parts(bitcode, target)).digest


def _parts(bitcode: LinkInput, target: Target) -> tuple[tuple[str, str | bytes], ...]:
    return (
        ("bitcode", bitcode.code),
        ("architecture", target.arch),
        ("LTO", str(target.lto)),
        ("fast math", str(target.fastmath)),
        ("NVVM", f"{cuda_libraries.nvvm_version()} {cuda_libraries.nvvm_build()}"),
        ("llvmlite", llvmlite.__version__),
    )


def defined(bitcode: LinkInput) -> tuple[str, ...] | None:
    """Return the visible functions that *bitcode* defines; ``None`` if llvmlite's LLVM cannot read it."""
    key = CacheKey("symbols", bitcode.name, (("bitcode", bitcode.code), ("llvmlite", llvmlite.__version__)))
    try:
        names = current_store().fetch(key, functools.partial(_in_child, "names", bitcode.code)).data.decode()
    except ChildError:
        return None
    return tuple(names.splitlines())


def _compile(bitcode: LinkInput, target: Target, kept: tuple[str, ...] | None) -> bytes:
    code, libdevice = bitcode.code, _libdevice()
    try:
        stub = _stub(kept or ()).encode()
        compiled = _in_child("NVVM", code, stub, libdevice, options=_nvvm_options(target), is_whole=kept is None)
        return _LTO_IR + compiled if target.lto else _PTX + compiled.rstrip(b"\0")
    except ChildError as error:
        rejected = error
    try:
        return _PTX + _in_child("LLVM", code, libdevice, arch=target.arch, kept=kept or ())
    except ChildError as error:
        from llvmlite.binding import llvm_version_info

        version = ".".join(map(str, llvm_version_info))
        raise CompileError(bitcode.name, f"NVVM: {rejected}\nLLVM {version} of llvmlite: {error}") from None


def _nvvm_options(target: Target) -> list[str]:
    lto = ["-gen-lto"] if target.lto else []
    fast_math = ["-ftz=1", "-fma=1", "-prec-div=0", "-prec-sqrt=0"] if target.fastmath else []
    return [f"-arch={target.arch.replace('sm_', 'compute_')}", "-opt=3", *lto, *fast_math]


def _stub(used: tuple[str, ...]) -> str:
    """Return a module that only references the functions *used*. NVVM takes these from modules that are added lazily,
    and keeps them visible. Of a module added otherwise everything would stay, and libdevice's functions would become
    internal."""
    from llvmlite import ir
    from numba.cuda.cudadrv import nvvm
    from numba.cuda.descriptor import cuda_target

    module = cuda_target.target_context.create_module("used")
    nvvm.add_ir_version(module)
    if used:
        pointer = ir.IntType(8).as_pointer()
        nothing = ir.FunctionType(ir.VoidType(), ())
        kind = ir.ArrayType(pointer, len(used))
        variable = ir.GlobalVariable(module, kind, "llvm.used")
        variable.linkage = "appending"
        variable.section = "llvm.metadata"
        variable.initializer = kind([ir.Function(module, nothing, name).bitcast(pointer) for name in used])
    return str(module)


@functools.cache
def _libdevice() -> bytes:
    return pathlib.Path(pathfinder.locate_bitcode_lib("device").abs_path).read_bytes()


def _in_child(task: str, *blobs: bytes, **arguments: Any) -> bytes:
    """Run a task of ``bitcode_child``. Raises `ChildError` if it fails, or crashes the child."""
    from .nvrtc_processes import memory_limit, time_limit

    with ChildProcess(bitcode_child.__file__, memory=memory_limit()) as child:
        return child.request({"task": task, **arguments}, blobs, timeout=time_limit()).blobs[0]
