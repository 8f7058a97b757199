# SPDX-License-Identifier: BSD-2-Clause
"""What this project adds to numba-cuda's compiler: passes, and a code library that links external code.

======================  ========================================================================================
``passes``              ask called objects once types are final; attach their code, and align arrays, while lowering
``code_library``        what a compiled function needs linked travels with it to the kernel, where it is linked
``passed_state``        the check that calls pass the arrays that Python functions in C++ expect
``symbol_sites``        the calls that reference symbols, and that they agree on prototypes
``linking_files``       what one function needs linked: paths and code named explicitly, and call sites
``declared_functions``  functions declared with ``cuda.declare_device``, which can be pickled
``typing_diagnosis``    why Numba cannot type a use of called objects, in place of its own message
``call_graph``          the functions through which a kernel reaches its call sites
``frozen_values``       the values that became constants of a function when it was compiled
``canonical_names``     function names that do not depend on what was compiled before
``cxx_compatibility``   LLVM modules that agree with those of NVRTC, such as in the size of pointers to shared memory
======================  ========================================================================================
"""
