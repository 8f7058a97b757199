# SPDX-License-Identifier: BSD-2-Clause
# Only numba.cuda.autolink has types here. All other names exist, of unknown types.
from typing import Any as _Any

def __getattr__(name: str) -> _Any: ...
