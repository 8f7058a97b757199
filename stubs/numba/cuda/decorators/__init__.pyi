# SPDX-License-Identifier: BSD-2-Clause
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar, overload

from numba_cuda.numba.cuda.decorators import *  # noqa: F403
from typing_extensions import Unpack

from numba.cuda.core._stubs.arguments import (  # noqa: F401  # the wheel's overloads have NoSuchOption
    NoSuchOption,
    _LaunchBounds,
    _Several,
    _Signature,
)
from numba.cuda.dispatcher import CallableDispatcher, DeviceDispatcher, KernelDispatcher, _AnyDispatcher

_P = ParamSpec("_P")
_R = TypeVar("_R")

class JitOptions(TypedDict, total=False):
    link: _Several | bool  # options of jit(**options) are of the types of all of them
    debug: bool | None
    opt: bool | None
    lineinfo: bool
    inline: Literal["never", "always"] | bool | Callable[..., bool]
    forceinline: bool
    fastmath: bool
    extensions: Any
    max_registers: int | None
    lto: bool | None
    launch_bounds: _LaunchBounds
    shared_memory_carveout: str | int | None
    cache: bool

_Signatures: TypeAlias = str | _Signature | list[Any] | tuple[Any, ...]

# Options that stand in a dict, jit(**options), are no first argument. jedi takes the first overload that fits a text.
@overload
def jit(
    func_or_sig: _Signatures, /, device: Literal[False] = False, **options: Unpack[JitOptions]
) -> Callable[[Callable[_P, _R]], KernelDispatcher[_P, _R]]: ...
@overload
def jit(
    func_or_sig: _Signatures, /, device: Literal[True], **options: Unpack[JitOptions]
) -> Callable[[Callable[_P, _R]], DeviceDispatcher[_P, _R]]: ...
@overload
def jit(
    func_or_sig: _Signatures, /, device: bool = False, **options: Unpack[JitOptions]
) -> Callable[[Callable[_P, _R]], _AnyDispatcher[_P, _R]]: ...
@overload
def jit(
    func_or_sig: Callable[_P, _R], /, device: Literal[False] = False, **options: Unpack[JitOptions]
) -> CallableDispatcher[_P, _R]: ...
@overload
def jit(
    func_or_sig: Callable[_P, _R], /, device: Literal[True], **options: Unpack[JitOptions]
) -> DeviceDispatcher[_P, _R]: ...
@overload
def jit(
    func_or_sig: Callable[_P, _R], /, device: bool = False, **options: Unpack[JitOptions]
) -> _AnyDispatcher[_P, _R]: ...
@overload
def jit(
    *, device: Literal[False] = False, **options: Unpack[JitOptions]
) -> Callable[[Callable[_P, _R]], CallableDispatcher[_P, _R]]: ...
@overload
def jit(
    *, device: Literal[True], **options: Unpack[JitOptions]
) -> Callable[[Callable[_P, _R]], DeviceDispatcher[_P, _R]]: ...
@overload
def jit(
    *, device: bool = False, **options: Unpack[JitOptions]
) -> Callable[[Callable[_P, _R]], _AnyDispatcher[_P, _R]]: ...
@overload
def jit(
    func_or_sig: _Signatures, /, device: bool = False, **no_such_option: Unpack[JitOptions]
) -> Callable[[Callable[_P, _R]], _AnyDispatcher[_P, _R]]: ...
@overload
def jit(
    *, device: bool = False, **no_such_option: Unpack[JitOptions]
) -> Callable[[Callable[_P, _R]], _AnyDispatcher[_P, _R]]: ...

# It may be given hooks.
class _DeclaredFunction:
    name: str
    sig: Any
    __numba_cuda_link__: Callable[..., Any]
    __numba_cuda_link_key__: Callable[..., Any]
    def __call__(self, *args: Any) -> Any: ...

def declare_device(
    name: str,
    sig: str | _Signature,
    link: Any = None,
    use_cooperative: bool = False,
    abi: Literal["numba", "c"] = "numba",
) -> _DeclaredFunction: ...
def __getattr__(name: str) -> Any: ...
