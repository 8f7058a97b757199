# SPDX-License-Identifier: BSD-2-Clause
"""numba-cuda, the first front end.

======================  =======================================================================================
``activation``          every seam with numba-cuda
``front_end``           how kernels are built, reported and bound
``compiler_passes``     ask called objects once types are final; attach their code while lowering
``call_lowering``       LLVM IR of the calls of device callables
``code_library``        what a compiled function needs linked travels with it to the kernel, where it is linked
``declared_functions``  functions declared with ``cuda.declare_device``, which can be pickled
``emulated_driver``     the seams with numba-cuda while it runs on the emulated driver
``emulation``           the context manager of programs without a GPU
``fork_support``        an error where a forked process could only wait for a lock of its parent
======================  =======================================================================================
"""
