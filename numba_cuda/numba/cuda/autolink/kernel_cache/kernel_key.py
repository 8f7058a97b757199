# SPDX-License-Identifier: BSD-2-Clause
"""The cache key of a kernel: its function, its options, the tools that compile it, and everything that it reaches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from numba.cuda.cudadrv.external_code.cache.entry import StoredEntry
from numba.cuda.cudadrv.external_code.cache.key import CacheKey

from ..compilation.context import tool_versions
from ..python_code import file_digest
from ..value_fingerprint import fingerprint

# Increased when what is pickled or recorded of a kernel changes.
_SCHEMA = 6
_FUNCTION = "the function"


class KernelFunction:
    """A kernel's Python function, as its cache key describes it. *numba_place* and *numba_stamp*, by which numba-cuda's
    own cache tells it from other functions and from earlier versions of itself, count where its source is not in a file
    of its own, as in a notebook or a zip file."""

    def __init__(self, py_func: Any, numba_place: str, numba_stamp: Any):
        code = py_func.__code__
        self.name = py_func.__qualname__
        self._path = code.co_filename  # which is in debug and line information
        self._place, self._source = numba_place, repr(numba_stamp)
        if (digest := file_digest(code.co_filename)) is not None:
            self._path = os.path.abspath(code.co_filename)
            # The same for every version of its source.
            self._place = f"{self.name} at {os.path.basename(self._path)}:{code.co_firstlineno}"
            self._source = digest

    def key(self, signature: Any, target: Any, options: Mapping[str, Any], others: Mapping[str, str]) -> CacheKey:
        """Return the key of the kernel that is compiled from it for *signature* and *target*, numba-cuda's pair of
        toolkit version and compute capability; *others* are further parts."""
        parts = {
            _FUNCTION: self._place,
            "the file's content": self._source,
            "argument types": str(signature),
            "toolkit and compute capability": repr(target),
            "schema": str(_SCHEMA),
            **{f"version of {name}": version for name, version in tool_versions().items()},
            **{f"option {name}": _shown(option) for name, option in options.items()},
        }
        if options.get("debug") or options.get("lineinfo"):
            parts["the file's path"] = self._path
        for label, value in others.items():
            while label in parts:  # they begin with the function's name, which may be anything
                label += "'"
            parts[label] = value
        return CacheKey("kernel", self.name, tuple(parts.items()))

    def owns(self, entry: StoredEntry) -> bool:
        """Return whether *entry* is a kernel of this function, whatever its options and the version of its source."""
        shown = dict(CacheKey("kernel", self.name, ((_FUNCTION, self._place),)).table)
        return entry.kind == "kernel" and (_FUNCTION, shown[_FUNCTION]) in entry.parts


def _shown(option: Any) -> str:
    return repr(option) if option is None or type(option) in (bool, int, str) else fingerprint(option).hex()
