# SPDX-License-Identifier: BSD-2-Clause
"""The functions that CUDA defines for device code: printing, allocation, assertions, synchronisation of the grid."""

from __future__ import annotations

from dataclasses import dataclass

PRINT, ALLOCATE, FREE, ASSERT = range(4)


@dataclass(frozen=True)
class HostFunction:
    """A function that device code may call: one of the host by its *code*, a *native* one, or a *constant*."""

    arguments: tuple[str, ...] = ()
    result: str = "i32"
    code: int = 0
    native: str = ""
    constant: int | None = None


HOST_FUNCTIONS = {
    "vprintf": HostFunction(("i64", "i64"), "i32", PRINT),
    "malloc": HostFunction(("i64",), "i64", ALLOCATE),
    "free": HostFunction(("i64",), "i64", FREE),
    "__assertfail": HostFunction(("i64", "i64", "i32", "i64"), "i32", ASSERT),
    "cudaCGGetIntrinsicHandle": HostFunction(result="i64", constant=1),
    "cudaCGSynchronize": HostFunction(native="grid_sync"),
}
