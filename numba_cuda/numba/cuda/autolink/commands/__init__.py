# SPDX-License-Identifier: BSD-2-Clause
"""The command line: ``python -m numba.cuda.autolink`` and the script ``numba-cuda-autolink``.

======================  ==================================================================================
``main_command``        parses the command line and runs a command
``explain_command``     ``explain``: the report of a kernel or device function; the kernels of a file
``build_command``       ``build``: kernels ahead of time
``capture_command``     ``capture``: the kernels of an application
``prebuild_command``    ``prebuild``: building them on one machine or many
``cache_command``       ``cache``: what is cached on disk
``doctor_command``      ``doctor``: versions, libraries and known conflicts; needs nothing of Numba
``completion_command``  ``completion``: what shells need to complete commands
``argument_parsing``    signatures and compute capabilities on the command line
``kernel_loading``      FILE.py:KERNEL: importing a file, where there is no GPU too, and the kernels in it
``output``              where a command writes its result: a file, or standard output
======================  ==================================================================================

A command has ``add_to``, which adds it to a parser, and ``run``, which runs it and returns the exit code.
"""
