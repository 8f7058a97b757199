# SPDX-License-Identifier: BSD-2-Clause
"""The base class of objects that kernels call. It uses the public protocol alone, as a third party would.

========================  ==========================================================================================
``base_class``            `DeviceCallable` and `device_method`; both in the simulator
``arguments``             binds the arguments of a call to parameters
``python_bodies``         Python functions that calls stand for
``object_type``           the Numba types of objects and methods, and the typing of their calls
``constant_expressions``  attributes, ``len(obj)``, ``obj[i]`` and comparisons as constants of a kernel
``constants``             Python values as constants of a kernel
========================  ==========================================================================================
"""

from numba.cuda.core import config

if not config.ENABLE_CUDASIM:  # the simulator has no compiler to register with
    from . import constant_expressions, object_type  # noqa: F401
