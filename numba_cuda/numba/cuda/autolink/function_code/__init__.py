# SPDX-License-Identifier: BSD-2-Clause
"""What a compiled function links: call sites with their answers, symbols, canonical LLVM IR, the record.

=====================  ================================================================================
``function_code``      what a compiled function needs linked, on its way to the kernel; its plan and link
``calls``              what one function calls, where, and the symbols that calls reference
``call_graph``         the functions through which a kernel reaches its call sites
``canonical_ir``       function names that do not depend on what was compiled before
``launch_parameters``  the parameters of a kernel as plain data
``emulated_texts``     the PTX of a kernel with all that it links, for the emulator
``object_names``       short names of objects
``build_record``       the record of a build, which launches, reports, saved files and workers read
=====================  ================================================================================
"""
