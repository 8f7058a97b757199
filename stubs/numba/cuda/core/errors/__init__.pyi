# SPDX-License-Identifier: BSD-2-Clause
# The classes of numba-cuda are named as those of Numba, which have types.
from typing import Any as _Any

from numba.core.errors import *  # noqa: F403

def __getattr__(name: str) -> _Any: ...
