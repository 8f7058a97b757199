# SPDX-License-Identifier: BSD-2-Clause
"""Readers of the formats of linkable code: one per format, bounds-checked, in time linear in the size of the code.

=====================  ===============================================================================
``bounds``             checked slices of untrusted bytes, and the error of every reader
``elf``                ELF files: header, sections, symbols
``fatbin``             fatbins: their entries
``archive``            static libraries: their members
``lto_ir``             LTO-IR: its header
``ptx``                PTX: its header, functions with their prototypes, and variables
``llvm_ir``            LLVM IR as text: the functions that neither it nor the system defines
``pieces``             the pieces of device code that a fatbin, an object or an archive holds
``symbols``            the symbols that code defines and references, of every readable kind
``cxx_names``          mangled C++ names
``cubin_tables``       whether the tables of a cubin refer to what exists
``kernel_parameters``  the offsets and sizes of a kernel's parameters
``cubin_resources``    registers, memory and spills of a linked kernel
``structure``          what is truncated, damaged or of another kind
=====================  ===============================================================================
"""
