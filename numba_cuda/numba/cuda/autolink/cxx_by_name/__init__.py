# SPDX-License-Identifier: BSD-2-Clause
"""C++ by name: kernels call functions of C++ libraries without declarations, bindings or result types.

The compiler resolves each call. The unit that is compiled contains an ``extern "C"`` function for each call, which
passes the arguments on as C++ variables; and a declaration whose lowered name spells the type of the result.

=====================  =================================================================================================
``library``            `cxx`: a library, and what can be asked of it
``functions``          functions as device callables
``calls``              calls, as records
``call_text``          the C++ text of one call
``parameters``         arguments of a call as C++ sees them
``placeholders``       what stands for arguments, and for the subject of a question, in C++ text
``prelude``            the C++ text before all calls: traits, and values as C passes them
``results``            Numba types from the lowered names that describe C++ types
``externs``            the C function of a call
``written_arguments``  variables and elements of arrays that C++ writes to
``resolving``          resolves calls: several by one run of NVRTC, remembered in the cache of programs
``refusals``           why C++ refuses a call
``kernels``            kernels of C++, which NVRTC lets device code call as functions
``constants``          constant expressions
``classes``            types, kept in memory of kernels
``records``            structs as NumPy dtypes
``structs``            structs that have Numba types, and assertions of their layouts
``questions``          questions about constants, types and structs
``targets``            the target outside of a kernel's compilation
=====================  =================================================================================================
"""
