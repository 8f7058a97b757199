# SPDX-License-Identifier: BSD-2-Clause
"""An emulator of PTX: linked kernels on the CPU, with checks that a GPU does not make.

It needs NumPy and llvmlite 0.45 or newer, and runs on x86-64 and AArch64 with Linux; on macOS it is untried.

PTX becomes LLVM IR and native code. A device address is an address of the process, and a thread of CUDA is a function
call on a stack of its own, which it leaves at barriers and where it waits for other lanes of its warp. LLVM's
coroutines would need a frame on the heap for each call, and every caller, also through pointers, would have to resume
its callees; with stacks, recursion and calls need nothing special, and a switch takes some nanoseconds.

=========================  =========================================================================================
``module``                 modules of PTX, their variables and kernels
``launcher``               launches: the records of a grid, and workers that share its blocks
``host_services``          the functions that CUDA defines for device code
``diagnosis``              errors of kernels in words, with the arrays among parameters
``checks``                 what is checked
``memory``                 what kernels may access
``compiler``               LLVM IR to native code, which is kept on disk
``program``                one kernel: its functions, and what its lowering finds
``linked_texts``           several texts of PTX as one
``parser``                 PTX as records
``ptx_types``              the types of PTX
``lowering``               a kernel and its functions as LLVM IR
``function_builder``       operands of PTX as values
``special_registers``      indices, sizes, clocks
``pointers``               addresses as pointers, with the quick part of the checks
``forms``                  the table of instructions: everything that is not in it is refused
``integer_forms``          integers, bits, predicates, moves
``float_forms``            floating arithmetic in each rounding mode
``conversion_forms``       conversions between types
``memory_forms``           loads, stores, addresses, copies
``atomic_forms``           atomic operations
``control_forms``          branches and calls
``matrix_forms``           matrices of a warp
``synchronisation_forms``  barriers, fences, operations of a warp
``native``                 a typed subset of Python that becomes LLVM IR; what follows is written in it
``scheduler``              how the threads of a block take turns
``warp``                   what the lanes of a warp do together, barriers in shared memory
``matrices``               matrices that a warp holds together
``access``                 checks of accesses
``integers``               the meaning of integer instructions
``floats``                 the meaning of floating instructions and of conversions
``state``                  the records that native code and Python share
``switching``              how a processor changes its stack
``errors``                 the errors
=========================  =========================================================================================
"""

from .checks import Checks
from .errors import EmulationError, LaunchSizeError, PTXSyntaxError, UnsupportedInstruction
from .module import Kernel, KernelAttributes, Module, Variable

__all__ = [
    "Checks",
    "EmulationError",
    "Kernel",
    "KernelAttributes",
    "LaunchSizeError",
    "Module",
    "PTXSyntaxError",
    "UnsupportedInstruction",
    "Variable",
]
