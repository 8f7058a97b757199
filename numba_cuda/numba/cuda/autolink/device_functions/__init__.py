# SPDX-License-Identifier: BSD-2-Clause
"""Python functions that C++ calls.

A function is compiled as every device function is. A C function around it, made here in LLVM IR, takes and returns what
C++ does. Both become one piece of code, whose symbols are named by their content, and which is linked as the code of
the object that returns it.
"""
