# SPDX-License-Identifier: BSD-2-Clause
"""Compile, once, what is not linked as it is: CUDA C++ with NVRTC, LLVM bitcode with NVVM.

========================  ============================================================================
``translation_unit``      everything that determines what NVRTC compiles a source to
``nvrtc``                 what NVRTC made of a source, or why it made nothing
``nvrtc_child``           call NVRTC, and precompile headers: the script of a child process
``nvrtc_processes``       compile translation units in child processes, within limits
``precompiled_headers``   which sources begin alike, and whether their headers are as they were
``prototype_assertions``  assertions in a translation unit that its functions have these types
``struct_assertions``     that the numbers in structs are where tuples and records have them
``program_cache``         a translation unit in the cache: its program, and what is checked of it
``unit_headers``          the headers that it reads: on record, or found
``scan_reuse``            what was found for another source that includes the same
``programs``              the cache of programs: compile an input of either kind
``bitcode``               compile LLVM bitcode, and cache it
``bitcode_child``         the child process that reads and compiles bitcode
``debug_sources``         files of generated sources, for debuggers and profilers
``nvrtc_log``             the errors in NVRTC's log, what to do about them, and a file with the source
``plan_programs``         the compile stage of a link: its programs, and the keys that stand for them
========================  ============================================================================
"""
