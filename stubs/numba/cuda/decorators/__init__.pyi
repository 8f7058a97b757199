# SPDX-License-Identifier: BSD-2-Clause
from collections.abc import Callable
from typing import Any, Literal, TypedDict

from numba_cuda.numba.cuda.decorators import *  # noqa: F403
from typing_extensions import ParamSpec, TypeVar, Unpack

from numba.cuda.core._stubs.arguments import _LaunchBounds, _Several, _Signature
from numba.cuda.core._stubs.launches import Function, Signature
from numba.cuda.dispatcher import JitDispatcher

_P = ParamSpec("_P", default=[Function])
_R = TypeVar("_R", default=Function)
_Given = TypeVar("_Given", bound=str | _Signature | list[Any] | tuple[Any, ...], default=Signature)
_device = TypeVar("_device", Literal[False], Literal[True], bool, default=Literal[False])

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

# One signature and no overloads: checkers then name what is misspelled, or of another type. Without a function, what is
# returned has the defaults of the parameters of its type, and is called with one.
def jit(
    func_or_sig: Callable[_P, _R] | _Given = ..., /, device: _device = ..., **options: Unpack[JitOptions]
) -> JitDispatcher[_P, _R, _Given, _device]: ...

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
