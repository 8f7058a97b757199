# SPDX-License-Identifier: BSD-2-Clause
from typing import Any, Literal

from numba_cuda.numba.cuda.compiler import *  # noqa: F403

from numba.cuda.core._stubs.arguments import _Buildable, _KernelSignature, _LaunchBounds

# The code is text for PTX, and bytes for LTO-IR.
def compile(
    pyfunc: _Buildable,
    sig: _KernelSignature,
    debug: bool | None = None,
    lineinfo: bool = False,
    device: bool = True,
    fastmath: bool = False,
    cc: tuple[int, int] | None = None,
    opt: bool | None = None,
    abi: Literal["numba", "c"] = "c",
    abi_info: dict[str, str] | None = None,
    output: Literal["ptx", "ltoir"] = "ptx",
    forceinline: bool = False,
    launch_bounds: _LaunchBounds = None,
) -> tuple[Any, Any]: ...
def compile_all(
    pyfunc: _Buildable,
    sig: _KernelSignature,
    debug: bool | None = None,
    lineinfo: bool = False,
    device: bool = True,
    fastmath: bool = False,
    cc: tuple[int, int] | None = None,
    opt: bool | None = None,
    abi: Literal["numba", "c"] = "c",
    abi_info: dict[str, str] | None = None,
    output: Literal["ptx", "ltoir"] = "ltoir",
    forceinline: bool = False,
    launch_bounds: _LaunchBounds = None,
) -> tuple[list[Any], Any]: ...
def compile_for_current_device(
    pyfunc: _Buildable,
    sig: _KernelSignature,
    debug: bool | None = None,
    lineinfo: bool = False,
    device: bool = True,
    fastmath: bool = False,
    opt: bool | None = None,
    abi: Literal["numba", "c"] = "c",
    abi_info: dict[str, str] | None = None,
    output: Literal["ptx", "ltoir"] = "ptx",
    forceinline: bool = False,
    launch_bounds: _LaunchBounds = None,
) -> tuple[Any, Any]: ...
def compile_ptx(
    pyfunc: _Buildable,
    sig: _KernelSignature,
    debug: bool | None = None,
    lineinfo: bool = False,
    device: bool = False,
    fastmath: bool = False,
    cc: tuple[int, int] | None = None,
    opt: bool | None = None,
    abi: Literal["numba", "c"] = "numba",
    abi_info: dict[str, str] | None = None,
    forceinline: bool = False,
    launch_bounds: _LaunchBounds = None,
) -> tuple[str, Any]: ...
def compile_ptx_for_current_device(
    pyfunc: _Buildable,
    sig: _KernelSignature,
    debug: bool | None = None,
    lineinfo: bool = False,
    device: bool = False,
    fastmath: bool = False,
    opt: bool | None = None,
    abi: Literal["numba", "c"] = "numba",
    abi_info: dict[str, str] | None = None,
    forceinline: bool = False,
    launch_bounds: _LaunchBounds = None,
) -> tuple[str, Any]: ...
def __getattr__(name: str) -> Any: ...
