# SPDX-License-Identifier: BSD-2-Clause
"""The source of a library and what belongs to it: options, namespace, structs, and the objects made of its names."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from numba.cuda import types
from numba.cuda.cudadrv.external_code.compile.nvrtc import CompileError
from numba.cuda.cudadrv.external_code.compile.nvrtc_log import list_errors
from numba.cuda.cudadrv.external_code.inputs.cuda_source import CompileOptions, CUDASource, is_path
from numba.cuda.cudadrv.external_code.inputs.link_input import LinkInputError, text_fault
from numba.cuda.cudadrv.external_code.platform.child_process import fork_lock

from numba_cuda_autolink.files import missing_file
from numba_cuda_autolink.given_sources import find_source, note_source
from numba_cuda_autolink.short_tracebacks import place_of_user
from numba_cuda_autolink.source_locations import shown_file

from ..frontend_api.record_fields import note_record
from ..linkables.compiled_source import compiled
from ..protocol.ask import forget_answers
from .call_text import write_call
from .calls import SOURCE, Call, Head
from .cxx_errors import NAMESPACE, CxxError
from .resolving import Resolver
from .structs import Struct, select_newest

_LINE_OF_SOURCE = re.compile(rf"\b{re.escape(SOURCE)}([:(])(\d+)")
_LINE_IN_SOURCE = re.compile(rf"\bline (\d+) of {re.escape(SOURCE)}")
_T = TypeVar("_T")
_make_head = functools.lru_cache(64)(Head)  # calls share the text of a head, too
# The include paths and working directories of libraries of equal text, with their numbers.
_folders: dict[str, dict[tuple[tuple[str, ...], str], int]] = {}
_folders_lock = fork_lock()


# A type, and a declaration that NVRTC refuses with the name of it.
_ASKED = "using nca_asked = decltype({});"
_SHOWN = "template <class nca_T> struct nca_shown; nca_shown<{}nca_asked> nca_of_asked;"
_SHOWN_TYPE = re.compile(r'incomplete type "nca_shown<(.*?)>"(?: \(aka "nca_shown<(.*?)>"\))? is not allowed')
_OLDER_STANDARDS = ("c++03", "c++11", "c++14")


class LibrarySource:
    """The source of a library: C++ text or the path of a file, the *arguments* of a `CUDASource` besides it, and the
    *namespace* in which names resolve."""

    _cxx_reads_files = "constants"  # headers, which may change between two kernels

    def __init__(self, source: str | os.PathLike[str], arguments: Mapping[str, Any], namespace: str):
        self._given = source, dict(arguments), namespace
        self.namespace = namespace  # where names resolve; empty for the global namespace
        self.text, self._arguments = _read_source(source, arguments)  # the C++ text, or an ``#include`` of the file
        options = CUDASource(self.text, **self._arguments).compile_options
        if (standard := dict(options.options).get("std")) in _OLDER_STANDARDS:
            raise LinkInputError(
                f"cxx() needs C++17 or later, and options= set std to {standard!r}\n"
                "  what to do: leave std out, which is C++17 then, or set it to 'c++20'"
            )
        # Where headers are looked for, and from which working directory.
        self.folders = options.include_paths, options.working_directory
        self._identity = _identify(self.text, options, namespace)
        self._objects: dict[Hashable, Any] = {}
        self.records: dict[types.Type, Struct] = {}  # the structs that have Numba types, by these
        # What is known of its calls.
        self.resolver = Resolver(self.write_source, self._select_records, self.place_error, self.ask_type)
        self.place = note_source(self.text, place_of_user()[:2])

    def register(self, numba_type: types.Type, struct: Struct) -> None:
        """Note that records of *numba_type* are *struct*."""
        note_record(numba_type, struct.name, has_members=struct.has_members)
        before = self.head.records
        newest = select_newest(self.records).get(struct.name)
        if newest != numba_type:
            self.records.pop(numba_type, None)  # to be the last one
        self.records[numba_type] = struct
        if newest in self.records and self.records[newest].has_members and not struct.has_members:
            self.records[newest] = self.records.pop(newest)  # results are records, not memory for objects
        if self.head.records != before:  # of which the symbols of calls are made
            for each in [*self._objects.values()]:
                forget_answers(each)

    def _select_records(self) -> dict[types.Type, Struct]:
        return {each: self.records[each] for each in select_newest(self.records).values()}

    @functools.cached_property
    def _shown(self) -> str:
        source = self._given[0]
        is_text = isinstance(source, str) and not is_path(source)
        shown = repr(" ".join(str(source).split())[:60] if is_text else os.fspath(source))
        return f"cxx({shown}{f', namespace={self.namespace!r}' if self.namespace else ''})"

    def __repr__(self) -> str:
        return self._shown

    def __reduce__(self) -> Any:
        return LibrarySource, self._given

    def __getstate__(self) -> Any:
        """Return what distinguishes it from other libraries, without what was asked of it: for fingerprints."""
        return self._given, self._identity, tuple(self.records.items())

    @property
    def head(self) -> Head:
        """What its calls share."""
        return _make_head(self.text, self._identity, self.namespace, tuple(self._select_records().values()))

    def place_error(self, error: CxxError) -> CxxError:
        """Return an *error* with lines of the Python file that made the library, if that file has its text."""
        given = f"{shown_file(self.place[0])}:{self.place[1]}"
        error = CxxError(str(error).replace(f"in Python: {NAMESPACE}", f"given at: {given}"), error.log)
        if (found := find_source(self.text, self.place)) is None:
            return error
        file, lines = found

        def place_line(found: re.Match[str]) -> str:
            return f"{shown_file(file)}{found[1]}{lines[min(int(found[2]), len(lines)) - 1]}"

        def place_lines(text: str) -> str:
            text = _LINE_IN_SOURCE.sub(lambda found: f"{SOURCE}:{found[1]}", text)
            return _LINE_OF_SOURCE.sub(place_line, text)

        return CxxError(place_lines(str(error)), place_lines(error.log))

    def list_units(self) -> list[list[CUDASource]]:
        """Return sources that read its headers, each list a translation unit: its own, and one of calls."""
        return [[self.write_unit("", "names")], *self.resolver.list_resolved()]

    def write_source(self, call: Call) -> CUDASource:
        """Return the source of one call, which shares its translation unit with other calls of this library."""
        unit = f"cxx_{self._identity}"
        return CUDASource(write_call(call), name=call.label, unit=unit, prologue=call.head.text, **self._arguments)

    def write_unit(self, text: str, label: str, **options: Any) -> CUDASource:
        """Return a source of its own with *text* after the library's source, with further compile options."""
        arguments = {**self._arguments, "options": {**self._arguments["options"], **options}}
        return CUDASource(text, name=label, prologue=self.head.text, **arguments)

    def ask_type(self, expression: str) -> str | None:
        """Return the type of a C++ *expression* for the current target, as NVRTC writes it; empty if it has none or
        several, ``None`` if C++ does not know a name in it."""
        inside = f"namespace {self.namespace} {{ {_ASKED.format(expression)} }}" if self.namespace else ""
        path = f"{self.namespace}::" if self.namespace else ""
        text = f"{inside or _ASKED.format(expression)}\n{_SHOWN.format(path)}"
        try:
            compiled(self.write_unit(text, "type"))
        except CompileError as error:
            found = _SHOWN_TYPE.search(error.log)
            errors = list_errors(error.log)
            if any(each.unknown for each in errors):
                return None
            return (found[2] or found[1]) if found and len(errors) == 1 else ""
        return ""

    def get_object(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return what *make* returned the first time that this was called with *key*."""
        if key not in self._objects:
            self._objects.setdefault(key, make())
        found: _T = self._objects[key]
        return found


def _read_source(source: str | os.PathLike[str], arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the text of a library, and the other arguments of a `CUDASource` with it: those given, with the folder of
    the file if *source* is a path."""
    if isinstance(source, str) and not is_path(source):
        if fault := text_fault(source):
            raise LinkInputError(f"the source of cxx() has {fault}")
        return source, dict(arguments)
    path = os.path.abspath(os.fsdecode(source))
    if not os.path.isfile(path):
        raise missing_file("cxx()", os.fsdecode(source))
    folder, name = os.path.split(path)
    return f"#include <{name}>", {**arguments, "include_paths": [folder, *arguments["include_paths"]]}


def _identify(text: str, options: CompileOptions, namespace: str) -> str:
    """Return digits that no other library has here. Folders do not count, so that another checkout of the same sources
    has the same symbols: the first library of a text in a process has no number, those in other folders have one."""
    content = text, dataclasses.replace(options, include_paths=(), working_directory=""), namespace
    digest = hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    folders = options.include_paths, options.working_directory
    with _folders_lock:
        number = _folders.setdefault(digest, {}).setdefault(folders, len(_folders[digest]))
    return f"{digest}_{number}" if number else digest
