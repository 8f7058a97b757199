# SPDX-License-Identifier: BSD-2-Clause
"""C++ by name: kernels call functions of C++ libraries without declarations, bindings or result types.

The compiler resolves each call. The unit that is compiled contains an ``extern "C"`` function for each call, which
passes the arguments on as C++ variables; and a declaration whose lowered name spells the type of the result.

=====================  =================================================================================================
``library``            `cxx`: a library, and what can be asked of it
``functions``          functions as device callables
``classes``            types, kept in memory of kernels
``records``            structs as NumPy dtypes
``questions``          asks C++ about types and constants, outside of a kernel's compilation
``library_source``     the source of a library, with its options, structs and objects
``declared_names``     the names that a library declares, for completion
``resolving``          resolves calls: those of a kernel by one run of NVRTC, remembered in the cache of programs
``guesses``            guesses what calls return, to find the calls that follow
``results``            the C function of a call, from the lowered name that describes its C++ types
``call_text``          the C++ text of one call
``calls``              calls, as records: patterns, and arguments as C++ sees them
``python_arguments``   Python functions that C++ calls with types of its choice
``refusals``           why C++ refuses a call
``prelude``            the C++ text after each library's source: traits, and values as C passes them (``prelude.cuh``)
``structs``            structs that have Numba types, and assertions of their layouts
``named_results``      functions that return structs with the names of the members
``call_rewrites``      calls in IR that get names of members, device functions, or what C++ writes to ``T&``
=====================  =================================================================================================
"""

# Lets type inference rewrite calls that write to arguments.
from . import call_rewrites as call_rewrites
