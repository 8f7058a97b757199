# SPDX-License-Identifier: BSD-2-Clause
"""Loaded modules as callbacks are given them.

What numba-cuda-mlir gives to callbacks cannot be referred to weakly. They are given one object for each module instead,
which lives as long as the module is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class LoadedModule:
    """A module that is loaded, or was: ``handle`` is its ``CUlibrary``."""

    def __init__(self, handle: Any):
        self.handle = handle
        self.is_unloaded = False


# By handle, which another module may get after a module is unloaded.
_modules: dict[int, LoadedModule] = {}


# Callbacks are equal if they call the same: numba-cuda-mlir collects those of all kernels of a function, each once.


@dataclass(frozen=True)
class SetUp:
    """Calls *callback* with a module that was loaded."""

    callback: Callable[[Any], Any]

    def __call__(self, given: Any) -> None:
        found = _modules.get(int(given.handle))
        if found is None or found.is_unloaded:
            found = _modules[int(given.handle)] = LoadedModule(given.handle)
        self.callback(found)


@dataclass(frozen=True)
class TearDown:
    """Calls *callback* with a module before it is unloaded."""

    callback: Callable[[Any], Any]

    def __call__(self, given: Any) -> None:
        found = _modules.setdefault(int(given.handle), LoadedModule(given.handle))
        found.is_unloaded = True
        self.callback(found)
