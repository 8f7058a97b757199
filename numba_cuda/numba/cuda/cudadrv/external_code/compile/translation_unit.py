# SPDX-License-Identifier: BSD-2-Clause
"""CUDA C++ translation units: everything that determines what NVRTC compiles a source to."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import cuda.core
from cuda import pathfinder
from numba.cuda import config
from numba.cuda.cuda_paths import _get_include_dir
from numba.cuda.cudadrv import nvrtc

from numba_cuda_autolink.printable_texts import number_of

from ..cache.changes import NOT_CACHED
from ..cache.entry import FILE, CacheKey, Facts, LineDigests, digests_of_lines
from ..cache.store import current_store
from ..headers.file_state import Header
from ..headers.manifest import MANIFEST_FORMAT, HeaderManifest, read_text
from ..headers.search_roots import SearchRoots
from ..inputs.link_input import LinkInput, split_at_markers
from ..platform.cuda_libraries import headers_version, nvrtc_build
from ..platform.target import Target

if TYPE_CHECKING:
    from ..inputs.c_prototypes import CalledFunction

# What NVRTC says of kernels that C++ by name has marked, to find out where they are called. It is no warning to users.
KERNEL_MARK = "a kernel is not a device function"


@dataclass(frozen=True)
class TranslationUnit:
    """The whole input of NVRTC."""

    code: str  # the source
    # Its name in messages and in ``__FILE__``. Quoted includes are looked for in its directory first; without one, in
    # the working directory.
    name: str
    options: tuple[tuple[str, Any], ...]  # fields of `cuda.core.ProgramOptions` and their values, sorted by name
    output: str  # ``"ltoir"`` or ``"cubin"``
    text: str = field(default="", compare=False)  # the source without names of files that only debuggers need

    @classmethod
    def of(cls, source: LinkInput, target: Target) -> TranslationUnit:
        """Return the unit of *source* for *target*: compiled to LTO-IR if that links with LTO, else to a relocatable
        cubin."""
        given = source.options
        # Only a path says where the source is. For other names NVRTC would look in the working directory first; for
        # sources with a path, that is the last place.
        is_file = os.path.isfile(source.name)
        name = source.name if is_file else os.path.basename(source.name)
        name = f"source {name}" if name.startswith("-") else name  # which NVRTC would take for an option
        fields = {
            "arch": target.arch,
            "relocatable_device_code": True,
            "link_time_optimization": target.lto,  # as nvcc -dlto does: optimised at the link alone
            "debug": (target.debug and not target.lto) or None,  # full debug information and LTO exclude each other
            "lineinfo": target.lineinfo or None,
            "max_register_count": target.max_registers,
            "include_path": (*given.include_paths, *toolkit_include_paths(), *((os.curdir,) if is_file else ())),
            "define_macro": given.defines or None,
            **dict(given.options),
        }
        options = tuple(sorted((name, value) for name, value in fields.items() if value is not None))
        text = code = source.text
        if (fields["lineinfo"] or fields["debug"]) and not is_file:
            from .debug_sources import with_files

            code = with_files(text, name)
        return cls(code, name, options, "ltoir" if target.lto else "cubin", text)

    def option(self, name: str) -> Any:
        return dict(self.options).get(name)


def working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def toolkit_include_paths() -> tuple[str, ...]:
    """Return the include directories of every source: numba_cuda's own headers, the toolkit's, CCCL's, and those in
    numba_cuda's ``CUDA_NVRTC_EXTRA_SEARCH_PATHS``."""
    extra = config.CUDA_NVRTC_EXTRA_SEARCH_PATHS or ""
    return fixed_include_paths() + tuple(path for path in extra.split(":") if path)


@functools.cache
def fixed_include_paths() -> tuple[str, ...]:
    numba_cuda = os.path.dirname(os.path.dirname(os.path.abspath(nvrtc.__file__)))
    major = nvrtc._get_nvrtc_version()[0]
    toolkit = _get_include_dir().info  # get_cuda_paths() also loads libNVVM
    cccl = pathfinder.locate_nvidia_header_directory("cccl")
    paths = (
        os.path.join(numba_cuda, "include", str(major)),
        toolkit,
        cccl.abs_path if cccl is not None else None,
        _crt_headers(toolkit) if toolkit and not os.path.isdir(os.path.join(toolkit, "crt")) else None,  # for <mma.h>
        os.path.join(numba_cuda, "memory_management"),
    )
    return tuple(path for path in paths if path)


def _crt_headers(toolkit: str) -> str | None:
    """Return nvcc's include directory, which has ``crt`` where the *toolkit*'s headers lack it: that of CUDA 12's
    wheels, or of a system's toolkit if it is of the same CUDA version."""
    found = pathfinder.locate_nvidia_header_directory("nvcc")
    if found is None:
        return None
    if found.found_via in ("site-packages", "conda"):
        return str(found.abs_path)
    version = headers_version(toolkit)
    return str(found.abs_path) if version is not None and headers_version(found.abs_path) == version else None


def messages_outside_toolkit(log: str) -> str:
    """Return the messages of *log* that are not about the toolkit's own headers, which nvcc, unlike NVRTC, treats as
    system headers."""
    toolkit = toolkit_include_paths()
    messages = [message for message in log.split("\n\n") if message.strip()]
    kept = [each for each in messages if not each.lstrip().startswith(toolkit) and KERNEL_MARK not in each]
    if all(message.startswith("Remark: ") for message in kept):  # on how to suppress the others
        return ""
    return "\n\n".join(kept).strip()


# Goes up when the assertions of `prototype_assertions` change.
_CHECK = "8"


# Around the source of a C++ library.
_LIBRARY = re.compile(r'^#line 1 "source of autolink\.cxx"\n', re.MULTILINE)
_LIBRARY_END = re.compile(r'^#line 1 "namespace of autolink\.cxx"\n', re.MULTILINE)
_INCLUDED = re.compile(r"#include <([^>\n]+)>\n#line")
_FUNCTION = re.compile(r'^#line 1 "([^"\n]+\([^"\n]*\))"$', re.MULTILINE)


class UnitKeys:
    """The keys of *unit*."""

    def __init__(self, unit: TranslationUnit):
        self._unit = unit
        self._library = _Library.of(unit.text)
        self._name = _name_for_users(unit, self._library)
        self.has_lines = bool(unit.option("lineinfo") or unit.option("debug"))
        self._folder = working_directory()
        search = tuple(os.path.join(self._folder, path) for path in unit.option("include_path") or ())
        own = None if unit.option("no_source_include") else os.path.join(self._folder, os.path.dirname(unit.name))
        self.roots = SearchRoots(own, search, fixed_include_paths())
        form = ("record of headers", MANIFEST_FORMAT)
        # That of this machine's record of its headers, and that of the record for all machines, wherever the files are.
        places = ("places", repr((unit.name, unit.option("include_path"), self.roots)))
        facts = functools.partial(self._facts, (), (), (("program", ""),))
        self.headers = CacheKey("headers", self._name, (*self._parts(), places, form), facts=facts)
        layout = ("include paths", repr((self.roots.layout, self.roots.shared_with(unit.code))))
        self.source = CacheKey("source", self._name, (*self._parts(), layout, form), facts=facts)

    def places(self, manifest: HeaderManifest) -> str:
        """Return what stands for the paths that a program with the headers of *manifest* may contain."""
        unit = self._unit
        own = [header.path for header in manifest.headers if not self.roots.is_packaged(header.path)]
        # NVRTC writes the working directory into LTO-IR, where only debuggers and profilers use it, to find sources.
        folder = self._folder if self.has_lines else ""
        return hashlib.sha256(repr((unit.name, unit.option("include_path"), own, folder)).encode()).hexdigest()[:32]

    def program(self, manifest: HeaderManifest, places: str) -> CacheKey:
        headers = f"{number_of(len(manifest.headers), 'file')}, sha256 {manifest.digest}"
        parts = (*self._parts(), ("headers", headers), ("places", places))
        compiled = hashlib.sha256(repr((headers, places)).encode()).hexdigest()[:16]
        return self._key(parts, manifest.headers, (("program", compiled),))

    def uncached(self, headers: tuple[Header, ...], why: str) -> CacheKey:
        """Return what describes a program that is not cached, and *why*, of which these *headers* are known."""
        return self._key((*self._parts(), (NOT_CACHED, why)), headers, ((NOT_CACHED, why),))

    def _key(
        self,
        parts: tuple[tuple[str, str | bytes], ...],
        headers: tuple[Header, ...],
        compiled: Sequence[tuple[str, str]],
    ) -> CacheKey:
        own = [each for each in headers if not self.roots.is_packaged(each.path)]
        counts = Counter(os.path.basename(each.path) for each in own)
        names = [each.path if counts[name := os.path.basename(each.path)] > 1 else name for each in own]
        files = tuple((f"{FILE}{name}", each.sha256[:16]) for name, each in zip(names, own, strict=True))
        read = tuple((label, header.path, header.sha256) for (label, _), header in zip(files, own, strict=True))
        facts = functools.partial(self._facts, read, headers, compiled)
        own_texts = functools.partial(self._own_texts, read)
        return CacheKey("program", self._name, parts, files, facts, functools.partial(self._lines, read), own_texts)

    def _parts(self) -> tuple[tuple[str, str | bytes], ...]:
        """Return what NVRTC gets; of paths, only the name of the file: the rest is in the headers' digest."""
        unit = self._unit
        return (
            ("source", self._code()),
            ("name", os.path.basename(unit.name)),
            ("output", unit.output),
            *((f"option {name}", repr(value)) for name, value in unit.options if name != "include_path"),
            ("NVRTC", nvrtc_build()),
            ("cuda.core", cuda.core.__version__),
        )

    def _code(self) -> str:
        """Return the source. The cache's directory counts only where a compile must give the same bytes again."""
        if self._unit.code == self._unit.text or current_store().settings.verify:
            return self._unit.code
        from .debug_sources import without_folder

        return without_folder(self._unit.code)

    def _facts(
        self,
        files: tuple[tuple[str, str, str], ...],
        headers: tuple[Header, ...],
        compiled: Sequence[tuple[str, str]],
    ) -> Facts:
        """Return what users know of the program, with the *files* of their own, each a label, path and digest; of the
        other *headers*; and a label with a digest of what else counts of where it was *compiled*, or with why it is not
        cached."""
        unit, library = self._unit, self._library.file
        path = unit.name if os.path.isfile(unit.name) else ""
        if library:
            read = (*(each for _, each, _ in files), *(each.path for each in headers))
            path = next((each for each in read if f"/{each}".endswith(f"/{library}")), "")
        file, _, calls = self._name.partition(": ") if library else (self._name, "", "")
        subject = os.path.basename(file) if path else file
        is_file = any(os.path.abspath(each) == os.path.abspath(unit.name) for _, each, _ in files)
        texts = () if is_file else self._texts()
        fixed = (*toolkit_include_paths(), os.curdir)
        beside = os.path.dirname(path) if library else ""  # which is searched for it
        folders = [each for each in unit.option("include_path") or () if each not in fixed and each != beside]
        options = [(_OF_TARGET.get(each, each), value) for each, value in unit.options if each not in _NOT_FACTS]
        packaged = repr([each.sha256 for each in headers if self.roots.is_packaged(each.path)])
        return (
            ("", "path", os.path.abspath(path) if path else ""),
            ("", "architecture", str(unit.option("arch"))),
            *([(subject, "calls", calls)] if calls else []),
            *((each or subject, "file" if each else "source", _short_digest(own)) for each, own in texts),
            *((label.removeprefix(FILE), "file", sha256) for label, _, sha256 in files),
            *((label.removeprefix(FILE), "at", os.path.abspath(each)) for label, each, _ in files),
            *((subject, f"define {macro}", value) for macro, value in unit.option("define_macro") or ()),
            (subject, "include_paths", repr(folders)),
            *([] if unit.option("link_time_optimization") or unit.option("debug") else [("", "lto", "False")]),
            *((subject, option, repr(value)) for option, value in options if value is not False),
            (subject, "headers", _short_digest(packaged)),
            (subject, "working directory", self._folder),
            (subject, "packages", sys.prefix),
            *((subject, *each) for each in compiled),
            ("", "NVRTC", nvrtc_build()),
            ("", "cuda.core", cuda.core.__version__),
        )

    def _lines(self, files: tuple[tuple[str, str, str], ...]) -> LineDigests:
        return tuple((label, digests_of_lines(text)) for label, text in self._own_texts(files))

    def _own_texts(self, files: tuple[tuple[str, str, str], ...]) -> tuple[tuple[str, str], ...]:
        """Return the user's own texts: the source, and the *files*, each a label, path and digest, as long as they are
        as they were compiled."""
        texts = self._texts()
        size = sum(len(own) for _, own in texts)
        found = []
        if size <= _MOST_READ:
            found += [(f"{FILE}{name}" if name else f"source {self._name}", own) for name, own in texts]
        for label, path, sha256 in files:
            with contextlib.suppress(OSError, ValueError):
                header, content = read_text(path)
                size += len(content)
                if size > _MOST_READ:
                    break
                if header.sha256 == sha256:
                    found.append((label, content.decode("utf-8", "replace")))
        return tuple(found)

    def _texts(self) -> list[tuple[str, str]]:
        """Return the user's own texts in the unit, which are in no file: of several sources of one unit, each with its
        name."""
        own = self._library.text
        if not own or self._library.calls:
            return [("", own)] if own else []
        found = list(split_at_markers(own, ""))
        return [(os.path.basename(name) if len(found) > 1 else "", text) for name, text in found]


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Library(NamedTuple):
    """Of the code of a unit: its *calls* of a C++ library, if it has such, as they stand from the library's source on;
    the *file* that the source is in, if it is in one; and the user's own *text*, which is empty then."""

    calls: str
    file: str
    text: str

    @classmethod
    def of(cls, code: str) -> _Library:
        if (start := _LIBRARY.search(code)) is None:
            return cls("", "", code)
        calls = code[start.end() :]
        if included := _INCLUDED.match(calls):
            return cls(calls, included[1], "")
        end = _LIBRARY_END.search(calls)
        return cls(calls, "", calls[: end.start()] if end else calls)


def _name_for_users(unit: TranslationUnit, library: _Library) -> str:
    """Return the name of a unit; of calls of a C++ library, its file and functions: ``waves.cu: series(float32)``."""
    functions = ", ".join(dict.fromkeys(_FUNCTION.findall(library.calls))) or unit.name
    return f"{os.path.basename(library.file)}: {functions}" if library.file else functions


_MOST_READ = 1 << 20  # bytes of a unit's own files, to show what changed in them
# Options of a unit that users do not write as such.
_NOT_FACTS = (
    *("arch", "relocatable_device_code", "link_time_optimization", "include_path", "define_macro"),
    "device_as_default_execution_space",
)
_OF_TARGET = {"max_register_count": "max_registers"}


def checked_key(program: CacheKey, called: CalledFunction) -> CacheKey:
    """Return the key under which is noted that a function of *program*, if there, has the types of a call."""
    function = ("function", called.symbol), ("types", called.types)
    return CacheKey("prototype", f"{called.symbol} in {program.name}", (*_checked_program(program), *function))


def derived_key(program: CacheKey) -> CacheKey:
    """Return the key under which the functions of *program* are listed whose types of calls were derived from it."""
    return CacheKey("prototype", f"derived from {program.name}", _checked_program(program))


def _checked_program(program: CacheKey) -> tuple[tuple[str, str | bytes], ...]:
    return ("format", _CHECK), ("program", program.digest)
