# SPDX-License-Identifier: BSD-2-Clause
"""Which call an error or warning in NVRTC's log is of, and calls of kernels, which it only warns of."""

from __future__ import annotations

import re

from numba.cuda.cudadrv.external_code.compile.translation_unit import KERNEL_MARK

from .cxx_errors import CxxError

_WARNING = re.compile(r".*\(\d+\): (?:warning|remark)\b")
_SUMMARY = re.compile(r"^\d+ (?:catastrophic )?errors? detected in the compilation of .*", re.MULTILINE)
# Kernels of C++ are not device functions, but NVRTC lets device code call them. So each library's kernels are marked
# as deprecated, and NVRTC warns where overload resolution chooses one. This stands before each library's source;
# NVRTC's own definition is the same without the attribute.
MARKED_KERNELS = f"""#undef __global__
#define __global__ __location__(global) __attribute__((deprecated("{KERNEL_MARK}")))
"""
_USED = re.compile(
    rf'.*: function "(?P<name>.*)" was declared deprecated \("{KERNEL_MARK}"\)\n(?P<line>.*)\n(?P<caret> *)\^'
)
_LAUNCHED = re.compile(r"[\w:]+\s*(?:<[^<>]*>\s*)?<<<")


def is_named_in(log: str, label: str) -> bool:
    """Whether an error in NVRTC's *log* is in the text that *label* names, or in a template that this instantiates."""
    log = _SUMMARY.sub("", log)  # which has the name of the whole unit: that of its first call
    return re.search(rf'(?:^|(?<=["\s])){re.escape(label)}(?=\(\d+\): |"|$)', log, re.MULTILINE) is not None


def is_at_fault(log: str, label: str) -> bool:
    """Return whether an error in NVRTC's *log*, not only a warning, names the text of *label*."""
    blocks = re.split(r"\n\s*\n", log)
    return is_named_in("\n\n".join(block for block in blocks if not _WARNING.match(block.lstrip("\n"))), label)


def find_called_kernel(label: str, log: str) -> CxxError | None:
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
