# SPDX-License-Identifier: BSD-2-Clause
"""Files of finished kernels, and the kernels and variables in them.

================  ===========================================================================
``library``       the kernels of a file, loaded when they are first launched
``kernel_file``   the files of finished kernels: writing and reading
``variables``     variables of device code that the host sets, in the modules that are loaded
``architecture``  which code runs on which GPU
================  ===========================================================================
"""
