# SPDX-License-Identifier: BSD-2-Clause
"""The command line: ``python -m numba.cuda.autolink`` and the script ``numba-cuda-autolink``.

A command has ``add_to``, which adds it to a parser, and ``run``, which runs it and returns the exit code. Numba, which
may be missing or broken, is imported for ``run`` alone: help, the completion in shells and ``doctor`` need none.
"""
