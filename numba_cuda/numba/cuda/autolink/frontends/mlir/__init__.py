# SPDX-License-Identifier: BSD-2-Clause
"""numba-cuda-mlir, the second front end. Importing a module here imports it.

====================  ==================================================================================================
``activation``        every seam with numba-cuda-mlir
``type_translation``  its Numba types as numba-cuda's, and back
``called_objects``    the types of device callables and of their attributes
``call_lowering``     MLIR of the calls
``local_arrays``      local and shared arrays of records, such as objects of C++
``memory_values``     values in memory, views of arrays and state, of which calls pass the address
``external_calls``    C++ functions that take structs by address and short numbers as ``int``, for functions that do not
``linker``            the linker that the front end is given, which links by this project's own path
``emulated_driver``   the seams with numba-cuda-mlir while it runs on the emulated driver
``front_end``         kernels that are built without a GPU, and reports
====================  ==================================================================================================
"""
