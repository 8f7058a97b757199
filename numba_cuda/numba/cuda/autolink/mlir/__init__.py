# SPDX-License-Identifier: BSD-2-Clause
"""What numba-cuda-mlir, the second front end, needs besides its seams. Importing a module here imports that front end.

===================  ===============================================================================================
``words``            its vocabulary
``type_map``         its Numba types as numba-cuda's, and back
``object_types``     the types of device callables and of their attributes
``constants``        expressions of device callables that are constants
``python_bodies``    Python functions that calls stand for
``lowering``         MLIR of the calls
``record_arrays``    local and shared arrays of records, such as objects of C++
``memory``           values in memory, views of arrays and state, of which calls pass the address
``by_address``       C++ functions that take structs by address and short numbers as ``int``, for functions that do not
``external_code``    what a compiled function needs linked travels with it to the kernel
``kernel_module``    what is changed in the MLIR of a kernel: the alignment of arrays, and names
``linking``          the linker that the front end is given, which links by this project's own path
``loaded_modules``   modules as callbacks are given them
``builds``           kernels that are built without a GPU, and reports
``bound_kernels``    kernels of this process with the launch of finished kernels
===================  ===============================================================================================
"""
