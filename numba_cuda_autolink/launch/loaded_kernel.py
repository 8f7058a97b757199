# SPDX-License-Identifier: BSD-2-Clause
"""The code of a kernel in one context: where it comes from, and what launching it needs."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..errors import LaunchError, at_call
from ..plain_types import Leaf, Parameter
from .driver import SHARED_WITHOUT_ASKING, Device, bindings, call_driver
from .launch_codegen import run_maker

_Callbacks: TypeAlias = Sequence[Callable[[Any], None]]


class Loaded(NamedTuple):
    """A kernel's code in one context.

    ``leaves`` are the values that its parameters are passed as. ``static_shared`` and ``allowed_shared`` are bytes of
    shared memory: its own, and what the driver allows besides. ``owner`` keeps it loaded.
    """

    function: Any
    leaves: tuple[Leaf, ...]
    cooperative: bool
    static_shared: int
    allowed_shared: int
    most_threads: int
    owner: Any

    @classmethod
    def of(cls, function: Any, leaves: tuple[Leaf, ...], cooperative: bool, owner: Any) -> Loaded:
        """Return the code of *function*, with what the driver tells of it."""
        static, most_threads = (_attribute(function, name) for name in ("SHARED_SIZE_BYTES", "MAX_THREADS_PER_BLOCK"))
        return cls(function, leaves, cooperative, static, SHARED_WITHOUT_ASKING - static, most_threads, owner)


class LoadedCode:
    """Code that the driver loaded into the current context, where it stays until nothing refers to this object, or
    ``unload`` is called. The callbacks *setup* are called then, and *teardown* before it is unloaded: with the code as
    cuda.core's object, as numba-cuda calls them, or with what has its ``handle``."""

    def __init__(self, code: bytes, setup: _Callbacks, teardown: _Callbacks, *, is_ptx: bool, with_object: bool = True):
        api, given = bindings(), None
        if with_object and (setup or teardown):
            from cuda.core import ObjectCode

            given = (ObjectCode.from_ptx if is_ptx else ObjectCode.from_cubin)(code)
            self.handle = given.handle
        else:
            text = code + b"\0" if is_ptx else code
            self.handle = call_driver(api.cuLibraryLoadData, text, [], [], 0, [], [], 0)
        self.unload = weakref.finalize(self, _unload, api, self.handle, teardown, given)
        for callback in setup:
            callback(given or SimpleNamespace(handle=self.handle))

    def function(self, entry: str, carveout: int | None) -> Any:
        """Return the kernel called *entry*, with the share of shared memory that it prefers."""
        api = bindings()
        kernel = call_driver(api.cuLibraryGetKernel, self.handle, entry.encode())
        function = call_driver(api.cuKernelGetFunction, kernel)
        if carveout is not None:
            set_attribute(function, "PREFERRED_SHARED_MEMORY_CARVEOUT", carveout)
        return function


def _unload(api: Any, handle: Any, teardown: _Callbacks, given: Any) -> None:
    for callback in teardown:
        callback(given or SimpleNamespace(handle=handle))
    if given is None:  # cuda.core unloads its own
        api.cuLibraryUnload(handle)


class Code(Protocol):
    """Where the code of a kernel and signature comes from: a file, or a compiler in this process."""

    text: str
    parameters: tuple[Parameter, ...]

    def load(self, device: Device) -> Loaded:
        """Load it into the current context, on *device*."""


class ReadyCode:
    """A kernel's code in one context with what launching it needs."""

    def __init__(self, kernel: str, parameters: Sequence[Parameter], loaded: Loaded, device: Device):
        self._kernel, self._loaded, self.device = kernel, loaded, device
        self.cooperative = loaded.cooperative
        self.static_shared, self.most_threads = loaded.static_shared, loaded.most_threads
        self._allowed = loaded.allowed_shared
        self._make = run_maker(kernel, parameters, loaded.leaves)
        self.idle: list[Any] = []  # runs that no thread uses
        self._is_closed = False

    @property
    def owner(self) -> Any:
        return self._loaded.owner

    def new_run(self) -> Any:
        if self._is_closed:
            raise LaunchError(at_call(f"{self._kernel} was closed with its library\n  what to do: load it again"))
        return self._make(self.device, self._loaded.function)

    def close(self) -> None:
        self._is_closed = True
        self.idle.clear()

    def allow_shared(self, size: int) -> None:
        """Ask the driver for *size* bytes of dynamic shared memory where that is more than what it allows by itself."""
        if size > self._allowed:
            set_attribute(self._loaded.function, "MAX_DYNAMIC_SHARED_SIZE_BYTES", size)
            self._allowed = size

    def allow_large_clusters(self) -> None:
        """Allow clusters that not each GPU of this generation has room for."""
        set_attribute(self._loaded.function, "NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)


def _attribute(function: Any, name: str) -> int:
    api = bindings()
    attribute = getattr(api.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
    return int(call_driver(api.cuFuncGetAttribute, attribute, function))


def set_attribute(function: Any, name: str, value: int) -> None:
    api = bindings()
    attribute = getattr(api.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
    call_driver(api.cuFuncSetAttribute, function, attribute, value)


@contextlib.contextmanager
def relaxed_capture() -> Iterator[None]:
    """While it lasts, this thread may load code although a stream is captured into a graph."""
    api = bindings()
    mode = call_driver(api.cuThreadExchangeStreamCaptureMode, api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        yield
    finally:
        call_driver(api.cuThreadExchangeStreamCaptureMode, mode)
