# SPDX-License-Identifier: BSD-2-Clause
from typing import Any, Protocol, SupportsIndex, TypeAlias

from numba_cuda_autolink import Kernel
from typing_extensions import Never, TypeVar, Unpack

from numba.cuda.core._stubs.arguments import GridAndBlockOfIntegers, NoOther

K = TypeVar("K", bound=Kernel, default=Kernel)

# The name of the class is in messages.
class Launch:
    def __call__(self, *args: Any) -> None: ...

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
# Of a grid, a block or a cluster: up to three numbers, which a tuple of unknown length may have.
_ThreeNumbers: TypeAlias = (
    SupportsIndex
    | tuple[SupportsIndex]
    | tuple[SupportsIndex, SupportsIndex]
    | tuple[SupportsIndex, SupportsIndex, SupportsIndex]
    | list[Any]
)
Size: TypeAlias = _ThreeNumbers | tuple[SupportsIndex, ...]
# Grid and block, and then a stream and the bytes of dynamic shared memory.
ConfigurationLike: TypeAlias = (
    tuple[_ThreeNumbers, _ThreeNumbers]
    | tuple[_ThreeNumbers, _ThreeNumbers, StreamLike]
    | tuple[_ThreeNumbers, _ThreeNumbers, StreamLike, SupportsIndex]
)
_Four: TypeAlias = tuple[SupportsIndex, SupportsIndex, SupportsIndex, SupportsIndex, Unpack[tuple[SupportsIndex, ...]]]
NoConfiguration: TypeAlias = (
    SupportsIndex
    | tuple[Any]
    | tuple[_Four, _ThreeNumbers | _Four, Unpack[tuple[Any, ...]]]
    | tuple[_ThreeNumbers, _Four, Unpack[tuple[Any, ...]]]
    | tuple[Any, Any, Any, Any, Any, Unpack[tuple[Any, ...]]]
)
# With tuples of unknown lengths.
AnyConfiguration: TypeAlias = (
    tuple[Size, ...] | tuple[Size, Size, StreamLike] | tuple[Size, Size, StreamLike, SupportsIndex] | NoOther
)

# No configuration is one. It is of the first overload, from which mypy has the type that it expected: the name of the
# class is in messages.
GridAndBlock: TypeAlias = GridAndBlockOfIntegers[Never]

# What a configuration of too many numbers, or too few, gives. The name of the class is in messages.
class LaunchNeedsGridAndBlock: ...

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

# Kernels take what their parameters are annotated with, arrays in GPU memory of any library, and numbers of NumPy as
# numbers of Python.
class DeviceArray(Protocol):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

class NumberOf(Protocol[_T_co]):
    def item(self) -> _T_co: ...
    def __hash__(self) -> int: ...  # which arrays of NumPy do not have

Given: TypeAlias = _T | DeviceArray | NumberOf[_T] | NoOther

# A launch of a Python function of some type.
class _OfFunction(Protocol[_T_co]):
    @property
    def py_func(self) -> _T_co: ...

class LaunchOf(Protocol[_T_co]):
    @property
    def dispatcher(self) -> _OfFunction[_T_co]: ...

# What kernels and device functions take where they take nothing: the names of the classes are in messages.
class GridAndBlockInBrackets: ...
class CalledByKernelsAlone: ...

# Defaults of what jit is given first. The names of the classes are in messages.
class Function: ...
class Signature: ...

# Callable, so that staticmethod takes a kernel.
class _LaunchedInBrackets:
    def __call__(self, _: GridAndBlockInBrackets, /, *args: Any) -> None: ...
