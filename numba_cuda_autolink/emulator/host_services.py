# SPDX-License-Identifier: BSD-2-Clause
"""The functions that CUDA defines for device code, and what the host does for them: printing, allocation, assertion."""

from __future__ import annotations

import ctypes
import re
import struct
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import memory
from .state import Launch, Thread

HOST_FUNCTIONS = ("vprintf", "malloc", "free", "__assertfail")
PRINT, ALLOCATE, FREE, ASSERT = range(len(HOST_FUNCTIONS))

_FORMAT = re.compile(r"%([-+ #0]*\d*(?:\.\d+)?)(hh|h|ll|l|z|j|t)?([diouxXfFeEgGaAcsp%])")
_lock = threading.Lock()  # of printing, and of memory that kernels allocate


class HostServices:
    """Serves the threads of the *launch*, whose workers remember accesses in *caches*.

    Afterwards *error* is what was raised, and *assertions* holds what failed, a file and a line, by the record of
    the block.
    """

    def __init__(self, launch: Launch, caches: Sequence[np.ndarray]):
        self.error: BaseException | None = None
        self.assertions: dict[int, tuple[str, str, int]] = {}
        self.has_printed = False
        self._launch, self._caches = launch, caches
        self._tables: list[np.ndarray] = []

    def serve(self, block: int, thread: int) -> int:
        """Do what a thread asks for; return 0, or 1 after an error, which is kept."""
        try:
            asking = Thread.from_address(thread)
            with _lock:
                asking.result = self._do(asking.operation, (ctypes.c_uint64 * 4).from_address(asking.a), block)
        except BaseException as error:
            self.error = error
        return int(self.error is not None or block in self.assertions)

    def _do(self, operation: int, arguments: ctypes.Array[ctypes.c_uint64], block: int) -> int:
        if operation == PRINT:
            sys.stdout.write(format_text(arguments[0], arguments[1]))
            self.has_printed = True
        elif operation == ALLOCATE:
            address = memory.allocate(arguments[0], label="malloc in a kernel")
            self._change_table()
            return address
        elif operation == FREE and arguments[0]:
            memory.free(arguments[0])
            self._change_table()
        elif operation == ASSERT:
            message, file, line, function = arguments
            text = f"Assertion `{read_text(message)}` failed\n  function: {read_text(function)}"
            self.assertions[block] = text, read_text(file), line & 0xFFFFFFFF
        return 0

    def _change_table(self) -> None:
        """Give the launch the new table; what workers remember of the old one is forgotten."""
        table = memory.pack_table()
        self._tables.append(table)
        self._launch.allocation_count = 0
        self._launch.allocations, self._launch.allocation_count = table.ctypes.data, len(table)
        for cache in self._caches:
            cache[1::2] = 0


def read_text(address: int) -> str:
    """Return the text of C at *address*."""
    return ctypes.string_at(address).decode("utf-8", "replace") if address else ""


def format_text(template: int, arguments: int) -> str:
    """Return what ``vprintf`` prints: *template* with values from the buffer *arguments*, each aligned to its size."""
    position = arguments

    def convert(found: re.Match[str]) -> str:
        nonlocal position
        layout, length, kind = found.groups()
        if kind == "%":
            return "%"
        nbytes = 8 if kind in "fFeEgGaAsp" or length in ("l", "ll", "z", "j", "t") else 4
        begin = -(-position // nbytes) * nbytes
        position = begin + nbytes
        data = ctypes.string_at(begin, nbytes)
        value: Any = int.from_bytes(data, "little", signed=kind in "di")
        if kind in "fFeEgGaA":
            (value,) = struct.unpack("<d", data)
            return value.hex() if kind in "aA" else f"%{layout}{kind}" % value
        if kind in "spc":
            value = {"s": read_text, "p": hex, "c": lambda code: chr(code & 255)}[kind](value)
            return f"%{layout if kind == 's' else layout.partition('.')[0]}s" % value
        return f"%{layout}{'d' if kind == 'u' else kind}" % value

    return _FORMAT.sub(convert, read_text(template))
