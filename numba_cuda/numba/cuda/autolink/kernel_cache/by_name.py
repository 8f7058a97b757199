# SPDX-License-Identifier: BSD-2-Clause
"""Functions that run while a kernel is compiled, and look something of the program up by a name made at run time."""

from __future__ import annotations

import types as pytypes
from collections.abc import Sequence
from typing import Any

from ..protocol.loaded_modules import origin_of
from ..protocol.value_digest import codes, walk

_ANYWHERE = frozenset(
    ("__import__", "compile", "eval", "exec", "globals", "import_module", "locals", "modules", "__dict__")
)
_OF_MODULES = frozenset(("attrgetter", "dir", "getattr", "methodcaller", "vars"))


def looked_up(users: Sequence[Any]) -> str | None:
    """Return why what *users* registered may find what no name in its code tells; ``None`` if it does not."""
    if not users:
        return None
    things = walk(users).things
    modules = any(isinstance(each, pytypes.ModuleType) and origin_of(each.__name__) is None for each in things)
    refused = _ANYWHERE | _OF_MODULES if modules else _ANYWHERE
    for function in (thing for thing in things if isinstance(thing, pytypes.FunctionType)):
        used = {name for code in codes(function.__code__) for name in code.co_names}
        if origin_of(function.__globals__.get("__name__")) is None and (found := sorted(refused & used)):
            return f"{function.__qualname__} looks something up with {found[0]} while a kernel is compiled"
    return None
