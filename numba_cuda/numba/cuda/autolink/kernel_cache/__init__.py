# SPDX-License-Identifier: BSD-2-Clause
"""``@cuda.jit(cache=True)`` for kernels with external code.

====================  ================================================================================
``dispatcher_cache``  looks for a kernel before it is compiled, and saves it afterwards
``kernel_values``     the walk over all that a kernel is compiled from
``registered``        what users registered with Numba, which a kernel may use without naming it
``stored_kernel``     a compiled kernel as bytes, with references to the objects that it calls
====================  ================================================================================
"""
