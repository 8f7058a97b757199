# SPDX-License-Identifier: BSD-2-Clause
"""Readers of the formats of linkable code: one per format, bounds-checked, in time linear in the size of the code.

=====================  ===============================================================================
``bounds``             checked slices of untrusted bytes, and the error of every reader
``elf``                ELF files: header, sections, symbols
``cubin``              the tables of cubins: whether they fit together, prototypes, what a kernel uses
``kernel_parameters``  the offsets and sizes of a kernel's parameters
``containers``         fatbins, static libraries, objects: the pieces of device code that they hold
``lto_ir``             LTO-IR: its header
``symbols``            the symbols that code defines and references, of every readable kind
``mangled_names``      mangled C++ names
``validation``         what is truncated, damaged or of another kind
=====================  ===============================================================================
"""
