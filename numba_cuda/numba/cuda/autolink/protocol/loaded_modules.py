# SPDX-License-Identifier: BSD-2-Clause
"""What identifies the code of loaded modules: versions, the records of installed distributions, the content of files.

A file stands for what was imported from it only if it has not been written since the process began. If it has,
`UnknownValueError` is raised: nothing says which of the two texts runs.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import sys
import sysconfig
import time
import types as pytypes
from collections.abc import Iterable, Iterator
from typing import Any

from numba_cuda_autolink.files import read_regular_file
from numba_cuda_autolink.package_versions import version_of


class UnknownValueError(Exception):
    """Nothing tells whether a value, or the code of a module, is the same as in another process."""


# What `tool_versions` identifies, besides Python itself.
_TOOLS = frozenset(("cuda", "llvmlite", "numba", "numba_cuda", "numba_cuda_autolink", "numpy"))
_PATHS = sysconfig.get_paths()
_PYTHON = tuple(os.path.realpath(_PATHS[name]) + os.sep for name in ("stdlib", "platstdlib"))
_SITES = tuple(_PATHS[name] + os.sep for name in ("purelib", "platlib"))
# The clock of processes ticks every 10 ms.
_TICK = 0.02


def origin_of(module: Any) -> Any:
    """Return what identifies the code of the module of this name: ``"versioned"`` for Python, Numba and NumPy, whose
    versions are in each key; for one of an installed distribution, that one's version and record; ``None`` for a module
    of the program. Raise `UnknownValueError` if it was installed or edited after the process began."""
    if not isinstance(module, str) or module == "__main__" or module.startswith("numba.cuda.tests"):
        return None
    package = module.partition(".")[0]
    file = getattr(sys.modules.get(module), "__file__", None)
    if package in _TOOLS or _is_pythons(package):
        return "versioned"
    if not isinstance(file, str) or not file.startswith(_SITES):
        return None
    distribution = distribution_of(package)
    return None if distribution is None else (*distribution, _content(module, file))


def program_files(modules: Iterable[str]) -> dict[str, str]:
    """Return the digests of the files of those of *modules* that belong to the program, and of all modules that these
    use: that their globals come from."""
    found: dict[str, str] = {}
    work = list(modules)
    while work:
        name = work.pop()
        module = sys.modules.get(name)
        if name in found or not isinstance(module, pytypes.ModuleType) or origin_of(name) is not None:
            continue
        path = getattr(module, "__file__", None)
        found[name] = "no file" if path is None else _content(name, path)
        work.append(name.rpartition(".")[0])
        work.extend(filter(None, map(_home, tuple(vars(module).values()))))
    return dict(sorted(found.items()))


def package_of(cls: Any) -> tuple[Any, ...] | None:
    """Return what identifies the package of a class or function: the version and the record of its distribution, or the
    content of all modules of its top-level package that are loaded; ``None`` if one of these is in no file, or none is
    loaded, as of a class that was pickled by value."""
    package = str(cls.__module__).partition(".")[0]
    if (origin := origin_of(cls.__module__)) == "versioned":
        return (origin,)
    if origin is not None:
        return distribution_of(package)
    found = []
    for name, module in sorted(_find_loaded(package)):
        path = getattr(module, "__file__", None)
        if path is None and not hasattr(module, "__path__"):  # not a namespace package
            return None
        found.append((name, None if path is None else _content(name, path)))
    return tuple(found) or None


def distribution_of(package: str) -> tuple[Any, ...] | None:
    """Return name, version and digest of the record of the distribution of an installed *package*; if none has that
    name, or it has no record, the content of the modules that are loaded of it."""
    if (found := record_of(package)) is not None:
        return package, found[0], _content(package, found[1])
    files = ((name, getattr(module, "__file__", None)) for name, module in sorted(_find_loaded(package)))
    return package, *((name, _content(name, file)) for name, file in files if isinstance(file, str))


@functools.cache
def record_of(package: str) -> tuple[str, str] | None:
    try:
        found = importlib.metadata.distribution(package)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    record = os.path.join(getattr(found, "_path", ""), "RECORD")
    return (version_of(package), record) if os.path.isfile(record) else None


def file_digest(path: str | os.PathLike[str]) -> str | None:
    """Return the SHA-256 of the file at *path*; ``None`` if it cannot be read, or is not a regular file."""
    try:
        return hashlib.sha256(read_regular_file(path)).hexdigest()
    except (OSError, ValueError):
        return None


def _find_loaded(package: str) -> Iterator[tuple[str, Any]]:
    within = f"{package}."
    return (each for each in tuple(sys.modules.items()) if each[0] == package or each[0].startswith(within))


def _home(value: Any) -> str | None:
    if isinstance(value, pytypes.ModuleType):
        return value.__name__
    module = vars(value).get("__module__") if isinstance(value, type) else None
    if isinstance(value, pytypes.FunctionType):
        module = value.__module__
    return module if isinstance(module, str) else str(type(value).__module__)


@functools.cache
def _is_pythons(package: str) -> bool:
    if package not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(package), "__file__", None)  # a user's module may have the name of one of Python's
    return file is None or os.path.realpath(file).startswith(_PYTHON)


def _content(module: str, path: str) -> str:
    """Return the digest of the file at *path*, or of the archive that it is in, of which *module* was imported."""
    while not os.path.exists(path) and path != (path := os.path.dirname(path)):
        pass
    try:
        state = os.stat(path)
    except OSError as error:
        raise UnknownValueError(f"{path} cannot be read: {error.strerror}") from error
    if state.st_ctime > _inherited.get(module, _process_began()) + _TICK:
        raise UnknownValueError(f"{path} was written after this process began")
    return _digest(path, state.st_ino, state.st_ctime_ns, state.st_size)


@functools.cache
def _digest(path: str, *state: int) -> str:
    if (digest := file_digest(path)) is None:
        raise UnknownValueError(f"{path} cannot be read")
    return digest


# Modules that forked processes have from their parents, and when these began.
_inherited: dict[str, float] = {}
_IMPORTED = time.time()


@functools.cache
def _process_began() -> float:
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        running = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):  # not Linux
        return _IMPORTED
    return time.time() - running


def _after_fork() -> None:
    began = _process_began()
    for name in tuple(sys.modules):
        _inherited.setdefault(name, began)
    _process_began.cache_clear()
    _process_began()  # before the program sets another clock


_process_began()
os.register_at_fork(after_in_child=_after_fork)
