# SPDX-License-Identifier: BSD-2-Clause
from os import PathLike
from typing import Any, Literal, SupportsIndex, overload

from numpy import dtype, ndarray
from numpy.typing import ArrayLike
from typing_extensions import Never

from numba.cuda.core._stubs.arguments import NoOther, NoSuchOption
from numba.cuda.core._stubs.kernel_library import KernelLibrary as KernelLibrary
from numba.cuda.core._stubs.launches import (
    AnyConfiguration,
    ConfigurationLike,
    GridAndBlock,
    GridAndBlockInBrackets,
    Launch,
    LaunchNeedsGridAndBlock,
    NoConfiguration,
    Size,
    StreamLike,
)

__version__: str
__all__ = [
    "AddressSpaceError",
    "ArgumentError",
    "BarrierError",
    "EmulatedKernel",
    "EmulationError",
    "FaultError",
    "FinishedKernelError",
    "Kernel",
    "KernelFileError",
    "KernelLibrary",
    "LaunchError",
    "LaunchSizeError",
    "PTXSyntaxError",
    "SharedMemoryError",
    "UnsupportedInstruction",
    "Variable",
    "load",
]

class Kernel:
    name: str
    @property
    def signatures(self) -> tuple[str, ...]: ...
    def __call__(self, _: GridAndBlockInBrackets, /, *args: Any) -> None: ...
    @overload
    def __getitem__(self, how: GridAndBlock) -> Launch: ...
    @overload
    def __getitem__(self, how: ConfigurationLike) -> Launch: ...
    @overload
    def __getitem__(self, how: NoConfiguration) -> LaunchNeedsGridAndBlock: ...
    @overload
    def __getitem__(self, how: AnyConfiguration) -> Launch: ...
    def configure(
        self,
        grid: Size,
        block: Size,
        *,
        stream: StreamLike = 0,
        shared: SupportsIndex = 0,
        cooperative: bool = False,
        cluster: Size | None = None,
        programmatic: bool = False,
    ) -> Launch: ...

class EmulatedKernel(Kernel):
    def close(self) -> None: ...
    def with_checks(self) -> EmulatedKernel: ...
    def with_limit(self, most_back_edges: int) -> EmulatedKernel: ...

@overload
def load(path: str | bytes | PathLike[Any], *, emulate: Literal[True]) -> KernelLibrary[EmulatedKernel]: ...
@overload
def load(path: str | bytes | PathLike[Any], *, emulate: bool = False) -> KernelLibrary: ...
@overload
def load(
    path: str | bytes | PathLike[Any], *, emulate: bool | NoOther = False, **_no_such_option: NoSuchOption[Never]
) -> KernelLibrary: ...

class Variable:
    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def space(self) -> Literal["constant", "device", "managed"]: ...
    @property
    def dtype(self) -> dtype[Any]: ...
    @property
    def initial(self) -> bytes | None: ...
    def set(self, value: ArrayLike, *, device: int | None = None) -> None: ...
    def get(self, kernel: Kernel | None = None, *, device: int | None = None) -> ndarray[Any, Any]: ...

class FinishedKernelError(Exception): ...
class KernelFileError(FinishedKernelError, ValueError): ...

class ArgumentError(FinishedKernelError, TypeError):
    position: int
    parameter: str
    expected: str
    got: str
    remedy: str

class LaunchError(FinishedKernelError, RuntimeError): ...

class EmulationError(RuntimeError):
    kernel: str
    block: tuple[int, int, int] | None
    thread: tuple[int, int, int] | None
    address: int | None
    lines: tuple[str, ...]

class FaultError(EmulationError): ...
class AddressSpaceError(FaultError): ...
class BarrierError(FaultError): ...
class LaunchSizeError(EmulationError): ...
class SharedMemoryError(EmulationError): ...
class UnsupportedInstruction(EmulationError): ...
class PTXSyntaxError(EmulationError): ...
