# SPDX-License-Identifier: BSD-2-Clause
"""What is linked into a kernel, before anything is compiled.

===================  =============================================================================
``link_plan``        the inputs of a link, in order; sources that share a unit
``kernel_code``      the kernel's own code, and the undefined symbols with the calls that use them
``target_fit``       whether an input fits the target
``variable_checks``  variables that the host sets: their names, and how C++ declares them
``errors``           the error of a link
===================  =============================================================================
"""
