# SPDX-License-Identifier: BSD-2-Clause
"""External code: what is linked into kernels, from the returned input to the cubin. No Numba types are known here.

===============  ==============================================================
``inputs``       what an object may return, as records
``formats``      readers of ELF, fatbins, archives, LTO-IR
``headers``      which headers a source reads, and whether they changed
``cache``        what was built before, in memory and on disk
``compile``      CUDA C++ and bitcode become linkable code
``link``         linkable code and a kernel become a cubin
``diagnostics``  what users see: progress, timelines, texts of objects, the log
``platform``     the target, the CUDA libraries in use, child processes
``plan``         what is linked into a kernel, before anything is compiled
``explain``      which input is at fault when a build fails, and what to do
``pipeline``     runs a plan: the cache, or compile and link
===============  ==============================================================
"""
