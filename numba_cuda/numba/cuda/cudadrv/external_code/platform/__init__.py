# SPDX-License-Identifier: BSD-2-Clause
"""The machine: the target of a compilation, the CUDA libraries in use, child processes.

==================  =================================================================
``target``          what code is compiled and linked for
``cuda_libraries``  which CUDA libraries are in use, and what to do if one is missing
``child_process``   runs a script in an isolated child process, which may crash
``child_pool``      the children of one kind: one that is kept, and more while they are needed
``child_main``      what runs in a child process, and the messages
==================  =================================================================
"""
