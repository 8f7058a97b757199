# SPDX-License-Identifier: BSD-2-Clause
import os
from typing import Any, Literal, overload

from .emulator.errors import AddressSpaceError as AddressSpaceError
from .emulator.errors import BarrierError as BarrierError
from .emulator.errors import EmulationError as EmulationError
from .emulator.errors import FaultError as FaultError
from .emulator.errors import LaunchSizeError as LaunchSizeError
from .emulator.errors import PTXSyntaxError as PTXSyntaxError
from .emulator.errors import SharedMemoryError as SharedMemoryError
from .emulator.errors import UnsupportedInstruction as UnsupportedInstruction
from .errors import ArgumentError as ArgumentError
from .errors import FinishedKernelError as FinishedKernelError
from .errors import KernelFileError as KernelFileError
from .errors import LaunchError as LaunchError
from .finished.library import KernelLibrary as KernelLibrary
from .finished.variables import Variable as Variable
from .launch.emulated_kernel import EmulatedKernel as EmulatedKernel
from .launch.kernel import Kernel as Kernel

__version__: str

class _EmulatedLibrary(KernelLibrary):
    def __getitem__(self, name: str) -> EmulatedKernel: ...
    def __getattr__(self, name: str) -> EmulatedKernel: ...

@overload
def load(path: str | bytes | os.PathLike[Any], *, emulate: Literal[True]) -> _EmulatedLibrary: ...
@overload
def load(path: str | bytes | os.PathLike[Any], *, emulate: bool = False) -> KernelLibrary: ...
