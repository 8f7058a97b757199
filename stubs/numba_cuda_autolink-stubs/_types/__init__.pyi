# SPDX-License-Identifier: BSD-2-Clause
from typing import Any, Generic, Protocol, SupportsIndex, TypeAlias

from numba_cuda_autolink import Kernel
from typing_extensions import ParamSpec, TypeVar

# The parameters of a kernel's Python function, where they are known.
P = ParamSpec("P", default=...)
K = TypeVar("K", bound=Kernel, default=Kernel)

# The name of the class is in messages.
class Launch(Generic[P]):
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None: ...

# Streams: of any library, of PyTorch, of CuPy, of an older numba-cuda, and of what has one.
class _OfAnyLibrary(Protocol):
    @property
    def __cuda_stream__(self) -> Any: ...

class _OfPyTorch(Protocol):
    @property
    def cuda_stream(self) -> Any: ...

class _OfCuPy(Protocol):
    @property
    def ptr(self) -> Any: ...

class _OfNumbaCUDA(Protocol):
    @property
    def handle(self) -> Any: ...

class _HasStream(Protocol):
    @property
    def stream(self) -> Any: ...

StreamLike: TypeAlias = SupportsIndex | _OfAnyLibrary | _OfPyTorch | _OfCuPy | _OfNumbaCUDA | _HasStream | None
# Of a grid, a block or a cluster.
Size: TypeAlias = (
    SupportsIndex
    | tuple[SupportsIndex]
    | tuple[SupportsIndex, SupportsIndex]
    | tuple[SupportsIndex, SupportsIndex, SupportsIndex]
    | list[Any]
)
# Grid and block, and then a stream and the bytes of dynamic shared memory.
ConfigurationLike: TypeAlias = (
    tuple[Size, Size] | tuple[Size, Size, StreamLike] | tuple[Size, Size, StreamLike, SupportsIndex]
)
