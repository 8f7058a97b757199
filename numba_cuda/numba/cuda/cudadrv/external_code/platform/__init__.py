# SPDX-License-Identifier: BSD-2-Clause
"""The machine: the target of a compilation, the CUDA libraries in use, child processes."""
