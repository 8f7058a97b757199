# SPDX-License-Identifier: BSD-2-Clause
"""C++ by name: kernels call functions of C++ libraries without declarations, bindings or result types.

The compiler resolves each call. The unit that is compiled contains an ``extern "C"`` function for each call, which
passes the arguments on as C++ variables; and a declaration whose lowered name spells the type of the result.
"""

# Lets type inference rewrite calls that write to arguments.
from . import call_rewrites as call_rewrites
