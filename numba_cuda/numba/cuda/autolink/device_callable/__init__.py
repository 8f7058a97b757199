# SPDX-License-Identifier: BSD-2-Clause
"""The base class of called objects, on the public protocol alone, as a third party's would be.

==================  ==================================================================================
``objects``         `DeviceCallable` and `device_method`
``extern``          `Extern`: which C function a call means
``c_abi``           C types and layouts of Numba types; `cxx_type`
``arguments``       how each argument of a call is passed to the C function
``numba_types``     the Numba types of objects and methods, and the typing of their calls
``attributes``      attributes of objects as constants in kernels
``constants``       which Python values are constants
``lowering``        the call in LLVM
``registration``    registers the last four with the compiler
``simulation``      objects in Numba's simulator
==================  ==================================================================================
"""

from numba.cuda.core import config

if not config.ENABLE_CUDASIM:  # the simulator has no compiler to register with
    from . import registration  # noqa: F401
