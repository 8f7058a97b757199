# SPDX-License-Identifier: BSD-2-Clause
"""What a front end provides, and what this project provides to front ends.

A front end is a compiler of Python functions to kernels. This project attaches to it in its module ``activation``,
which holds all seams (``SEAMS``, ``activate``, ``deactivate``, ``active``), and builds its kernels through a
`front_end.FrontEnd`. The tests in ``frontends/test_conformance.py`` run against each.

The seams keep these invariants:

1. *One target.* The outermost compilation sets the target (`compilation.compiling`); nested ones, of device functions,
   do not change it. All code of a kernel is made for it.
2. *Final types.* An object is asked after type inference, with the types of the call's arguments as the front end has
   them, in the order of the callee's parameters, defaults included. What it refuses is an error at the call's line.
3. *Every call.* Each call that typing resolves is looked up by `protocol.call_sites.CallSites`, in the front end's
   vocabulary. What a function needs travels with what it was compiled to, so that a kernel that reuses a compiled
   device function links it too.
4. *One path.* What is linked is a `LinkPlan` with a `KernelCode`, run by ``external_code.pipeline``: in order of first
   use, equal code once, with its checks, messages and caches. Nothing else compiles CUDA C++ or links.
5. *No stale kernel.* A finished kernel with external code is not stored under a key that does not know that code.
6. *No GPU.* Within `compilation.without_device` nothing asks for a driver, and what is compiled there is kept apart.
7. *Nothing else changes.* Kernels without external code are compiled, linked, cached and launched as without this
   project. Without a seam nothing is replaced; `deactivate` restores all.
"""
