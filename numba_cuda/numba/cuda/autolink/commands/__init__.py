# SPDX-License-Identifier: BSD-2-Clause
"""The command line: ``python -m numba.cuda.autolink`` and the script ``numba-cuda-autolink``.

====================  ===================================================================================
``command_line``      parses the command line and runs a command
``explain_command``   ``explain``: the report of a kernel
``build_command``     ``build``: kernels ahead of time
``cache_command``     ``cache``: what is cached on disk
``doctor_command``    ``doctor``: versions, libraries and known conflicts; needs nothing of Numba
``kernel_arguments``  FILE.py:KERNEL, signatures and compute capabilities on the command line
====================  ===================================================================================
"""
