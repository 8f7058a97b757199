# SPDX-License-Identifier: BSD-2-Clause
"""Build kernels, and hand out what was built: results, reports, kernels that can be launched.

==================  ===============================================================
``result``          what `build` returns: the record of a build, with its report
``ahead_of_time``   build a finished kernel, with or without a GPU
``kernel_report``   the report of a kernel, for one or several architectures
``bound_kernels``   kernels of this process with the launch of finished kernels
==================  ===============================================================
"""
