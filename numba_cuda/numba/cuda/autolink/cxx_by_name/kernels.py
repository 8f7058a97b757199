# SPDX-License-Identifier: BSD-2-Clause
"""Kernels of C++ are not device functions, but NVRTC lets device code call them.

So each library's kernels are marked as deprecated. NVRTC then warns where overload resolution chooses one.
"""

from __future__ import annotations

import re

from numba.cuda.cudadrv.external_code.compile.translation_unit import KERNEL_MARK

from .refusals import CxxError, is_named_in

# Before each library's source. NVRTC's own definition is the same without the attribute.
MARKED_KERNELS = f"""#undef __global__
#define __global__ __location__(global) __attribute__((deprecated("{KERNEL_MARK}")))
"""
_USED = re.compile(
    rf'.*: function "(?P<name>.*)" was declared deprecated \("{KERNEL_MARK}"\)\n(?P<line>.*)\n(?P<caret> *)\^'
)
_LAUNCHED = re.compile(r"[\w:]+\s*(?:<[^<>]*>\s*)?<<<")


def kernel_refusal(label: str, log: str) -> CxxError | None:
    """Return the error for what messages call *label*, if NVRTC's *log* of it says that it calls a kernel."""
    for block in log.split("\n\n") if KERNEL_MARK in log else ():
        used = _USED.match(block.lstrip("\n"))
        if used and is_named_in(block, label) and not _LAUNCHED.match(used["line"], len(used["caret"])):
            name = used["name"].partition("(")[0]
            return CxxError(
                f"{name} is a kernel (__global__), which device code cannot call\n  call: {label}\n"
                "  what to do: move its body into a __device__ function, which the kernel and this call share",
                log,
            )
    return None
