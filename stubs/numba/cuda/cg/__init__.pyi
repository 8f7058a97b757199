# SPDX-License-Identifier: BSD-2-Clause
# Kernels call these.
from typing import Any as _Any

class GridGroup:
    """All threads of a cooperative launch."""

    def sync(self) -> int:
        """Wait for all threads of the grid, and see what they wrote to memory."""

def this_grid() -> GridGroup:
    """Return the group of all threads of the grid."""

def __getattr__(name: str) -> _Any: ...
