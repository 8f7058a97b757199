# SPDX-License-Identifier: BSD-2-Clause
"""Kernels that run in the emulator, with the launch of finished kernels, on arrays of NumPy."""

from __future__ import annotations

import contextlib
import functools
import numbers
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..emulator import Checks, Module, memory
from ..errors import of_type
from ..plain_types import Leaf, Parameter, end_of, item_size
from ..short_tracebacks import short_traceback
from .argument_packing import Buffer, writers
from .arrays import contiguous_strides, view_of
from .driver import Device, on_device
from .kernel import Kernel, by_position
from .launch_codegen import wrong_count
from .launch_config import Configuration, refused_launch

_MOST_SHARED = 227 << 10


@dataclass(frozen=True, eq=False)
class EmulatedCode:
    """One signature of a kernel for the emulator.

    ``texts`` returns its PTX, ``make_lined`` the same with the lines of its sources, and ``leaves`` are the values that
    its parameters are passed as. ``setup`` and ``teardown`` are called with the loaded code, before its first launch
    and after its last. ``variables`` are set in it.
    """

    text: str
    parameters: tuple[Parameter, ...]
    leaves: tuple[Leaf, ...]
    entry: str
    compute_capability: tuple[int, int]
    cooperative: bool
    texts: Callable[[], Sequence[str]]
    setup: Sequence[Callable[[Any], None]] = ()
    teardown: Sequence[Callable[[Any], None]] = ()
    variables: Sequence[Any] = ()
    make_lined: Callable[[], Sequence[str]] | None = None

    def load(self, checks: Checks) -> Module:
        """Return the code as a module, with its variables set and after its setup callbacks."""
        module = Module(self.texts(), checks=checks, make_lined=self.make_lined)
        for variable in self.variables:
            variable._emulate(module)
        self._call_back(self.setup, module)
        return module

    def unload(self, module: Module) -> None:
        """Call the teardown callbacks."""
        self._call_back(self.teardown, module)

    def _call_back(self, callbacks: Sequence[Callable[[Any], None]], module: Module) -> None:
        if callbacks:
            from ..emulated_driver.activation import as_driver_library

            with as_driver_library(module, self.compute_capability) as library:
                for callback in callbacks:
                    callback(library)


class EmulatedKernel(Kernel):
    """A kernel that runs on the CPU: ``kernel[grid, block, stream, shared](*args)``.

    Arrays are those of NumPy, or of anything with ``__array_interface__``; results are in them when the launch returns.
    Streams have no effect, and clusters are not emulated. What a GPU does not check is an error: accesses out of
    bounds, misaligned ones, barriers that not all threads reach.
    """

    def __init__(
        self,
        name: str,
        describe: Callable[[], Sequence[EmulatedCode]],
        checks: Checks | None = None,
        written: str = "",
    ):
        super().__init__(name, describe)  # type: ignore[arg-type]  # the code is loaded otherwise
        self._written = written or name
        self._checks = Checks() if checks is None else checks
        self._modules: dict[int, Module] = {}
        self._unload: list[weakref.finalize] = []

    @property
    def _owners(self) -> list[Any]:
        """Its code, as far as it is loaded."""
        return list(self._modules.values())

    def close(self) -> None:
        """Run the teardown callbacks of its code. The next launch loads it again."""
        self._close()

    def _close(self) -> None:
        while self._unload:
            self._unload.pop()()
        self._modules.clear()

    def with_checks(self) -> EmulatedKernel:
        """Return the kernel with all checks: also of reads of uninitialised memory, and of races in shared memory."""
        return self._with(Checks.all())

    def with_limit(self, most_back_edges: int) -> EmulatedKernel:
        """Return the kernel with an error for threads that go back in loops more than *most_back_edges* times."""
        of_type("with_limit()", most_back_edges, numbers.Integral, "a number of times")
        return self._with(replace(self._checks, most_back_edges=most_back_edges))

    def _with(self, checks: Checks) -> EmulatedKernel:
        return EmulatedKernel(self.name, self._describe, checks, self._written)  # type: ignore[arg-type]

    def _configure(self, how: Configuration) -> Callable[..., None]:
        if how.cluster is not None:
            raise refused_launch(self.name, f"cluster={how.cluster} in the emulator", "no clusters")
        codes: list[Any] = [overload.code for overload in self._overloads]
        launch = self._choose_launch(
            [functools.partial(self._launch, number, code, how) for number, code in enumerate(codes)]
        )

        def launch_on_device(*args: Any, **named: Any) -> None:
            device = _device(codes[0].compute_capability)  # by which arguments are told apart
            with short_traceback(), on_device(device):
                launch(*args, **named)

        return launch_on_device

    def _launch(self, number: int, code: Any, how: Configuration, *args: Any, **named: Any) -> None:
        if named:
            raise by_position(self.name, named)
        if len(args) != len(code.parameters):
            raise wrong_count(self.name, code.parameters, len(args))
        with self._lock:
            module = self._modules.get(number)
            if module is None:
                module = self._modules[number] = code.load(self._checks)
                self._unload.append(weakref.finalize(self, code.unload, module))
        kernel = module.kernels[code.entry]
        room = _MOST_SHARED - kernel.shared_bytes
        if how.shared > room:
            raise refused_launch(self.name, f"{how.shared} bytes of dynamic shared memory", f"at most {room}")
        device = _device(code.compute_capability)
        buffer = Buffer(end_of(code.leaves))
        arrays = [(parameter.name, arg) for parameter, arg in zip(code.parameters, args, strict=True)]
        with on_device(device), _register(arrays, device):
            for write, arg in zip(writers(self.name, code.parameters, code.leaves, buffer, device), args, strict=True):
                write(arg, None)
            arguments = bytes(buffer.bytes[: end_of(code.leaves)])
            cooperative = how.cooperative or code.cooperative
            kernel.launch(how.grid, how.block, arguments, shared=how.shared, cooperative=cooperative)


def _device(compute_capability: tuple[int, int]) -> Device:
    return Device(0, compute_capability, _MOST_SHARED, reads_host_memory=True, is_emulated=True)


@contextlib.contextmanager
def _register(named: Sequence[tuple[str, Any]], device: Device) -> Iterator[None]:
    """Let kernels access the memory of the arrays in *named*, and nothing beside it. Arrays that overlap are one."""
    regions: list[tuple[int, int, str]] = []
    for low, high, name in sorted(_extents(named, device)):
        if regions and low < regions[-1][1]:
            begin, end, names = regions.pop()
            regions.append((begin, max(end, high), f"{names} and {name}"))
        else:
            regions.append((low, high, name))
    own = [region for region in regions if not _is_known(region[0])]  # others are the emulated driver's
    for low, high, name in own:
        memory.register(low, high - low, name)
    try:
        yield
    finally:
        for low, _, _ in own:
            memory.unregister(low)


def _is_known(address: int) -> bool:
    found = memory.find(address)
    return found is not None and not found.freed


def _extents(named: Sequence[tuple[str, Any]], device: Device) -> Iterator[tuple[int, int, str]]:
    """Yield where the memory of each array begins and ends, and its name."""
    for name, value in named:
        if isinstance(value, tuple):
            yield from _extents([(f"{name}[{number}]", item) for number, item in enumerate(value)], device)
        elif hasattr(value, "__array_interface__") and not isinstance(value, numbers.Number):
            view = view_of(value, None, device)
            if view.size and view.dtype is not None:
                itemsize = item_size(view.dtype)
                strides = view.strides or contiguous_strides(view.shape, itemsize, "C")
                ends = [stride * (length - 1) for stride, length in zip(strides, view.shape, strict=True)]
                low = view.pointer + sum(min(end, 0) for end in ends)
                yield low, view.pointer + sum(max(end, 0) for end in ends) + itemsize, name
