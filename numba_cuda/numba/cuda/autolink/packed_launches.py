# SPDX-License-Identifier: BSD-2-Clause
"""Launches of numba-cuda's kernels that pack their arguments as finished kernels do.

Only plain launches are made so: with numbers and with arrays that numba-cuda allocated, whose types numba-cuda has
compared with the kernel's before. What such a launch refuses, numba-cuda launches, or raises the error for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.cudadrv.external_code.formats.kernel_parameters import cubin_parameters

from numba_cuda_autolink.configuration import Configuration
from numba_cuda_autolink.driver import Device, bindings, called, current_context, device_of
from numba_cuda_autolink.loaded_code import Loaded, ReadyCode
from numba_cuda_autolink.parameters import Parameter, placed

from .kernel_parameters import kernel_parameters

_NUMBERS = (bool, int, float, complex, np.bool_, np.float16, np.float32, np.float64, np.complex64, np.complex128)
_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_PLAIN = frozenset({DeviceNDArray, *_NUMBERS, *_INTEGERS})
_MOST_KEPT = 256
_MOST_REFUSED = 100


class PackedLaunches:
    """Launches of one of numba-cuda's kernels with packed arguments.

    It keeps no reference to the kernel, so that modules are unloaded when they were before.
    """

    def __init__(self, kernel: Any):
        self._refused = 0
        self._function: Any = None
        self._ready: Any = None
        self._configurations: dict[Any, Any] = {}
        self._parameters: tuple[Parameter, ...] | None = None
        # These need what numba-cuda's own launch does before or after.
        if not (kernel.debug or kernel.extensions or kernel.cooperative):
            types = kernel.argument_types
            self._parameters = kernel_parameters([f"argument {n}" for n in range(1, len(types) + 1)], types)

    def launch(self, library: Any, args: tuple[Any, ...], how: tuple[Any, Any, Any, int]) -> bool:
        """Launch the kernel of the code *library* with *how*. Return whether it was launched."""
        if self._parameters is None or not _PLAIN.issuperset(map(type, args)):
            return False
        try:
            function = library.get_cufunc()
            if function is not self._function:
                self._take_up(function, library)
            grid, block, stream, shared = how
            key = grid, block, int(stream.handle), shared
            configuration = self._configurations.get(key)
            if configuration is None:
                configuration = self._configured(key)
            ready = self._ready
            try:
                run = ready.idle.pop()
            except IndexError:
                run = ready.new_run()
            run(configuration, args)
        except Exception:  # nothing was launched
            self._refused += 1
            if self._refused == _MOST_REFUSED:
                self._parameters = None
            return False
        ready.idle.append(run)
        return True

    def _take_up(self, function: Any, library: Any) -> None:
        assert self._parameters is not None
        code = _LoadedCode(function, bytes(library.get_cubin().code), self._parameters)
        self._ready = ReadyCode(function.name, code, device_of(current_context()[0]))
        self._configurations = {}
        self._function = function

    def _configured(self, key: tuple[Any, Any, int, int]) -> Any:
        grid, block, stream, shared = key
        options = {"cooperative": False, "cluster": None, "programmatic": False}
        made = Configuration.of(self._function.name, grid, block, stream, shared, **options)
        if len(self._configurations) >= _MOST_KEPT:
            self._configurations.clear()
        configuration = self._configurations[key] = made.for_driver(self._function.name, self._ready)
        return configuration


class _LoadedCode:
    """The code of a kernel that numba-cuda loaded."""

    def __init__(self, function: Any, cubin: bytes, parameters: tuple[Parameter, ...]):
        self.text, self.parameters = function.name, parameters
        self._function, self._cubin = function, cubin

    def load(self, device: Device) -> Loaded:
        leaves = placed(self.parameters, cubin_parameters(self._cubin, self._function.name))
        if leaves is None:
            raise ValueError(f"the code of {self.text} takes other parameters")
        handle = called(bindings().cuKernelGetFunction, bindings().CUkernel(int(self._function.kernel.handle)))
        return Loaded(handle, leaves, None, False, None)
