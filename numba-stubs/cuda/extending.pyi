# SPDX-License-Identifier: BSD-2-Clause
# Numba's own package has another module of this name, which type checkers would find.
from typing import Any as _Any

def __getattr__(name: str) -> _Any: ...
