# SPDX-License-Identifier: BSD-2-Clause
"""The base class of objects that kernels call. It uses the public protocol alone, as a third party would."""

from numba.cuda.core import config

if not config.ENABLE_CUDASIM:  # the simulator has no compiler to register with
    from . import constant_expressions, object_type  # noqa: F401
