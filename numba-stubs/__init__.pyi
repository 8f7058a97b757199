# SPDX-License-Identifier: BSD-2-Clause
# Parts of numba.types and of numba.cuda have types here. All other names exist, of unknown types.
from typing import Any as _Any

from .types import *  # noqa: F403

def __getattr__(name: str) -> _Any: ...
