# SPDX-License-Identifier: BSD-2-Clause
"""The keys under which a translation unit is cached: its program, the record of its headers, its checked functions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import cuda.core

from numba_cuda_autolink.package_versions import version_of

from ..cache.key import CacheKey
from ..headers.manifest import MANIFEST_FORMAT, HeaderManifest
from ..platform.cuda_libraries import nvrtc_build
from .translation_unit import TranslationUnit, working_directory

if TYPE_CHECKING:
    from ..inputs.c_prototypes import CalledFunction

# Goes up when the assertions of `prototype_assertions` change.
_CHECK = "6"


class UnitKeys:
    """The keys of *unit*.

    Attributes
    ----------
    headers:
        That of the record of its headers: all that its program depends on, without them.
    source:
        That of a note that there is a program of this source, with whatever headers, and wherever they are.
    """

    def __init__(self, unit: TranslationUnit):
        self._unit = unit
        self._has_lines = bool(unit.option("lineinfo") or unit.option("debug"))
        # NVRTC writes the working directory into LTO-IR, where only debuggers and profilers use it, to find sources.
        folder = (("working directory", working_directory()),) if self._has_lines else ()
        # Another version may find other headers.
        record = ("record of headers", f"{MANIFEST_FORMAT}, numba-cuda-autolink {version_of('numba-cuda-autolink')}")
        self.headers = CacheKey("headers", unit.name, (*self._parts(with_paths=True), *folder, record))
        self.source = CacheKey("source", unit.name, self._parts(with_paths=False))

    def program(self, manifest: HeaderManifest) -> CacheKey:
        """Return the key of the program with the headers of *manifest*."""
        headers = f"{len(manifest.headers)} files, sha256 {manifest.digest}"
        parts = self.headers.parts if manifest.has_path or self._has_lines else self._parts(with_paths=False)
        return CacheKey("program", self._unit.name, (*parts, ("headers", headers)))

    def _parts(self, *, with_paths: bool) -> tuple[tuple[str, str | bytes], ...]:
        """Return what NVRTC gets; without paths, only the name of the file: the rest is in the headers' digest."""
        unit = self._unit
        return (
            ("source", unit.code),
            ("name", unit.name if with_paths else os.path.basename(unit.name)),
            ("output", unit.output),
            *((f"option {name}", repr(value)) for name, value in unit.options if with_paths or name != "include_path"),
            ("NVRTC", nvrtc_build()),
            ("cuda.core", cuda.core.__version__),
        )


def checked_key(program: CacheKey, called: CalledFunction) -> CacheKey:
    """Return the key under which is noted that a function of *program*, if there, has the types of a call."""
    function = ("function", called.symbol), ("types", called.types)
    return CacheKey("prototype", f"{called.symbol} in {program.name}", (*_checked_program(program), *function))


def derived_key(program: CacheKey) -> CacheKey:
    """Return the key under which the functions of *program* are listed whose types of calls were derived from it."""
    return CacheKey("prototype", f"derived from {program.name}", _checked_program(program))


def _checked_program(program: CacheKey) -> tuple[tuple[str, str | bytes], ...]:
    return ("format", _CHECK), ("program", program.digest)
