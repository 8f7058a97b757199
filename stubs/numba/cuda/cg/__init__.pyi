# SPDX-License-Identifier: BSD-2-Clause
# Kernels call these.
class GridGroup:
    """All threads of a cooperative launch."""

    def sync(self) -> int:
        """Wait for all threads of the grid, and see what they wrote to memory."""

def this_grid() -> GridGroup:
    """Return the group of all threads of the grid."""
