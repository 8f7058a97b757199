# SPDX-License-Identifier: BSD-2-Clause
"""What a front end provides, and what this project provides to front ends.

=====================  ===========================================================================
``front_end``          the front ends: their types and IR, and what each provides to build kernels
``contract``           what a front end must provide, and what its seams must keep true
``seams``              attributes of a front end that are replaced, all or none, and restored
``typing_rounds``      calls that type inference puts off, to be resolved together
``type_inference``     type inference, which runs again where C++ writes to arguments
``emulated_launches``  errors of kernels in the emulator, in place of the driver's codes
=====================  ===========================================================================
"""
