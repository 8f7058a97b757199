# SPDX-License-Identifier: BSD-2-Clause
"""``@cuda.jit(cache=True)`` for kernels with external code.

====================  ================================================================================
``dispatcher_cache``  looks for a kernel before it is compiled, and saves it afterwards
``kernel_key``        the key of a kernel in the cache
``reachable``         the objects and values that a kernel reaches by name
``bodies``            functions that are compiled into a kernel, and are not reached by name
``registered``        what is registered with Numba, which a kernel may use without naming it
``lookups``           whether a function looks up what no name in its code tells
``references``        finds the same objects again in another process
``stored_kernel``     a kernel as bytes, and whether all that it was made of is unchanged
``library``           code libraries that are pickled with what they link
====================  ================================================================================
"""
