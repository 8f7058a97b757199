# SPDX-License-Identifier: BSD-2-Clause
"""Structs and classes of C++ in the simulator, which has no compiler to ask about them."""

from __future__ import annotations

from typing import Any

from .cxx_errors import CxxError
from .library_source import LibrarySource


def unknown_in_simulator(source: LibrarySource, label: str) -> CxxError:
    """Return the error for a use of what only the compiler knows."""
    return CxxError(
        f"{label}: only the compiler knows it, which the simulator cannot ask\n  library: {source!r}\n"
        "  what to do: in the simulator, use a number in its place, or a dtype: lib.record(name, dtype)"
    )


class UnknownClass:
    """A struct or class in the simulator: modules that ask for one can be imported, and what uses it is an error."""

    def __init__(self, source: LibrarySource, name: str):
        self._source = source
        self._name = name

    def __repr__(self) -> str:
        return f"{self._source!r}[{self._name!r}]"

    def __getattr__(self, name: str) -> Any:  # as NumPy asks for the dtype
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise unknown_in_simulator(self._source, self._name)
