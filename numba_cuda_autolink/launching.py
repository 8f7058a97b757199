# SPDX-License-Identifier: BSD-2-Clause
"""Kernels that are ready to be launched, and their launches: ``kernel[grid, block, stream, shared](*args)``."""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from .driver import Device, DriverError, bindings, called, current_context, device_count, device_of
from .errors import ArgumentError, LaunchError, called_at
from .parameters import Leaf, Parameter
from .run_source import run_maker
from .signature_choice import argument_key, choose
from .streams import stream_handle

_MOST_BLOCKS = (2**31 - 1, 65535, 65535)
_MOST_THREADS = (1024, 1024, 64)
_PORTABLE_CLUSTER = 8
_MOST_KEPT = 256
_WITHOUT_OPT_IN = 48 << 10  # bytes of shared memory that each kernel may use without asking


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


class Configuration(NamedTuple):
    """How a kernel is launched: sizes in blocks and threads, bytes of dynamic shared memory, a stream, and options."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    stream: Any
    shared: int
    cooperative: bool = False
    cluster: tuple[int, int, int] | None = None
    programmatic: bool = False


class _Ready:
    """A kernel's code in one context with what launching it needs."""

    def __init__(self, kernel: str, code: Code, device: Device):
        self._kernel, self.device = kernel, device
        self._loaded = loaded = code.load(device)
        self.cooperative = loaded.cooperative
        self._function = loaded.function
        self.static_shared = self._attribute("SHARED_SIZE_BYTES")
        self.most_threads = self._attribute("MAX_THREADS_PER_BLOCK")
        self._allowed = _WITHOUT_OPT_IN - self.static_shared
        if loaded.carveout is not None:
            self._set("PREFERRED_SHARED_MEMORY_CARVEOUT", loaded.carveout)
        size = max((leaf.offset + leaf.size for leaf in loaded.leaves), default=0)
        self._make = run_maker(kernel, code.parameters, loaded.leaves, size)
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


class Overload:
    """One signature of a kernel: its parameters, and its code in the contexts that it was launched in."""

    def __init__(self, kernel: str, code: Code):
        self.kernel, self.code = kernel, code
        self._lock = threading.Lock()
        self._ready: dict[int, _Ready] = {}

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.code.parameters

    def ready(self, context: int) -> _Ready:
        """Return its code in the current context, loaded if it is not."""
        found = self._ready.get(context)
        if found is None:
            with self._lock:
                found = self._ready.get(context)
                if found is None:
                    found = self._ready[context] = _Ready(self.kernel, self.code, device_of(context))
        return found

    def close(self) -> None:
        """Refuse launches of code that was loaded so far."""
        for ready in self._ready.values():
            ready.close()


class Launch:
    """A kernel with one signature, ready to be called with arguments."""

    def __init__(self, overload: Overload, configuration: Configuration):
        self._overload, self._configuration = overload, configuration
        self._stream = stream_handle(configuration.stream)
        self._prepared: dict[int, tuple[_Ready, Any]] = {}
        self._ready: _Ready | None = None
        self._idle: list[Any] = []
        self._config: Any = None

    def __call__(self, *args: Any) -> None:
        """Launch the kernel with *args*. Nothing is launched if one does not fit its parameter.

        Raises
        ------
        ArgumentError
            If an argument does not fit its parameter.
        LaunchError
            If the configuration does not fit the device, or the driver refuses the launch.
        """
        try:
            run = self._idle.pop()
        except IndexError:
            run = self._started()
        try:
            run(self._config, self._stream, args)
        except DriverError as error:
            if not error.is_of_context or not self._adopt():
                raise
            self(*args)
            return
        self._idle.append(run)

    def _started(self) -> Any:
        if self._ready is None:
            self._adopt()
        assert self._ready is not None
        return self._ready.new_run()

    def _adopt(self) -> bool:
        """Take up the current context, or the primary one if there is none. Return whether that changed anything."""
        context, was_made = current_context()
        if context not in self._prepared:
            with _relaxed_capture():
                ready = self._overload.ready(context)
                self._prepared[context] = ready, self._config_for(ready)
        ready, config = self._prepared[context]
        changed = was_made or ready is not self._ready
        self._ready, self._config, self._idle = ready, config, ready.idle
        return changed

    def _config_for(self, ready: _Ready) -> Any:
        """Return the driver's launch configuration. Raise `LaunchError` if the device cannot launch it."""
        api, how, kernel = bindings(), self._configuration, self._overload.kernel
        threads, limit = how.block[0] * how.block[1] * how.block[2], ready.most_threads
        if threads > limit:
            raise _refused(
                kernel, f"{threads} threads in a block", f"at most {limit}, by its registers and launch bounds"
            )
        room = ready.device.most_shared - ready.static_shared
        if how.shared > room:
            raise _refused(kernel, f"{how.shared} bytes of dynamic shared memory", f"at most {room} on this device")
        if (how.cluster or how.programmatic) and ready.device.compute_capability < (9, 0):
            raise _refused(kernel, "clusters and programmatic launch", "compute capability 9.0 or later")
        ready.allow_shared(how.shared)
        config = api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = how.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = how.block
        config.sharedMemBytes, config.hStream = how.shared, self._stream
        attributes = []
        if how.cooperative or ready.cooperative:
            attributes.append(_attribute(api, "COOPERATIVE", "cooperative", 1))
        if how.programmatic:
            name = "programmaticStreamSerializationAllowed"
            attributes.append(_attribute(api, "PROGRAMMATIC_STREAM_SERIALIZATION", name, 1))
        if how.cluster is not None:
            if how.cluster[0] * how.cluster[1] * how.cluster[2] > _PORTABLE_CLUSTER:
                ready.allow_large_clusters()
            attribute = _attribute(api, "CLUSTER_DIMENSION")
            size = attribute.value.clusterDim
            size.x, size.y, size.z = how.cluster
            attributes.append(attribute)
        config.attrs, config.numAttrs = attributes, len(attributes)
        return config


class _LaunchOnDevices(Launch):
    """A launch where there are several devices: each call looks at the current one."""

    def __call__(self, *args: Any) -> None:
        self._adopt()
        super().__call__(*args)


class _ChoosingLaunch:
    """A kernel with several signatures, ready to be called with arguments, which choose one."""

    def __init__(self, overloads: Sequence[Overload], configuration: Configuration, chosen: dict[Any, int]):
        self._overloads = overloads
        self._launches = [_launch(overload, configuration) for overload in overloads]
        self._chosen = chosen

    def __call__(self, *args: Any) -> None:
        """Launch the kernel with *args*; see `Launch`."""
        key = argument_key(args)
        number = self._chosen.get(key)
        if number is not None:
            try:
                return self._launches[number](*args)
            except ArgumentError:  # a value that is not in range, or another layout
                pass
        number = choose(self._overloads[0].kernel, [each.code for each in self._overloads], args)
        if len(self._chosen) < _MOST_KEPT:
            self._chosen[key] = number
        self._launches[number](*args)


def _launch(overload: Overload, configuration: Configuration) -> Launch:
    return (_LaunchOnDevices if device_count() > 1 else Launch)(overload, configuration)


class Kernel:
    """A kernel that is ready to be launched, with one or several signatures.

    ``kernel[grid, block, stream, shared](*args)`` launches it as a kernel of Numba: grid and block are integers or
    tuples of up to three, and the stream (of any library) and the bytes of dynamic shared memory are optional.
    """

    def __init__(self, name: str, describe: Callable[[], Sequence[Code]]):
        self.name = name
        self._describe = describe
        self._overloads_or_none: tuple[Overload, ...] | None = None
        self._launches: dict[Any, Callable[..., None]] = {}
        self._chosen: dict[Any, int] = {}

    @property
    def _overloads(self) -> tuple[Overload, ...]:
        if self._overloads_or_none is None:
            self._overloads_or_none = tuple(Overload(self.name, code) for code in self._describe())
        return self._overloads_or_none

    @property
    def signatures(self) -> tuple[str, ...]:
        """Its signatures, as Numba's types."""
        return tuple(overload.code.text for overload in self._overloads)

    def close(self) -> None:
        """Refuse launches of code that was loaded so far, because it is unloaded."""
        for overload in self._overloads_or_none or ():
            overload.close()

    def __getitem__(self, how: Any) -> Callable[..., None]:
        try:
            return self._launches[how]
        except (KeyError, TypeError):
            pass
        if not isinstance(how, tuple) or not 2 <= len(how) <= 4:
            raise _refused(self.name, f"[{how!r:.60}]", "[grid, block], [grid, block, stream] or [..., shared]")
        launch = self.configure(*how[:2], stream=how[2] if how[2:] else 0, shared=how[3] if how[3:] else 0)
        # Objects are not kept, so that streams are not kept alive.
        if not how[2:] or how[2] is None or isinstance(how[2], int):
            if len(self._launches) >= _MOST_KEPT:
                self._launches.clear()
            with contextlib.suppress(TypeError):  # sizes may be lists
                self._launches[how] = launch
        return launch

    def configure(
        self,
        grid: Any,
        block: Any,
        *,
        stream: Any = 0,
        shared: int = 0,
        cooperative: bool = False,
        cluster: Any = None,
        programmatic: bool = False,
    ) -> Callable[..., None]:
        """Return the kernel, ready to be called with arguments.

        Parameters
        ----------
        grid, block:
            The number of blocks, and of threads in a block: an integer, or a tuple of up to three.
        stream:
            A stream of numba-cuda, cuda.core, CuPy or PyTorch, its handle, or 0 for the default stream.
        shared:
            Bytes of dynamic shared memory. More than 48 KB is asked of the driver.
        cooperative:
            Whether all blocks run at a time, for synchronization of the grid. A kernel that synchronizes its grid is
            always launched so.
        cluster:
            Blocks per cluster: an integer, or a tuple of up to three.
        programmatic:
            Whether the launch may begin before the one before it in the stream ends (programmatic dependent launch).

        Raises
        ------
        LaunchError
            If a number is not positive or exceeds the limits of CUDA, or *stream* is not a stream.
        """
        blocks, threads = (
            _sizes(self.name, "grid", grid, _MOST_BLOCKS),
            _sizes(self.name, "block", block, _MOST_THREADS),
        )
        if threads[0] * threads[1] * threads[2] > _MOST_THREADS[0]:
            raise _refused(self.name, f"a block of {threads}", f"at most {_MOST_THREADS[0]} threads")
        if isinstance(shared, bool) or not isinstance(shared, int) or shared < 0:
            raise _refused(self.name, f"{shared!r} as shared memory", "a number of bytes")
        size = None if cluster is None else _sizes(self.name, "cluster", cluster, _MOST_BLOCKS)
        if size and any(count % part for count, part in zip(blocks, size, strict=True)):
            raise _refused(self.name, f"a grid of {blocks} in clusters of {size}", "a grid of whole clusters")
        how = Configuration(blocks, threads, stream, shared, bool(cooperative), size, bool(programmatic))
        if len(self._overloads) == 1:
            return _launch(self._overloads[0], how)
        return _ChoosingLaunch(self._overloads, how, self._chosen)

    def __repr__(self) -> str:
        return f"<kernel {self.name}{' and '.join(self.signatures)}>"


def _sizes(kernel: str, what: str, size: Any, most: tuple[int, ...]) -> tuple[int, int, int]:
    try:
        numbers = tuple(map(operator.index, size if isinstance(size, (tuple, list)) else (size,)))
    except TypeError:
        numbers = ()
    if not 1 <= len(numbers) <= 3:
        raise _refused(kernel, f"{what} {size!r}", "a positive integer, or a tuple of up to three")
    full = (*numbers, 1, 1)[:3]
    if any(not 1 <= number <= limit for number, limit in zip(full, most, strict=True)):
        raise _refused(kernel, f"{what} {size!r}", f"each at least 1 and at most {most}")
    return full[0], full[1], full[2]


def _refused(kernel: str, got: str, expected: str) -> LaunchError:
    return LaunchError(f"{kernel} cannot be launched with {got}{called_at()}\n  expected: {expected}")


def _attribute(api: Any, name: str, field: str = "", value: int = 0) -> Any:
    attribute = api.CUlaunchAttribute()
    attribute.id = getattr(api.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
    if field:
        setattr(attribute.value, field, value)
    return attribute


class _relaxed_capture:
    """While it lasts, this thread may load code although a stream is captured into a graph."""

    def __enter__(self) -> None:
        api = bindings()
        relaxed = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._mode = called(api.cuThreadExchangeStreamCaptureMode, relaxed)

    def __exit__(self, *_: Any) -> None:
        called(bindings().cuThreadExchangeStreamCaptureMode, self._mode)
