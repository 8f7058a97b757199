# SPDX-License-Identifier: BSD-2-Clause
"""What a hook may return besides numba-cuda's own classes, and the protocols that describe hooks.

====================  ================================================================
``hooks``             the hooks that objects implement, as protocols for type checkers
``compiled_source``   CUDA C++ compiled for the current target, and C++ names in it
``prebuilt``          device code that a package ships: what fits the target
``device_variables``  variables of device code that the host sets
====================  ================================================================
"""
