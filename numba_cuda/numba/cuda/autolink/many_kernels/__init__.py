# SPDX-License-Identifier: BSD-2-Clause
"""Many kernels, built by many processes: programs that kernels have in common are compiled once.

Front ends compile all kernels. What each of them needs is collected, and each program is compiled once. Then all
kernels are linked. So no worker waits for another one.

================  ==================================================================================
``jobs``          what to build, and the error that lists what could not be built
``job_list``      lists of jobs in JSON files
``capture``       noting the kernels that an application compiles
``pickling``      jobs, results and errors that travel between the parent and its workers
``executors``     the default executor, one for Ray, and calling a function for many arguments in any
``worker_tasks``  what workers do
``stages``        `build_many`: which tasks there are, and the progress
================  ==================================================================================
"""
