# SPDX-License-Identifier: BSD-2-Clause
"""Many kernels, built by many processes: what kernels have in common is built once.

A worker attempts a job and stops at a program or an answer that is in no cache. The parent then assigns it to the
first job that needs it, and lets the others wait. So no worker ever waits, and nobody has to know beforehand what a job
needs.

====================  =================================================================================
``jobs``              what to build, and the error that lists what could not be built
``attempts``          attempts at jobs, in a worker
``chunks``            how many jobs a worker gets at once
``assignment``        which job builds what several need, and which wait for it
``entries``           cache entries that travel between processes that share no cache directory
``pickling``          jobs, results and errors that travel between the parent and its workers
``building``          `build_many`: the loop over all attempts
``workers``           the executor that attempts them
``job_list``          lists of jobs in JSON files
``capture``           noting the kernels that an application compiles
``worker_processes``  the default executor
``ray_executor``      an executor for Ray
``progress_bar``      how many jobs are done, in a terminal
====================  =================================================================================
"""
