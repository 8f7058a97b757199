# SPDX-License-Identifier: BSD-2-Clause
"""The command line: ``python -m numba.cuda.autolink`` and the script ``numba-cuda-autolink``.

====================  ===================================================================================
``main_command``      parses the command line and runs a command
``explain_command``   ``explain``: the report of a kernel
``build_command``     ``build``: kernels ahead of time
``capture_command``   ``capture``: the kernels of an application
``prebuild_command``  ``prebuild``: building them on one machine or many
``cache_command``     ``cache``: what is cached on disk
``doctor_command``    ``doctor``: versions, libraries and known conflicts; needs nothing of Numba
``argument_parsing``  FILE.py:KERNEL, signatures and compute capabilities on the command line
====================  ===================================================================================
"""
