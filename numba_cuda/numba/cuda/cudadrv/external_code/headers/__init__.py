# SPDX-License-Identifier: BSD-2-Clause
"""Which headers a CUDA C++ source reads, and whether they have changed."""
