# SPDX-License-Identifier: BSD-2-Clause
"""External code: what is linked into kernels, from the returned input to the cubin. No Numba types are known here.

===================  ====================================================================================
``target``           what code is compiled and linked for
``toolkit``          which CUDA libraries are in use, and what to do if one is missing
``progress``         what a slow build is doing, in a terminal
``timeline``         what a build did, how long each part took, and from which cache it came
``child_process``    runs a script in an isolated child process, which may crash
``signal_handlers``  what a program's signal handlers raise, and blocks that they may not interrupt
``fork_lock``        locks of modules, which are free in forked processes
``regular_file``     opens and reads regular files alone, without waiting for others
``given``            paths and lists that callers give to public functions
``safe_repr``        the repr of a user's object, which may raise
``inputs``           what an object may return, as records
``formats``          readers of ELF, fatbins, archives, LTO-IR, PTX
``headers``          which headers a source reads, and whether they changed
``cache``            what was built before, in memory and on disk
``compile``          CUDA C++ and bitcode become linkable code
``link``             linkable code and a kernel become a cubin
===================  ====================================================================================
"""
