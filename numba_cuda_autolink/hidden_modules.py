# SPDX-License-Identifier: BSD-2-Clause
"""Files that hide modules of Python itself. Nothing is imported that such a file often hides."""

from __future__ import annotations

import os
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RENAME = "rename it, or move it away"
moved_folders: list[str] = []  # which programs search before the modules of Python


def search_python_first() -> None:
    """Let Python search folders with files that hide its own modules last: `doctor` needs these modules."""
    folders = {os.path.dirname(file) for file in hidden_modules(sys.stdlib_module_names).values()}
    moved_folders[:] = [each for each in sys.path if os.path.abspath(each) in folders]
    sys.path[:] = [each for each in sys.path if each not in moved_folders] + moved_folders


def hidden_modules(names: Iterable[str], path: Sequence[str] | None = None) -> dict[str, str]:
    """Return which of the *names* are modules of Python that files hide, and these files, as Python finds them on its
    *path*, by default `sys.path`. Nothing imports its tests, ``test``."""
    own = os.path.join(os.path.realpath(os.path.dirname(os.__file__)), "")
    found: dict[str, str | None] = {}
    for name in sorted((sys.stdlib_module_names - {"test"}).intersection(names)):
        if BuiltinImporter.find_spec(name) is None and FrozenImporter.find_spec(name) is None:
            found[name] = getattr(PathFinder.find_spec(name, path), "origin", None)
    return {name: file for name, file in found.items() if file and not os.path.realpath(file).startswith(own)}


def find_hidden(error: BaseException) -> tuple[str, str] | None:
    """Return which file hides a module of Python, and what to do, if that module is loaded, or *error* names it or
    comes from it; ``None`` if none does."""
    files, traceback = {str(getattr(error, "filename", ""))}, error.__traceback__
    while traceback is not None:
        files.add(traceback.tb_frame.f_code.co_filename)
        traceback = traceback.tb_next
    for name, file in hidden_modules(sys.stdlib_module_names).items():
        if getattr(sys.modules.get(name), "__file__", None) == file or file in files or repr(name) in f"{error}":
            return describe_hidden(name, file)
    return None


def describe_hidden(name: str, file: str) -> tuple[str, str]:
    return f"{file} hides Python's own module {name!r}", RENAME
