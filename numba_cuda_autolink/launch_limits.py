# SPDX-License-Identifier: BSD-2-Clause
"""The largest launches of every GPU: blocks of a grid, and threads of a block, in x, y and z."""

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
MOST_THREADS = (1024, 1024, 64)  # of which a block has 1024 in all
