# SPDX-License-Identifier: BSD-2-Clause
"""What an object may return, as records that are validated where they are made.

===================  ==================================================================
``link_input``       one piece of code to link, and how it is made from what users pass
``kinds``            the kinds of linkable code: suffixes, magic bytes, classes
``cuda_source``      CUDA C++ source with its own compile options
``c_prototypes``     the C types with which Python calls functions
===================  ==================================================================
"""
