# SPDX-License-Identifier: BSD-2-Clause
from collections.abc import Callable, Iterable
from typing import Any, overload

from numba_cuda.numba.cuda.np.ufunc import *  # noqa: F403

from numba.cuda.core._stubs.launches import StreamLike

from . import decorators as decorators, sigparse as sigparse, ufuncbuilder as ufuncbuilder

# What the decorators make of a function, which has no class of its own.
class _ElementWise:
    __name__: str
    def __call__(self, *args: Any, out: Any = None, stream: StreamLike = 0) -> Any: ...
    def reduce(self, arg: Any, stream: StreamLike = 0) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

@overload
def vectorize(
    ftylist_or_function: Callable[..., Any], target: str = "cuda", *, identity: Any = None, **kws: Any
) -> _ElementWise:
    """Make a NumPy ufunc of a function of numbers. It is called with arrays of the host or of the device."""

@overload
def vectorize(
    ftylist_or_function: Iterable[Any] = (), target: str = "cuda", *, identity: Any = None, **kws: Any
) -> Callable[[Callable[..., Any]], _ElementWise]: ...
def guvectorize(
    ftylist: Iterable[Any],
    signature: str,
    target: str = "cuda",
    *,
    identity: Any = None,
    writable_args: Iterable[int | str] = (),
    **kws: Any,
) -> Callable[[Callable[..., Any]], _ElementWise]:
    """Make a generalized ufunc of a function of arrays. *signature* names their dimensions: ``(m,n),(n)->(m)``."""

def __getattr__(name: str) -> Any: ...
