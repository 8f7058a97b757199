# SPDX-License-Identifier: BSD-2-Clause
"""The base class of objects that kernels call. It uses the public protocol alone, as a third party would.

========================  ============================================================================================
``objects``               `DeviceCallable` and `device_method`; both in the simulator
``extern``                `Extern`: the C function that a call stands for
``symbol_names``          `symbol`: C identifiers by content
``c_abi``                 C types and layouts of Numba types; `cxx_type`
``array_views``           `span` and `mdspan`: arrays as views of C++
``view_lowering``         LLVM IR that makes these views
``c_structs``             how C sees records and tuples by value
``c_values``              the LLVM types of C's values, and the values in them
``c_functions``           C functions in LLVM IR
``record_values``         the tuples that structs are in kernels
``conversions``           how the ``args`` of an `Extern` ask for arguments: `exact`, `by_reference`, `by_value`
``arguments``             binds the arguments of a call to parameters
``python_bodies``         Python functions that calls stand for
``numba_types``           the Numba types of objects and methods, and the typing of their calls
``attributes``            attributes of objects as constants in kernels
``constant_expressions``  the same for ``len(obj)``, ``obj[i]`` and comparisons; constants before types are inferred
``constants``             Python values as constants of a kernel
``lowering``              LLVM IR of the calls
========================  ============================================================================================
"""

from numba.cuda.core import config

if not config.ENABLE_CUDASIM:  # the simulator has no compiler to register with
    from ..frontends.numba_cuda import call_lowering  # noqa: F401
    from . import attributes, constant_expressions, object_type
