# SPDX-License-Identifier: BSD-2-Clause
"""The base class of objects that kernels call. It uses the public protocol alone, as a third party would.

==================  ==================================================================================
``objects``         `DeviceCallable` and `device_method`; both in the simulator
``extern``          `Extern`: the C function that a call stands for
``symbol_names``    `symbol`: C identifiers by content
``c_abi``           C types and layouts of Numba types; `cxx_type`
``arguments``       binds the arguments of a call to parameters
``numba_types``     the Numba types of objects and methods, and the typing of their calls
``attributes``      attributes of objects as constants in kernels
``constants``       Python values as constants of a kernel
``lowering``        LLVM IR of the calls
==================  ==================================================================================
"""

from numba.cuda.core import config

if not config.ENABLE_CUDASIM:  # the simulator has no compiler to register with
    from . import attributes, lowering, numba_types  # noqa: F401
