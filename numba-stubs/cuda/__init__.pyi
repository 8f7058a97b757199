# SPDX-License-Identifier: BSD-2-Clause
# numba.cuda.autolink, jit and the classes of linkable code have types here. All other names exist, of unknown types.
from collections.abc import Callable as _Callable
from typing import Any as _Any
from typing import Generic as _Generic
from typing import ParamSpec as _ParamSpec
from typing import TypedDict as _TypedDict
from typing import TypeVar as _TypeVar
from typing import overload as _overload

from numba.types import _Signature
from typing_extensions import Unpack as _Unpack

from numba_cuda_autolink.launch.launch_config import ConfigurationLike as _ConfigurationLike

_P = _ParamSpec("_P")
_R = _TypeVar("_R")

# A kernel or a device function, with the parameters of its Python function.
class _Dispatcher(_Generic[_P, _R]):
    py_func: _Callable[_P, _R]
    def __getitem__(self, configuration: _ConfigurationLike) -> _Callable[_P, None]: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def __getattr__(self, name: str) -> _Any: ...

class _JitOptions(_TypedDict, total=False):
    link: _Any
    debug: bool | None
    opt: bool | None
    lineinfo: bool
    inline: _Any
    forceinline: bool
    fastmath: bool
    extensions: _Any
    max_registers: int | None
    lto: bool | None
    launch_bounds: _Any
    shared_memory_carveout: _Any
    cache: bool

# Options that stand in a dict, jit(**options), are no first argument.
@_overload
def jit(
    func_or_sig: _Callable[_P, _R], /, device: bool = False, **options: _Unpack[_JitOptions]
) -> _Dispatcher[_P, _R]: ...
@_overload
def jit(
    func_or_sig: str | _Signature | list[_Any] | tuple[_Any, ...] | None = None,
    /,
    device: bool = False,
    **options: _Unpack[_JitOptions],
) -> _Callable[[_Callable[_P, _R]], _Dispatcher[_P, _R]]: ...

class _LinkableCode:
    def __init__(
        self,
        data: _Any,
        name: str | None = None,
        setup_callback: _Callable[[_Any], object] | None = None,
        teardown_callback: _Callable[[_Any], object] | None = None,
        nrt: bool = False,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def data(self) -> _Any: ...

class LTOIR(_LinkableCode): ...
class PTXSource(_LinkableCode): ...
class CUSource(_LinkableCode): ...
class Cubin(_LinkableCode): ...
class Fatbin(_LinkableCode): ...
class Object(_LinkableCode): ...
class Archive(_LinkableCode): ...

def __getattr__(name: str) -> _Any: ...
