# SPDX-License-Identifier: BSD-2-Clause
"""The C ABI: how C sees the values of kernels, and the C functions that calls stand for.

=================  ======================================================================================
``c_types``        C types and layouts of Numba types; `cxx_type`
``structs``        records and tuples by value
``conversions``    how the ``args`` of an `Extern` ask for arguments: `exact`, `by_reference`, `by_value`
``extern``         `Extern`: the C function that a call stands for
``llvm_values``    the LLVM types of C's values, and the values in them
``record_values``  the tuples that structs are in kernels
``symbol_names``   `symbol`: C identifiers by content
=================  ======================================================================================
"""
