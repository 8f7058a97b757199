# SPDX-License-Identifier: BSD-2-Clause
# Numba's own package has another module of this name, which type checkers would find.
from typing import Any as _Any

from numba.types import *  # noqa: F403

def __getattr__(name: str) -> _Any: ...
