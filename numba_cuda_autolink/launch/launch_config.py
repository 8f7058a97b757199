# SPDX-License-Identifier: BSD-2-Clause
"""How a kernel is launched: grid, block, stream, shared memory and options, checked."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

from ..errors import LaunchError, at_call
from ..launch_limits import MOST_BLOCKS, MOST_THREADS
from .arrays import shown
from .driver import bindings
from .loaded_kernel import ReadyCode

_PORTABLE_CLUSTER = 8


class Configuration(NamedTuple):
    """How a kernel is launched: sizes in blocks and threads, the handle of a stream, bytes of dynamic shared memory and
    options. ``owner`` keeps the stream alive."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    stream: int
    owner: Any
    shared: int
    cooperative: bool
    cluster: tuple[int, int, int] | None
    programmatic: bool

    @classmethod
    def of(cls, kernel: str, grid: Any, block: Any, stream: Any, shared: Any, **options: Any) -> Configuration:
        """Return the configuration of a launch of *kernel*. Raise `LaunchError` for what no device can launch."""
        blocks, threads = _sizes(kernel, "grid", grid, MOST_BLOCKS), _sizes(kernel, "block", block, MOST_THREADS)
        if threads[0] * threads[1] * threads[2] > MOST_THREADS[0]:
            raise refused_launch(kernel, f"a block of {threads}", f"at most {MOST_THREADS[0]} threads")
        if isinstance(shared, bool) or not hasattr(shared, "__index__") or shared < 0:
            raise refused_launch(kernel, f"{shared!r} as shared memory", "a number of bytes")
        size = options["cluster"]
        if size is not None:
            size = options["cluster"] = _sizes(kernel, "cluster", size, MOST_BLOCKS)
            if any(count % part for count, part in zip(blocks, size, strict=True)):
                raise refused_launch(kernel, f"a grid of {blocks} in clusters of {size}", "a grid of whole clusters")
        return cls(blocks, threads, stream_handle(stream), stream, operator.index(shared), **options)

    def for_driver(self, kernel: str, ready: ReadyCode) -> Any:
        """Return the driver's form of it for *kernel*. Raise `LaunchError` if the device cannot launch it."""
        api = bindings()
        threads, limit = self.block[0] * self.block[1] * self.block[2], ready.most_threads
        if threads > limit:
            raise refused_launch(
                kernel, f"{threads} threads in a block", f"at most {limit}, by its registers and launch bounds"
            )
        shared, room = self.shared, ready.device.most_shared - ready.static_shared
        if shared > room:
            raise refused_launch(kernel, f"{shared} bytes of dynamic shared memory", f"at most {room} on this device")
        if (self.cluster or self.programmatic) and ready.device.compute_capability < (9, 0):
            raise refused_launch(kernel, "clusters and programmatic launch", "compute capability 9.0 or later")
        ready.allow_shared(self.shared)
        config = api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = self.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = self.block
        config.sharedMemBytes, config.hStream = self.shared, self.stream
        attributes = []
        if self.cooperative or ready.cooperative:
            attributes.append(_attribute(api, "COOPERATIVE", "cooperative", 1))
        if self.programmatic:
            name = "programmaticStreamSerializationAllowed"
            attributes.append(_attribute(api, "PROGRAMMATIC_STREAM_SERIALIZATION", name, 1))
        if self.cluster is not None:
            if self.cluster[0] * self.cluster[1] * self.cluster[2] > _PORTABLE_CLUSTER:
                ready.allow_large_clusters()
            attribute = _attribute(api, "CLUSTER_DIMENSION")
            size = attribute.value.clusterDim
            size.x, size.y, size.z = self.cluster
            attributes.append(attribute)
        config.attrs, config.numAttrs = attributes, len(attributes)
        return config


def _sizes(kernel: str, what: str, size: Any, most: tuple[int, ...]) -> tuple[int, int, int]:
    try:
        given = size if isinstance(size, (tuple, list)) else (size,)
        numbers = () if any(isinstance(each, bool) for each in given) else tuple(map(operator.index, given))
    except TypeError:
        numbers = ()
    if not 1 <= len(numbers) <= 3:
        raise refused_launch(kernel, f"{what} {size!r}", "a positive integer, or a tuple of up to three")
    full = (*numbers, 1, 1)[:3]
    if any(not 1 <= number <= limit for number, limit in zip(full, most, strict=True)):
        expected = f"each at least 1 and at most {most}"
        if what == "block" and (threads := math.prod(full)) > most[0]:
            expected += f"\n  what to do: launch more blocks of fewer threads, such as [{-(-threads // 256)}, 256]"
        elif 0 in full:
            expected += f"\n  what to do: launch {kernel} only where there is work: a size of 0 in {what} has none"
        raise refused_launch(kernel, f"{what} {size!r}", expected)
    return full[0], full[1], full[2]


def refused_launch(kernel: str, got: str, expected: str) -> LaunchError:
    return LaunchError(at_call(f"{kernel} cannot be launched with {got}\n  expected: {expected}"))


def _attribute(api: Any, name: str, field: str = "", value: int = 0) -> Any:
    attribute = api.CUlaunchAttribute()
    attribute.id = getattr(api.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
    if field:
        setattr(attribute.value, field, value)
    return attribute


_ATTRIBUTES = ("cuda_stream", "ptr", "handle")  # PyTorch, CuPy, numba-cuda before 0.30


def stream_handle(stream: Any) -> int:
    """Return the handle of *stream*: a stream of cuda.core, numba-cuda, CuPy or PyTorch, or of any library that has
    ``__cuda_stream__``; an integer; or ``None``, which like 0 is the default stream. Raise `LaunchError` for others."""
    if stream is None:
        return 0
    why = ""
    try:
        handle = _handle(stream)
    except Exception as error:  # foreign objects raise whatever they like
        handle, why = None, f"\n  it raised: {type(error).__name__}"
    if handle is not None and 0 <= handle < 1 << 64:
        return handle
    raise LaunchError(
        at_call(
            f"a stream is needed, got {shown(stream)}"
            f"\n  expected: a stream of numba-cuda, cuda.core, CuPy or PyTorch, or an integer{why}"
        )
    )


def _handle(stream: Any) -> int | None:
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, handle = protocol() if callable(protocol) else protocol
        if version == 0:
            return int(handle)
    if isinstance(stream, (bool, float, str, type)):
        return None
    try:
        return operator.index(stream)
    except TypeError:
        pass
    for name in _ATTRIBUTES:
        handle = getattr(stream, name, None)
        if handle is not None:
            return int(handle)
    # A graph builder of cuda.core has its stream.
    return _handle(stream.stream) if hasattr(stream, "stream") else None
