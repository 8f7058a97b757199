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
from numba_cuda_autolink.driver import bindings, current_context, device_of
from numba_cuda_autolink.loaded_code import Loaded, ReadyCode, relaxed_capture
from numba_cuda_autolink.parameters import Parameter, placed

from .kernel_parameters import kernel_parameters

_NUMBERS = (bool, int, float, complex, np.bool_, np.float32, np.float64, np.complex64, np.complex128)
_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_PLAIN = frozenset({DeviceNDArray, *_NUMBERS, *_INTEGERS})
_MOST_KEPT = 256
_MOST_REFUSED = 100


class _OnDevice:
    """A kernel's code as numba-cuda loaded it on one device, ready to be launched with packed arguments."""

    def __init__(self, function: Any, cubin: bytes, parameters: tuple[Parameter, ...]):
        leaves = placed(parameters, cubin_parameters(cubin, function.name))
        if leaves is None:
            raise ValueError(f"the code of {function.name} takes other parameters")
        self.function, device = function, device_of(current_context()[0])
        # A CUkernel stays valid when the context is reset. More shared memory was asked of the driver before.
        handle, shared = bindings().CUfunction(int(function.kernel.handle)), function.attrs.shared
        loaded = Loaded(handle, leaves, False, shared, device.most_shared, function.attrs.maxthreads, None)
        self.ready = ReadyCode(function.name, parameters, loaded, device)
        self._configurations: dict[Any, Any] = {}

    def configuration(self, how: tuple[Any, Any, Any, int]) -> Any:
        """Return the driver's configuration for *how*. Raise `LaunchError` if the device cannot launch it."""
        grid, block, stream, shared = how
        key = grid, block, int(stream.handle), shared
        found = self._configurations.get(key)
        if found is None:
            options = {"cooperative": False, "cluster": None, "programmatic": False}
            made = Configuration.of(self.function.name, *key, **options)
            if len(self._configurations) >= _MOST_KEPT:
                self._configurations.clear()
            found = self._configurations[key] = made.for_driver(self.function.name, self.ready)
        return found


class PackedLaunches:
    """Launches of one of numba-cuda's kernels with packed arguments.

    It keeps no reference to the kernel, so that modules are unloaded when they were before.
    """

    def __init__(self, kernel: Any):
        self._refused = 0
        self._on_devices: dict[int, _OnDevice] = {}
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
            found = self._on_devices.get(id(function))
            if found is None or found.function is not function:
                found = self._take_up(function, library)
            configuration = found.configuration(how)
            idle = found.ready.idle
            try:
                run = idle.pop()
            except IndexError:
                run = found.ready.new_run()
            run(configuration, args)
        except Exception:  # nothing was launched
            self._refused += 1
            if self._refused == _MOST_REFUSED:
                self._parameters = None
            return False
        idle.append(run)
        return True

    def _take_up(self, function: Any, library: Any) -> _OnDevice:
        assert self._parameters is not None
        with relaxed_capture():
            found = _OnDevice(function, bytes(library.get_cubin().code), self._parameters)
        self._on_devices[id(function)] = found
        return found
