# SPDX-License-Identifier: BSD-2-Clause
"""LLVM bitcode compiled to what can be linked: once, in memory and on disk.

NVVM makes LTO-IR or PTX of it. Bitcode of an LLVM that NVVM does not read for an architecture is compiled to PTX by
llvmlite's. Only what is wanted of a library goes into the link: NVSHMEM's has 50 MB.
"""

from __future__ import annotations

import functools
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Collection
from typing import Any

import llvmlite
from cuda import pathfinder

from .. import toolkit
from ..cache.key import CacheKey
from ..cache.store import current_store
from ..inputs import kinds
from ..inputs.kinds import Kind
from ..inputs.link_input import LinkInput
from ..target import Target
from . import bitcode_child
from .nvrtc import CompileError
from .programs import Program

_KINDS = {kind.name: kind for kind in (kinds.LTO_IR, kinds.PTX)}
_START = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"


def compiled(bitcode: LinkInput, target: Target, wanted: Collection[str] | None = None) -> Program:
    """*bitcode* as LTO-IR or PTX for *target* (a `Target`), with those of its functions that are
    *wanted* and all that these need; ``None`` wants all of them.

    Raises
    ------
    CompileError
        If neither NVVM nor llvmlite's LLVM takes it.
    """
    names = defined(bitcode)
    kept = None if names is None else tuple(name for name in names if wanted is None or name in wanted)
    key = CacheKey(
        "program",
        bitcode.name,
        (
            ("bitcode", bitcode.code),
            ("functions", "all" if kept is None else "\n".join(kept)),
            ("architecture", target.arch),
            ("LTO", str(target.lto)),
            ("fast math", str(target.fastmath)),
            ("NVVM", f"{toolkit.nvvm_version()} {toolkit.nvvm_build()}"),
            ("llvmlite", llvmlite.__version__),
        ),
    )
    fetched = current_store().fetch(key, lambda: _compiled(bitcode, target, kept))
    kind, _, code = fetched.data.partition(b"\0")
    return Program(code, _KINDS[kind.decode()], fetched.origin, fetched.seconds)


def defined(bitcode: LinkInput) -> tuple[str, ...] | None:
    """The functions that *bitcode* defines for others to see; ``None`` if llvmlite's LLVM cannot read it."""
    key = CacheKey("symbols", bitcode.name, (("bitcode", bitcode.code), ("llvmlite", llvmlite.__version__)))
    try:
        names = current_store().fetch(key, functools.partial(_in_child, "names", code=bitcode.code)).data.decode()
    except _ChildError:
        return None
    return tuple(names.splitlines())


def _compiled(bitcode: LinkInput, target: Target, kept: tuple[str, ...] | None) -> bytes:
    """The kind and the code, with a zero byte between."""
    code, libdevice = bitcode.code, _libdevice()
    try:
        made = _in_child(
            "NVVM",
            code=code,
            stub=_stub(kept or ()).encode(),
            libdevice=libdevice,
            options=_nvvm_options(target),
            is_whole=kept is None,
        )
        return _packed(kinds.LTO_IR, made) if target.lto else _packed(kinds.PTX, made.rstrip(b"\0"))
    except _ChildError as error:
        refused = error
    try:
        made = _in_child("LLVM", code=code, libdevice=libdevice, arch=target.arch, kept=kept or ())
    except _ChildError as error:
        version = ".".join(map(str, _llvm_version()))
        raise CompileError(bitcode.name, f"NVVM: {refused}\nLLVM {version} of llvmlite: {error}") from None
    return _packed(kinds.PTX, made)


def _packed(kind: Kind, code: bytes) -> bytes:
    return kind.name.encode() + b"\0" + code


def _nvvm_options(target: Target) -> list[str]:
    options = [f"-arch={target.arch.replace('sm_', 'compute_')}", "-opt=3"]
    if target.lto:
        options.append("-gen-lto")
    if target.fastmath:
        options += ["-ftz=1", "-fma=1", "-prec-div=0", "-prec-sqrt=0"]
    return options


def _stub(used: tuple[str, ...]) -> str:
    """A module that does nothing but use the functions *used*. Of what is added to it lazily, NVVM takes that, and
    leaves it visible; added otherwise, all of a library would stay, and libdevice's functions would become internal."""
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
    with open(pathfinder.locate_bitcode_lib("device").abs_path, "rb") as file:
        return file.read()


def _llvm_version() -> tuple[int, ...]:
    import llvmlite.binding as llvm

    return tuple(llvm.llvm_version_info)


class _ChildError(Exception):
    """What was asked of the child process failed."""


def _in_child(what: str, **arguments: Any) -> bytes:
    job = pickle.dumps({"path": [path for path in sys.path if path], "what": what, "arguments": arguments})
    command = [sys.executable, "-c", _START, os.path.abspath(bitcode_child.__file__)]
    try:
        done = subprocess.run(command, input=job, capture_output=True, check=False)
    except OSError as error:
        raise _ChildError(f"no child process can be started: {error}") from error
    if done.returncode:
        how = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit code {done.returncode}"
        raise _ChildError(f"it does not survive the bitcode ({how}): {done.stderr.decode(errors='replace').strip()}")
    if not done.stdout.startswith(b"+"):
        raise _ChildError(done.stdout[1:].decode(errors="replace"))
    return done.stdout[1:]
