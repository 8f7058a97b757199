# SPDX-License-Identifier: BSD-2-Clause
"""Python code: which names and environment variables it uses, and what identifies a module's code besides its
content."""

from __future__ import annotations

import contextlib
import dis
import functools
import hashlib
import importlib.metadata
import os
import re
import sys
import sysconfig
import types as pytypes
from collections.abc import Iterator
from typing import Any

from numba_cuda_autolink.files import read_regular_file

_LOAD_GLOBAL, _IMPORT_NAME = dis.opmap["LOAD_GLOBAL"], dis.opmap["IMPORT_NAME"]
# Since Python 3.11 the lowest bit of LOAD_GLOBAL's argument says whether the global is about to be called.
_NAME_SHIFT = 1 if sys.version_info >= (3, 11) else 0
_FOLDERS = sysconfig.get_paths()
_ENVIRONMENT = frozenset(("environ", "environb", "getenv", "getenvb"))


def origin_of(module: Any) -> Any:
    """Return what identifies the code of *module* (its name) besides the versions in each key; None: its content.

    Python, Numba and NumPy are identified by their versions, another installed package by its own and by the digest of
    the module's file.
    """
    if not isinstance(module, str) or module.startswith("numba.cuda.tests") or module == "__main__":
        return None
    return "versioned" if is_versioned(module) else _installed(module)


@functools.lru_cache(maxsize=512)
def is_versioned(module: str) -> bool:
    """Return whether the *module* of this name is part of Python, Numba or NumPy: their versions identify it."""
    package = module.partition(".")[0]
    if package in ("numba", "numpy"):
        return not module.startswith("numba.cuda.tests")
    if package not in sys.stdlib_module_names:
        return False
    # A user's own module may have the name of one of Python's.
    file = getattr(sys.modules.get(package), "__file__", None)
    folders = tuple(os.path.realpath(_FOLDERS[name]) + os.sep for name in ("stdlib", "platstdlib"))
    return file is None or os.path.realpath(file).startswith(folders)


@functools.lru_cache(maxsize=512)
def _installed(module: str) -> Any:
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not file.startswith(tuple(_FOLDERS[name] + os.sep for name in ("purelib", "platlib"))):
        return None
    version = _version(module)
    return None if version is None else (version, file_digest(file))


def file_digest(path: str | os.PathLike[str]) -> str | None:
    """Return the SHA-256 of the file at *path*; ``None`` if it cannot be read, or is not a regular file."""
    try:
        return hashlib.sha256(read_regular_file(path)).hexdigest()
    except (OSError, ValueError):
        return None


@functools.cache
def _version(module: str) -> tuple[str, str] | None:
    """Return name and version of the distribution that *module* is part of: that of ``cuda.core`` is ``cuda-core``."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
            return "-".join(parts[:length]), importlib.metadata.version("-".join(parts[:length]))
    version = getattr(sys.modules.get(parts[0]), "__version__", None)
    return (parts[0], version) if isinstance(version, str) else None


def codes(code: pytypes.CodeType) -> Iterator[pytypes.CodeType]:
    """Yield *code* and the code of the functions that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, pytypes.CodeType):
            yield from codes(constant)


def names_used(code: pytypes.CodeType) -> tuple[str, ...]:
    """Return the names of the globals and attributes that *code* uses, in order."""
    return tuple(dict.fromkeys(name for each in codes(code) for name in each.co_names))


def imports_of(code: pytypes.CodeType) -> dict[str, None]:
    """Return the names of the modules that *code* imports while it runs."""
    return {each.co_names[argument]: None for each, argument in _arguments(code, _IMPORT_NAME)}


def globals_used(code: pytypes.CodeType) -> dict[str, None]:
    """Return the names of the globals that *code* reads, in order. ``co_names`` also has those of attributes."""
    return {each.co_names[argument >> _NAME_SHIFT]: None for each, argument in _arguments(code, _LOAD_GLOBAL)}


def closure_of(function: pytypes.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each closure variable of *function* that is filled."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):  # not filled yet
            yield name, cell.cell_contents


def environment_of(function: pytypes.FunctionType) -> Iterator[tuple[str, bytes]]:
    """Yield names and values of the environment variables that *function* may read: those whose names contain a text
    that it uses, such as ``"SIZE"`` of ``os.environ.get(f"{name}_SIZE")``; all, if it uses no such text. A value is
    bytes: what is in a file that it names does not count."""
    code = function.__code__
    if _ENVIRONMENT.isdisjoint(names_used(code)):
        return
    used = [each for inner in codes(code) for each in inner.co_consts]
    used += [function.__globals__.get(name) for name in globals_used(code)]
    used += [value for _, value in closure_of(function)]
    used += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    texts = {each for each in used if isinstance(each, str) and re.fullmatch(r"\w+", each)}
    for name, value in sorted(os.environ.items()):
        if not texts or any(text in name for text in texts):
            yield name, os.fsencode(value)


def _arguments(code: pytypes.CodeType, wanted: int) -> Iterator[tuple[pytypes.CodeType, int]]:
    """Yield the argument of each *wanted* instruction, with its code: `dis` takes ten times as long."""
    for each in codes(code):
        extended = 0
        for opcode, low in zip(each.co_code[::2], each.co_code[1::2], strict=True):
            argument = low | extended
            if opcode == wanted:
                yield each, argument
            extended = argument << 8 if opcode == dis.EXTENDED_ARG else 0
