# SPDX-License-Identifier: BSD-2-Clause
"""An emulator of PTX: linked kernels on the CPU, with checks that a GPU does not make.

It needs NumPy and llvmlite 0.45 or newer, and runs on x86-64 and AArch64 with Linux; on macOS it is untried.

PTX becomes LLVM IR and native code. A device address is an address of the process, and a thread of CUDA is a function
call on a stack of its own, which it leaves at barriers and where it waits for other lanes of its warp. LLVM's
coroutines would need a frame on the heap for each call, and every caller, also through pointers, would have to resume
its callees; with stacks, recursion and calls need nothing special, and a switch takes some nanoseconds.
"""

from .module import Kernel, Module
from .program import Checks

__all__ = ["Checks", "Kernel", "Module"]
