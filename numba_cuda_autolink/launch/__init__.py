# SPDX-License-Identifier: BSD-2-Clause
"""Launch kernels that are ready: arguments, configuration, the driver.

=======================  =================================================================================
``kernel``               kernels that are ready to be launched, and their launches
``launch_config``        how a kernel is launched: grid, block, stream, shared memory and options, checked
``emulated_kernel``      kernels on the CPU, with the same launches
``loaded_kernel``        the code of a kernel in one context
``overload_resolution``  which signature of a kernel fits the arguments of a launch
``launch_codegen``       the generated function that packs the arguments of one launch and launches it
``argument_packing``     Python values as the bytes of a kernel's parameters
``arrays``               arrays of other libraries as views of device memory
``driver``               the CUDA driver: its errors, and the device of the current context
=======================  =================================================================================
"""
