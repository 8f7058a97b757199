# SPDX-License-Identifier: BSD-2-Clause
"""Streams, events and graphs of the emulated driver: everything ends before the function that begins it returns, and a
captured stream remembers it for a graph."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .c_functions import CAPTURE_UNSUPPORTED, INVALID_VALUE, Handles, Refused, c_function, put, put_handle, put_int
from .device import current_context

_OWN = (0, 1, 2)  # the default stream, the legacy one, and each thread's
_NOT_READY_BEFORE = 0.0


@dataclass
class _Stream:
    flags: int = 0
    priority: int = 0
    captured: list[Callable[[], object]] | None = None


@dataclass
class _Event:
    flags: int
    time: float = field(default=_NOT_READY_BEFORE)


_streams, _events, _graphs = Handles(), Handles(), Handles()


def _stream(handle: int) -> _Stream:
    found: _Stream = _own_stream if handle in _OWN else _streams[handle]
    return found


_own_stream = _Stream()


def in_order(stream: int, action: Callable[[], object]) -> None:
    """Do *action* now; if *stream* is being captured, whenever the graph is launched."""
    captured = _stream(stream).captured
    if captured is None:
        action()
    else:
        captured.append(action)


@c_function("pu")
def cuStreamCreate(stream: int, flags: int) -> None:
    put_handle(stream, _streams.add(_Stream(flags)))


@c_function("pui")
def cuStreamCreateWithPriority(stream: int, flags: int, priority: int) -> None:
    put_handle(stream, _streams.add(_Stream(flags, min(max(priority, -5), 0))))


@c_function("p")
def cuStreamDestroy(stream: int) -> None:
    _streams.remove(stream)


@c_function("pp")
def cuStreamGetPriority(stream: int, priority: int) -> None:
    put_int(priority, _stream(stream).priority)


@c_function("pp")
def cuStreamGetFlags(stream: int, flags: int) -> None:
    put_int(flags, _stream(stream).flags)


@c_function("pp")
def cuStreamGetCtx(stream: int, context: int) -> None:
    put_handle(context, current_context())


@c_function("pp")
def cuStreamGetId(stream: int, number: int) -> None:
    put_handle(number, stream)


@c_function("p")
def cuStreamQuery(stream: int) -> None:
    _stream(stream)


@c_function("p")
def cuStreamSynchronize(stream: int) -> None:
    if _stream(stream).captured is not None:
        raise Refused(CAPTURE_UNSUPPORTED)


@c_function("ppu")
def cuStreamWaitEvent(stream: int, event: int, flags: int) -> None:
    _stream(stream)
    _events[event]


@c_function("pppu")
def cuStreamAddCallback(stream: int, callback: int, data: int, flags: int) -> None:
    kind = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_int, ctypes.c_size_t)
    in_order(stream, lambda: kind(callback)(stream, 0, data))


@c_function("ppp")
def cuLaunchHostFunc(stream: int, callback: int, data: int) -> None:
    in_order(stream, lambda: ctypes.CFUNCTYPE(None, ctypes.c_size_t)(callback)(data))


# Events


@c_function("pu")
def cuEventCreate(event: int, flags: int) -> None:
    put_handle(event, _events.add(_Event(flags)))


@c_function("p")
def cuEventDestroy(event: int) -> None:
    _events.remove(event)


@c_function("pp", "cuEventRecord", "cuEventRecordWithFlags")
def cuEventRecord(event: int, stream: int) -> None:
    found = _events[event]
    in_order(stream, lambda: setattr(found, "time", time.perf_counter()))


@c_function("p", "cuEventQuery", "cuEventSynchronize")
def cuEventQuery(event: int) -> None:
    _events[event]


@c_function("ppp")
def cuEventElapsedTime(milliseconds: int, start: int, end: int) -> None:
    first, last = _events[start], _events[end]
    if _NOT_READY_BEFORE in (first.time, last.time):
        raise Refused(INVALID_VALUE)
    put(milliseconds, ctypes.c_float, (last.time - first.time) * 1e3)


# Capture


@c_function("pi")
def cuStreamBeginCapture(stream: int, mode: int) -> None:
    if stream in _OWN or _stream(stream).captured is not None:
        raise Refused(CAPTURE_UNSUPPORTED)
    _stream(stream).captured = []


@c_function("pp")
def cuStreamEndCapture(stream: int, graph: int) -> None:
    found = _stream(stream)
    if found.captured is None:
        raise Refused(INVALID_VALUE)
    actions, found.captured = found.captured, None
    put_handle(graph, _graphs.add(actions))


@c_function("pp", "cuStreamIsCapturing", "cuStreamGetCaptureInfo")
def cuStreamIsCapturing(stream: int, status: int) -> None:
    put_int(status, int(_stream(stream).captured is not None))


@c_function("pp", "cuGraphInstantiate", "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithParams")
def cuGraphInstantiate(executable: int, graph: int) -> None:
    put_handle(executable, _graphs.add(_graphs[graph]))


@c_function("pp")
def cuGraphLaunch(executable: int, stream: int) -> None:
    for action in _graphs[executable]:
        action()


@c_function("p", "cuGraphDestroy", "cuGraphExecDestroy")
def cuGraphDestroy(graph: int) -> None:
    _graphs.remove(graph)
