# SPDX-License-Identifier: BSD-2-Clause
"""Seams: attributes of a front end that are replaced by functions of ours, all of them or none, and restored."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from numba_cuda_autolink.short_tracebacks import shorten_traceback


class MissingSeamError(ImportError):
    """The installed front end lacks an attribute that this project replaces or uses."""

    __module__ = "numba.cuda.autolink"  # as tracebacks show it


class Seams:
    """The seams with one front end: what is called in place of an attribute ``module:Class.attribute``, with the
    original as first argument. *front_end* is the name of its distribution."""

    def __init__(self, front_end: str):
        self.front_end = front_end
        self.functions: dict[str, Callable[..., Any]] = {}
        # What undoes the replacements, in the order in which they were made.
        self._undo: list[Callable[[], None]] = []

    def in_place_of(self, path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate the function that is called in place of *path*."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.functions[path] = function
            return function

        return register

    @property
    def active(self) -> bool:
        return bool(self._undo)

    def replace(self, also_needed: Iterable[str]) -> None:
        """Replace all attributes, if these and the ones *also_needed* exist; else raise `MissingSeamError`."""
        for path in also_needed:
            self.locate(path)
        for (owner, name), function in [(self.locate(path), each) for path, each in self.functions.items()]:
            self.set(owner, name, _replacement(getattr(owner, name), function))

    def set(self, owner: Any, name: str, value: Any) -> None:
        own = vars(owner)
        self._undo.append(partial(setattr, owner, name, own[name]) if name in own else partial(delattr, owner, name))
        setattr(owner, name, value)

    def restore(self) -> None:
        while self._undo:
            self._undo.pop()()

    def locate(self, path: str) -> tuple[Any, str]:
        """Return the owner of ``module:Class.attribute``, and the attribute's name, or raise `MissingSeamError`."""
        module, _, attribute = path.partition(":")
        *parents, name = attribute.split(".")
        try:
            owner = functools.reduce(getattr, parents, importlib.import_module(module))
            getattr(owner, name)
        except (ImportError, AttributeError) as error:
            from numba_cuda_autolink.package_versions import NOT_INSTALLED, version_of

            version = version_of(self.front_end)  # it may be on the path without its metadata
            installed = self.front_end if version == NOT_INSTALLED else f"{self.front_end} {version}"
            raise MissingSeamError(
                f"numba-cuda-autolink cannot attach to {installed}: it has no {path}\n"
                f"  result: called objects are not asked for their code; everything else in {self.front_end} works as"
                " before\n"
                f"  what to do: install a {self.front_end} version that this numba-cuda-autolink supports, or set"
                " NUMBA_CUDA_AUTOLINK=0"
            ) from error
        return owner, name


def _replacement(original: Any, function: Callable[..., Any]) -> Any:
    if isinstance(original, type):
        return staticmethod(partial(function, original))

    @functools.wraps(original)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(original, *args, **kwargs)
        except Exception as error:
            shorten_traceback(error)
            raise

    return replaced
