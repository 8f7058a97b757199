# SPDX-License-Identifier: BSD-2-Clause
"""The code of a kernel in one context: where it comes from, and what launching it needs."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from .driver import SHARED_WITHOUT_ASKING, Device, bindings, called
from .errors import LaunchError, called_at
from .parameters import Leaf, Parameter
from .run_source import run_maker


class Loaded(NamedTuple):
    """A kernel's code in one context. ``owner`` keeps it loaded."""

    function: Any
    leaves: tuple[Leaf, ...]
    carveout: int | None
    cooperative: bool
    owner: Any


class Code(Protocol):
    """Where the code of a kernel and signature comes from: a file, or a compiler in this process."""

    text: str
    parameters: tuple[Parameter, ...]

    def load(self, device: Device) -> Loaded:
        """Load it into the current context, on *device*."""


class ReadyCode:
    """A kernel's code in one context with what launching it needs."""

    def __init__(self, kernel: str, code: Code, device: Device):
        self._kernel, self.device = kernel, device
        loaded = code.load(device)
        self.cooperative = loaded.cooperative
        self._function = loaded.function
        self.owner = loaded.owner
        self.static_shared = self._attribute("SHARED_SIZE_BYTES")
        self.most_threads = self._attribute("MAX_THREADS_PER_BLOCK")
        self._allowed = SHARED_WITHOUT_ASKING - self.static_shared
        if loaded.carveout is not None:
            self._set("PREFERRED_SHARED_MEMORY_CARVEOUT", loaded.carveout)
        self._make = run_maker(kernel, code.parameters, loaded.leaves)
        self.idle: list[Any] = []  # runs that no thread uses
        self._is_closed = False

    def new_run(self) -> Any:
        """Return a run that no other thread has."""
        if self._is_closed:
            raise LaunchError(f"{self._kernel} was closed with its library{called_at()}\n  what to do: load it again")
        return self._make(self.device, self._function)

    def close(self) -> None:
        """Refuse launches from now on."""
        self._is_closed = True
        self.idle.clear()

    def allow_shared(self, size: int) -> None:
        """Ask the driver for *size* bytes of dynamic shared memory where that is more than what it allows by itself."""
        if size > self._allowed:
            self._set("MAX_DYNAMIC_SHARED_SIZE_BYTES", size)
            self._allowed = size

    def allow_large_clusters(self) -> None:
        """Allow clusters that not each GPU of this generation has room for."""
        self._set("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)

    def _attribute(self, name: str) -> int:
        api = bindings()
        attribute = getattr(api.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(called(api.cuFuncGetAttribute, attribute, self._function))

    def _set(self, name: str, value: int) -> None:
        api = bindings()
        attribute = getattr(api.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        called(api.cuFuncSetAttribute, self._function, attribute, value)


class relaxed_capture:
    """While it lasts, this thread may load code although a stream is captured into a graph."""

    def __enter__(self) -> None:
        api = bindings()
        relaxed = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._mode = called(api.cuThreadExchangeStreamCaptureMode, relaxed)

    def __exit__(self, *_: Any) -> None:
        called(bindings().cuThreadExchangeStreamCaptureMode, self._mode)
