# SPDX-License-Identifier: BSD-2-Clause
"""Many kernels, built by many processes: programs that kernels have in common are compiled once.

Front ends compile all kernels. What each of them needs is collected, and each program is compiled once. Then all
kernels are linked. So no worker waits for another one.
"""
